"""Arrays of other libraries as operands: numpy's, and what speaks DLPack or the CUDA array interface."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, pythonapi
from typing import Any, NamedTuple

from . import _driver, c
from ._operand import NAMES, Operand
from .c import DEVICE_HOST, Type

TYPES = {name: kind for kind, name in NAMES.items()}
_TYPE_STRINGS = {"<f2": Type.F16, "<f4": Type.F32}
WRITTEN = ("out", "aux")
_IMMUTABLE = (("jax", "Array"), ("tensorflow", "Tensor"))  # also where their DLPack does not say so


class Array(NamedTuple):
    """An operand, where it lies, and what keeps its memory. stream: of the work that may still write it, None: none."""
    operand: Operand
    address: int
    device: int
    read_only: bool
    stream: int | None
    owner: Any


def is_of(array: Any, module: str, name: str) -> bool:
    """Is it of this class? A library that is not loaded has no arrays."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(array, kind)


def describe(name: str, array: Any, stream: int | None = None) -> Array:
    """stream: that of the product to come, for producers that then wait for their own."""
    if is_of(array, "numpy.ma", "MaskedArray"):
        raise TypeError(f"{name}: is a masked array, and a product would ignore its mask; pass its filled(0) or data")
    found = getattr(array, "__array_interface__", None)
    speaks_dlpack = hasattr(array, "__dlpack__")
    # DLPack says what is in an array whose type string does not.
    if found is not None and not (speaks_dlpack and found["typestr"][1:2] == "V" and _type_in(array, found) is None):
        return _interface(name, array, found, DEVICE_HOST)
    if speaks_dlpack:
        try:
            described = _dlpack(name, array, stream)
            is_immutable = name in WRITTEN and any(is_of(array, *kind) for kind in _IMMUTABLE)
            return described._replace(read_only=True) if is_immutable else described
        except ValueError:
            if found is not None:  # neither says what it is
                return _interface(name, array, found, DEVICE_HOST)
            if is_of(array, "jax.core", "Tracer"):
                raise TypeError(f"{name}: is traced by JAX, as in jit and grad; use hgemm.jax.matmul()") from None
            if not _is_bf16_by_cuda(array):
                raise
    if hasattr(array, "__cuda_array_interface__"):
        found = array.__cuda_array_interface__
        # 1 is the legacy default stream, which is 0 here.
        producer = {None: None, 1: 0}.get(found.get("stream"), found.get("stream"))
        device = _driver.device_of(name, found["data"][0]) if found["data"][0] else 0
        return _interface(name, array, found, device)._replace(stream=producer)
    raise TypeError(f"{name}: {type(array).__name__} is no numpy array, and has neither __dlpack__ nor "
                    "__cuda_array_interface__")


def _is_bf16_by_cuda(array: Any) -> bool:
    """As CuPy's arrays, whose DLPack may lack bfloat16."""
    try:
        found = getattr(array, "__cuda_array_interface__", None)
    except RuntimeError:  # PyTorch's, for a tensor that requires a gradient
        return False
    return found is not None and _type_in(array, found) == Type.BF16


def _type_in(array: Any, found: dict[str, Any]) -> Type | None:
    return _TYPE_STRINGS.get(found["typestr"]) or TYPES.get(str(getattr(getattr(array, "dtype", None), "name", None)))


