"""hgemm.matmul(), hgemm.syrk() and what they are made of."""

from __future__ import annotations

from typing import Any

from . import c
from ._arrays import WRITTEN, Array, describe, stream_address
from ._handle import Handle, Pool
from ._operand import activation_of, gemm_args, require_dimensions, require_shape, transposed
from ._results import as_jax, is_jax, new_result


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


def _stream_of(arrays: list[Array]) -> int:
    """That on which the arrays are written, else the default stream."""
    found = {array.stream for array in arrays} - {None}
    if len(found) > 1:
        raise ValueError("stream: the arrays are written on different streams; name the one to run on")
    return found.pop() or 0 if found else 0


class _Product:
    """Arguments with what keeps their memory, and where to run them. out: None is a new one. symmetric: it is known to
    be, and b is transposed."""

    def __init__(self, a: Any, b: Any, out: Any, dtype: Any, stream: Any, c_matrix: Any, alpha: float,
                 beta: float | None, bias: Any = None, activation: Any = None, aux: Any = None, *,
                 symmetric: bool = False) -> None:
        named = {"out": out, "a": a, "b": b, "c": c_matrix, "bias": bias, "aux": aux}
        named = {name: array for name, array in named.items() if array is not None or name in ("a", "b")}
        given = None if stream is None else stream_address(stream)
        arrays = _described(named, given, symmetric)
        first = next(iter(arrays))
        self.device = arrays[first].device
        for name, array in arrays.items():
            if array.device != self.device:
                raise ValueError(f"{name}: lies on {_place(array.device)}, and {first} on {_place(self.device)}")
            if array.read_only and name in WRITTEN:
                raise ValueError(f"{name}: is read-only")
        self.stream = given if given is not None else _stream_of(list(arrays.values()))
        if self.device == c.DEVICE_HOST:
            self.stream = 0
        if self.stream != (given or 0):  # so that those of DLPack wait for it
            arrays = _described(named, self.stream, symmetric)
        if out is None:
            out = new_result(a, arrays["a"], arrays["b"], dtype, self.stream)
            arrays["out"] = describe("out", out, self.stream)
        self.out, self.owners = out, arrays
        self.args = _args_of(arrays, alpha, beta, activation, symmetric)


def _args_of(arrays: dict[str, Array], alpha: float, beta: float | None, activation: Any, symmetric: bool) -> c.Args:
    has_c = "c" in arrays
    beta = float(has_c) if beta is None else c.real("beta", beta)
    if beta != 0 and not has_c:
        raise ValueError("c: must be given where beta is not 0")
    optional = {name: arrays[name].operand for name in ("c", "bias", "aux") if name in arrays}
    args = gemm_args(arrays["a"].operand, arrays["b"].operand, arrays["out"].operand, **optional, alpha=alpha,
                     beta=beta, activation=activation_of(activation), symmetric=symmetric)
    args.d = arrays["out"].address
    for name in arrays.keys() - {"out"}:
        setattr(args, name, arrays[name].address)
    return args


def _described(named: dict[str, Any], stream: int | None, symmetric: bool) -> dict[str, Array]:
    arrays = {name: describe(name, array, stream) for name, array in named.items()}
    if symmetric:
        require_dimensions("a", arrays["a"].operand)
        require_shape("b", arrays["b"].operand, *arrays["a"].operand.shape[-2:])
        arrays["b"] = arrays["b"]._replace(operand=transposed(arrays["b"].operand))
    return arrays


def _place(device: int) -> str:
    return "the CPU" if device == c.DEVICE_HOST else f"CUDA device {device}"


def arguments(a: Any, b: Any, out: Any, *, c: Any = None, alpha: float = 1.0, beta: float | None = None,
              bias: Any = None, activation: str | c.Activation | None = None, aux: Any = None) -> c.Args:
    """The arguments of :func:`matmul` as the C API takes them, for ``Handle.explain()``, ``tune()`` and ``gemm()``.

    They hold addresses alone: keep the arrays.
    """
    if out is None:
        raise TypeError("out: must be given")
    return _Product(a, b, out, None, None, c, alpha, beta, bias, activation, aux).args


