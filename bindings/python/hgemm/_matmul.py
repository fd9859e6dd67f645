"""hgemm.matmul() and what it is made of."""

from __future__ import annotations

from typing import Any

from . import c
from ._arrays import Array, describe
from ._handle import Handle, Pool
from ._operand import activation_of, gemm_args


#: Of GPU memory, for each stream and each captured graph at most: what a handle takes on an H100.
WORKSPACE_BYTES = 192 << 20


def _create(device: int, stream: int) -> Handle:
    if device == c.DEVICE_HOST:
        return Handle(device)
    handle = Handle(device, workspace_bytes=0)
    handle.workspace_per_stream = WORKSPACE_BYTES
    if stream:
        handle.stream = stream
    return handle


_pool = Pool[Handle](_create)


def _new_result(a: Any, b: Any, dtype: Any) -> Any:
    if not (hasattr(a, "__array_interface__") and hasattr(b, "__array_interface__")):
        raise TypeError("out: must be given where a or b is no numpy array")
    import numpy
    batch = next((x.shape[:1] for x in (a, b) if x.ndim == 3), ())
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError(f"{'a' if a.ndim < 2 else 'b'}: {min(a.ndim, b.ndim)} dimensions, must be 2 or 3")
    return numpy.empty((*batch, a.shape[-2], b.shape[-1]), dtype or a.dtype)


def _stream_of(stream: Any, arrays: list[Array]) -> int:
    """The caller's choice, else that on which the arrays are written, else the default stream."""
    if stream is not None:
        for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
            if hasattr(stream, attribute):
                return int(getattr(stream, attribute))
        if hasattr(stream, "__cuda_stream__"):
            return int(stream.__cuda_stream__()[1])
        return int(stream)
    found = {array.stream for array in arrays} - {None}
    if len(found) > 1:
        raise ValueError("stream: the arrays are written on different streams; name the one to run on")
    return found.pop() or 0 if found else 0


class _Product:
    """Arguments with what keeps their memory, and where to run them."""

    def __init__(self, a: Any, b: Any, out: Any, c_matrix: Any, alpha: float, beta: float | None, bias: Any,
                 activation: Any, aux: Any, stream: Any) -> None:
        named = {"a": a, "b": b, "out": out, "c": c_matrix, "bias": bias, "aux": aux}
        given = None if stream is None else _stream_of(stream, [])
        arrays = _described(named, given)
        self.device = arrays["out"].device
        for name, array in arrays.items():
            if array.device != self.device:
                raise ValueError(f"{name}: lies on {_place(array.device)}, and out on {_place(self.device)}")
            if array.read_only and name in ("out", "aux"):
                raise ValueError(f"{name}: is read-only")
        self.stream = _stream_of(stream, list(arrays.values())) if self.device != c.DEVICE_HOST else 0
        if self.stream != (given or 0):  # so that those of DLPack wait for it
            arrays = _described(named, self.stream)
        self.owners = arrays
        optional = {name: arrays[name].operand for name in ("c", "bias", "aux") if name in arrays}
        self.args = gemm_args(arrays["a"].operand, arrays["b"].operand, arrays["out"].operand, **optional,
                              alpha=alpha, beta=beta if beta is not None else float(c_matrix is not None),
                              activation=activation_of(activation))
        self.args.d = arrays["out"].address
        for name in arrays.keys() - {"out"}:
            setattr(self.args, name, arrays[name].address)


def _described(named: dict[str, Any], stream: int | None) -> dict[str, Array]:
    return {name: describe(name, array, stream) for name, array in named.items() if array is not None}


def _place(device: int) -> str:
    return "the CPU" if device == c.DEVICE_HOST else f"CUDA device {device}"


def arguments(a: Any, b: Any, out: Any, *, c: Any = None, alpha: float = 1.0, beta: float | None = None,
              bias: Any = None, activation: str | c.Activation | None = None, aux: Any = None) -> c.Args:
    """The arguments of :func:`matmul` as the C API takes them, for ``Handle.explain()``, ``tune()`` and ``gemm()``.

    They hold addresses alone: keep the arrays.
    """
    return _Product(a, b, out, c, alpha, beta, bias, activation, aux, None).args


def matmul(a: Any, b: Any, out: Any = None, *, c: Any = None, alpha: float = 1.0, beta: float | None = None,
           bias: Any = None, activation: str | c.Activation | None = None, aux: Any = None, dtype: Any = None,
           handle: Handle | None = None, stream: Any = None) -> Any:
    """out = activation(alpha * a @ b + beta * c + bias), with fp32 sums that are rounded once; returns out.

    ``a``: (M, K) or (batch, M, K), ``b``: (K, N) or (batch, K, N), both float16 or both bfloat16. ``out``, ``c`` and
    ``aux``: (M, N) or (batch, M, N), float16, bfloat16 or float32. A matrix without a batch is shared by all problems.
    ``beta`` is 1 where there is a ``c``; ``c`` may be ``out``. ``bias``: (N,), (1, N) or (M, 1). ``activation``:
    "relu", "gelu_tanh", "gelu_erf" or "silu". ``aux`` receives the values before the activation.

    Arrays are numpy's, or have ``__dlpack__`` or ``__cuda_array_interface__``; all lie on one device. ``out`` may be
    left out for numpy arrays alone, and is then of ``dtype``, or of the type of ``a``. Rows or columns of a matrix must
    be contiguous, as in slices and transposes: nothing is copied. Otherwise, and for wrong shapes and types, ValueError
    or TypeError names the argument; :class:`hgemm.Error` is what the library refuses.

    On a GPU the product runs on ``stream`` (an address, or a stream of PyTorch or CuPy), else on that of the arrays
    (CUDA array interface), else on the default stream, and the call returns before it has ended. ``handle`` runs it
    with that handle's settings, on ``stream`` if one is given. Without, there is a handle for each device and stream.
    """
    if out is None:
        out = _new_result(a, b, dtype)
    elif dtype is not None:
        raise ValueError("dtype: must not be given with out")
    if stream is None and handle is not None:
        stream = handle.stream
    product = _Product(a, b, out, c, alpha, beta, bias, activation, aux, stream)
    if handle is not None:
        if handle.device != product.device:
            raise ValueError(f"handle: is for {_place(handle.device)}, and out lies on {_place(product.device)}")
        if handle.stream != product.stream:
            handle.stream = product.stream
        handle.gemm(product.args)
        return out
    key = product.device, product.stream
    lent = _pool.take(*key)
    try:
        lent.gemm(product.args)
    finally:
        _pool.give_back(lent, *key)
    return out