def _interface(name: str, array: Any, found: dict[str, Any], device: int) -> Array:
    """numpy's array interface, or CUDA's, which is like it."""
    if found["typestr"].startswith(">"):
        raise TypeError(f"{name}: its elements are big-endian; pass a copy in the machine's byte order")
    kind = _type_in(array, found)
    if kind is None:
        raise TypeError(f"{name}: its elements are {getattr(array, 'dtype', found['typestr'])}, must be float16, "
                        "bfloat16 (of ml_dtypes) or, for results, float32")
    if found.get("mask") is not None:
        raise TypeError(f"{name}: has a mask, which a product would ignore")
    if not isinstance(found.get("data"), tuple):
        raise TypeError(f"{name}: its array interface has no address")
    address, read_only = found["data"]
    shape, steps, size = tuple(found["shape"]), found.get("strides"), 4 if kind == Type.F32 else 2
    if steps is None or 0 in shape:
        strides = _contiguous(shape)
    elif any(step % size for step in steps):
        raise ValueError(f"{name}: its strides {steps} (in bytes) are not whole elements; pass a contiguous copy")
    else:
        strides = tuple(step // size for step in steps)
    return Array(Operand(kind, shape, strides), address or 0, device, bool(read_only), None, array)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= max(length, 1)
    return tuple(strides)


class _DlTensor(ctypes.Structure):
    """DLTensor of dlpack.h, with which a DLManagedTensor begins."""
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _DlVersioned(ctypes.Structure):
    """DLManagedTensorVersioned, of DLPack 1.0."""
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _DlTensor)]


_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_READ_ONLY, _COPIED = 1, 2
_DL_TYPES = {(2, 16): Type.F16, (4, 16): Type.BF16, (2, 32): Type.F32}  # by code and bits

_capsule_pointer = pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_capsule = pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _ask(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What an array's library refuses, such as PyTorch a tensor that requires a gradient, is ValueError."""
    try:
        return function(*arguments)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def _export(array: Any, options: dict[str, int]) -> Any:
    """A capsule with a version, which says what is read-only, of a producer that has those."""
    try:
        return array.__dlpack__(**options, max_version=(1, 0))
    except TypeError:
        return array.__dlpack__(**options)


def _dlpack(name: str, array: Any, stream: int | None) -> Array:
    """The capsule is kept, not consumed: when it goes, it tells the producer itself."""
    kind, number = _ask(name, lambda: array.__dlpack_device__())
    if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise ValueError(f"{name}: lies on DLPack's device {int(kind)}, must be on the CPU or on a CUDA device")
    if hasattr(array, "is_neg") and array.is_neg():  # PyTorch exports the values without the sign that it has put off
        raise ValueError(f"{name}: is a negated view of PyTorch's; pass its resolve_neg()")
    on_gpu = kind in (_CUDA, _CUDA_MANAGED)
    device = number if on_gpu else DEVICE_HOST
    # 1 is DLPack's number of the legacy default stream.
    capsule = _ask(name, _export, array, {"stream": stream or 1} if on_gpu else {})
    flags = 0
    if _is_capsule(capsule, b"dltensor_versioned"):
        versioned = _DlVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise ValueError(f"{name}: its library speaks DLPack {versioned.major}, must be 1 or older")
        tensor, flags = versioned.tensor, versioned.flags
    else:
        tensor = _DlTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    element = _DL_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if element is None:
        raise TypeError(f"{name}: its elements are {getattr(array, 'dtype', 'of another type')}, must be float16, "
                        "bfloat16 or, for results, float32")
    read_only = bool(flags & (_READ_ONLY | _COPIED))  # what is written to a copy is lost
    operand = Operand(element, *_layout(tensor))
    return Array(operand, (tensor.data or 0) + tensor.byte_offset, device, read_only, None, capsule)


def _layout(tensor: _DlTensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides."""
    shape = tuple(tensor.shape[:tensor.ndim])
    if not tensor.strides or 0 in shape:  # those of an empty array mean nothing: CuPy's are 0
        return shape, _contiguous(shape)
    strides = tuple(tensor.strides[:tensor.ndim])
    if max(strides, default=0) >= 2**61:  # CuPy divides a negative number of bytes by the size as if it were positive
        wrapped = 2**64 // (tensor.bits // 8)
        strides = tuple(stride if stride < 2**61 else stride - wrapped for stride in strides)
    return shape, strides


def stream_address(stream: Any) -> int:
    """That of a stream of PyTorch, CuPy or cuda.core, or an address itself; TypeError names ``stream``."""
    for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    return c.integer("stream", stream, c_void_p)
