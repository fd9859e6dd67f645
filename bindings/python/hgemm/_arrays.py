"""Arrays of other libraries as operands: numpy's, and what speaks DLPack or the CUDA array interface."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, pythonapi
from typing import Any, NamedTuple

from . import _driver
from ._operand import Operand
from .c import DEVICE_HOST, Type

_TYPES = {"float16": Type.F16, "bfloat16": Type.BF16, "float32": Type.F32}
_TYPE_STRINGS = {"<f2": Type.F16, "<f4": Type.F32}


class Array(NamedTuple):
    """An operand, where it lies, and what keeps its memory. stream: of the work that may still write it, None: none."""
    operand: Operand
    address: int
    device: int
    read_only: bool
    stream: int | None
    owner: Any


def describe(name: str, array: Any, stream: int | None = None) -> Array:
    """stream: that of the product to come, for producers that then wait for their own."""
    if hasattr(array, "__array_interface__"):
        return _interface(name, array, array.__array_interface__, DEVICE_HOST)
    if hasattr(array, "__dlpack__"):
        return _dlpack(name, array, stream)
    if hasattr(array, "__cuda_array_interface__"):
        found = array.__cuda_array_interface__
        # 1 is the legacy default stream, which is 0 here.
        producer = {None: None, 1: 0}.get(found.get("stream"), found.get("stream"))
        device = _driver.device_of(found["data"][0]) if found["data"][0] else 0
        return _interface(name, array, found, device)._replace(stream=producer)
    raise TypeError(f"{name}: {type(array).__name__} is no numpy array, and has neither __dlpack__ nor "
                    "__cuda_array_interface__")


def _interface(name: str, array: Any, found: dict[str, Any], device: int) -> Array:
    """numpy's array interface, or CUDA's, which is like it."""
    type_string = getattr(getattr(array, "dtype", None), "name", None)
    if found["typestr"].startswith(">"):
        raise TypeError(f"{name}: its elements are big-endian; pass a copy in the machine's byte order")
    kind = _TYPE_STRINGS.get(found["typestr"]) or _TYPES.get(str(type_string))
    if kind is None:
        raise TypeError(f"{name}: its elements are {type_string or found['typestr']}, must be float16, bfloat16 "
                        "(of ml_dtypes) or, for results, float32")
    shape = tuple(found["shape"])
    size = 4 if kind == Type.F32 else 2
    steps = found.get("strides")
    if steps is None:
        strides = _contiguous(shape)
    elif any(step % size for step in steps):
        raise ValueError(f"{name}: its strides {steps} (in bytes) are not whole elements; pass a contiguous copy")
    else:
        strides = tuple(step // size for step in steps)
    address, read_only = found["data"]
    return Array(Operand(kind, shape, strides), address, device, bool(read_only), None, array)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return tuple(strides)


class _DlTensor(ctypes.Structure):
    """DLTensor of dlpack.h, with which a DLManagedTensor begins."""
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_DL_TYPES = {(2, 16): Type.F16, (4, 16): Type.BF16, (2, 32): Type.F32}  # by code and bits

_capsule_pointer = pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _dlpack(name: str, array: Any, stream: int | None) -> Array:
    """The capsule is kept, not consumed: when it goes, it tells the producer itself."""
    kind, number = array.__dlpack_device__()
    if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise ValueError(f"{name}: lies on DLPack's device {int(kind)}, must be on the CPU or on a CUDA device")
    if hasattr(array, "is_neg") and array.is_neg():  # PyTorch exports the values without the sign that it has put off
        raise ValueError(f"{name}: is a negated view of PyTorch's; pass its resolve_neg()")
    on_gpu = kind in (_CUDA, _CUDA_MANAGED)
    device = number if on_gpu else DEVICE_HOST
    try:
        # 1 is DLPack's number of the legacy default stream.
        capsule = array.__dlpack__(stream=stream or 1) if on_gpu else array.__dlpack__()
    except (BufferError, RuntimeError) as error:  # such as PyTorch's, for a tensor that requires a gradient
        raise ValueError(f"{name}: {error}") from error
    tensor = _DlTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    element = _DL_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if element is None:
        raise TypeError(f"{name}: its elements are {getattr(array, 'dtype', 'of another type')}, must be float16, "
                        "bfloat16 or, for results, float32")
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else _contiguous(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    return Array(Operand(element, shape, strides), address, device, False, None, capsule)