def matmul(a: Any, b: Any, out: Any = None, *, c: Any = None, alpha: float = 1.0, beta: float | None = None,
           bias: Any = None, activation: str | c.Activation | None = None, aux: Any = None, dtype: Any = None,
           handle: Handle | None = None, stream: Any = None) -> Any:
    """out = activation(alpha * a @ b + beta * c + bias), with fp32 sums that are rounded once; returns out.

    ``a``: (M, K) or (batch, M, K), ``b``: (K, N) or (batch, K, N), both float16 or both bfloat16. ``out``, ``c`` and
    ``aux``: (M, N) or (batch, M, N), float16, bfloat16 or float32. A matrix without a batch is shared by all problems.
    ``beta`` is 1 where there is a ``c``; ``c`` may be ``out``. ``bias``: (N,), (1, N) or (M, 1). ``activation``:
    "relu", "gelu_tanh", "gelu_erf" or "silu". ``aux`` receives the values before the activation.

    Arrays are numpy's, or have ``__dlpack__`` or ``__cuda_array_interface__``; all lie on one device. Without ``out``
    the result is a new array of the library of ``a`` (numpy, PyTorch, CuPy, or JAX on the CPU) and of ``dtype``, or of
    the type of ``a``. Rows or columns of a matrix must be contiguous, as in slices and transposes: nothing is copied.
    Otherwise, and for wrong shapes, types and numbers, ValueError or TypeError names the argument. An ``out`` that is
    read-only, as JAX's arrays are, is a ValueError as well. :class:`hgemm.Error` is what the library refuses.

    On a GPU the product runs on ``stream`` (an address, or a stream of PyTorch or CuPy), else on that of the arrays
    (CUDA array interface), else on the default stream, and the call returns before it has ended. ``handle`` runs it
    with that handle's settings, on ``stream`` if one is given. Without, there is a handle for each device and stream.
    """
    return _multiply(a, b, out, dtype, handle, stream, c, alpha, beta, bias, activation, aux)


def syrk(a: Any, out: Any = None, *, c: Any = None, alpha: float = 1.0, beta: float | None = None, dtype: Any = None,
         handle: Handle | None = None, stream: Any = None) -> Any:
    """out = alpha * a @ a.T + beta * c, symmetric bit for bit; returns out. A large one takes half of the work.

    ``a``: (N, K) or (batch, N, K). ``out`` and ``c``: (N, N) or (batch, N, N). What is above the diagonal of ``c``, and
    the diagonal, counts for both halves. All else is as for :func:`matmul`.
    """
    return syrkx(a, a, out, c=c, alpha=alpha, beta=beta, dtype=dtype, handle=handle, stream=stream)


def syrkx(a: Any, b: Any, out: Any = None, *, c: Any = None, alpha: float = 1.0, beta: float | None = None,
          dtype: Any = None, handle: Handle | None = None, stream: Any = None) -> Any:
    """out = alpha * a @ b.T + beta * c as :func:`syrk`, where the caller knows that the product is symmetric.

    So it is if ``b`` is ``a`` times a symmetric matrix, or if both are powers of one symmetric matrix. ``b`` has the
    shape of ``a``. Of other products the half above the diagonal is computed, and mirrored.
    """
    return _multiply(a, b, out, dtype, handle, stream, c, alpha, beta, symmetric=True)


def _multiply(a: Any, b: Any, out: Any, dtype: Any, handle: Handle | None, stream: Any, *rest: Any,
              symmetric: bool = False) -> Any:
    """rest: of _Product, from c on."""
    if out is not None and dtype is not None:
        raise ValueError("dtype: must not be given with out")
    if handle is not None and not isinstance(handle, Handle):
        raise TypeError(f"handle: {type(handle).__name__}, must be an hgemm.Handle")
    if out is None and is_jax(a):
        operands = _described({"a": a, "b": b}, None, symmetric)
        result = new_result(a, operands["a"], operands["b"], dtype, 0)
        _multiply(a, b, result, None, handle, None, *rest, symmetric=symmetric)
        return as_jax(a, result)
    if stream is None and handle is not None:
        stream = handle.stream
    product = _Product(a, b, out, dtype, stream, *rest, symmetric=symmetric)
    out = product.out
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
