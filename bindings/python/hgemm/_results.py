"""New results of hgemm.matmul(), of the library that the operands are of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ._arrays import TYPES, Array, is_of
from ._operand import NAMES, sizes
from .c import DEVICE_HOST, Type


def type_of(dtype: Any) -> Type:
    """Of a dtype of any library, of a type such as ``numpy.float32``, or of a name."""
    names = (getattr(dtype, "name", None), getattr(dtype, "__name__", None), str(dtype).split(".")[-1])
    kind = next((TYPES[name] for name in names if name in TYPES), None)
    if kind is None and "numpy" in sys.modules:  # it knows more names, such as "f4"
        try:
            kind = TYPES.get(sys.modules["numpy"].dtype(dtype).name)
        except TypeError:
            pass
    if kind is None:
        raise TypeError(f"dtype: {dtype!r}, must be float16, bfloat16 or float32")
    return kind


def is_jax(array: Any) -> bool:
    return is_of(array, "jax", "Array")


def new_result(like: Any, a: Array, b: Array, dtype: Any, stream: int) -> Any:
    """Of the product of ``a``, which describes ``like``, and ``b``. stream: on which it will be computed. Memory of a
    GPU is asked for there, since the libraries order its reuse by streams."""
    m, n, _ = sizes(a.operand, b.operand)
    batch = next((x.operand.shape[:1] for x in (a, b) if len(x.operand.shape) == 3), ())
    shape = (*batch, m, n)
    kind = type_of(dtype) if dtype is not None else a.operand.type
    if is_of(like, "torch", "Tensor"):
        return _of_torch(shape, NAMES[kind], a.device, stream)
    if is_of(like, "cupy", "ndarray"):
        return _of_cupy(shape, kind, a.device, stream)
    if is_jax(like) and a.device != DEVICE_HOST:
        raise TypeError("out: JAX's arrays are immutable, so that it cannot be made here; hgemm.jax.matmul() makes it")
    if hasattr(like, "__array_interface__") or is_jax(like):
        import numpy
        return numpy.empty(shape, numpy_type(kind))
    raise TypeError(f"out: must be given where a is of a type such as {type(like).__name__}: results are made of "
                    "numpy, PyTorch, CuPy and JAX (on the CPU)")


def numpy_type(kind: Type) -> Any:
    if kind != Type.BF16:
        return NAMES[kind]
    import ml_dtypes
    return ml_dtypes.bfloat16


def _of_torch(shape: tuple[int, ...], name: str, device: int, stream: int) -> Any:
    torch = sys.modules["torch"]
    dtype = getattr(torch, name)
    if device == DEVICE_HOST:
        return torch.empty(shape, dtype=dtype, device="cpu")
    on = torch.cuda.ExternalStream(stream, device) if stream else torch.cuda.default_stream(device)
    with torch.cuda.stream(on):
        return torch.empty(shape, dtype=dtype, device=torch.device("cuda", device))


def _of_cupy(shape: tuple[int, ...], kind: Type, device: int, stream: int) -> Any:
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(device), cupy.cuda.ExternalStream(stream) if stream else cupy.cuda.Stream.null:
        return cupy.empty(shape, numpy_type(kind))


def as_jax(like: Any, result: Any) -> Any:
    """What is in numpy's array, on the device of JAX's."""
    return sys.modules["jax"].device_put(result, next(iter(like.devices())))
