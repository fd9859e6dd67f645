"""torch.ops.hgemm.*: the operators, with what torch.compile and autograd need of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from .. import c
from .._operand import Operand, activation_of, fits, gemm_args, leading
from . import _extension, _handles

HALF = (torch.float16, torch.bfloat16)
_TYPES = {torch.float16: c.Type.F16, torch.bfloat16: c.Type.BF16, torch.float32: c.Type.F32}

_library = torch.library.Library("hgemm", "DEF")
_ARGUMENTS = ("Tensor a, Tensor b, Tensor? c, Tensor? bias, float alpha, float beta, str activation, "
              "ScalarType? out_dtype, bool batch_invariant")
# D = activation(alpha * a @ b + beta * c + bias): (M, K) by (K, N), or batches of as many matrices. c and bias may be
# None, whatever beta is.
_library.define(f"gemm({_ARGUMENTS}) -> Tensor")
# Also the values before the activation, which its gradient needs.
_library.define(f"gemm_aux({_ARGUMENTS}) -> (Tensor, Tensor)")
_library.define(f"gemm_out({_ARGUMENTS.replace('ScalarType? out_dtype', 'Tensor(a!) out')}) -> ()")


class _Kind(NamedTuple):
    """All of a tensor that the arguments of a product depend on, but for its address."""
    device: torch.device
    dtype: torch.dtype
    shape: torch.Size
    strides: tuple[int, ...]

    @property
    def operand(self) -> Operand:
        return Operand(_TYPES[self.dtype], self.shape, self.strides)


def kind(tensor: Tensor) -> _Kind:
    return _Kind(tensor.device, tensor.dtype, tensor.shape, tensor.stride())


def kind_or_none(tensor: Tensor | None) -> _Kind | None:
    return None if tensor is None else kind(tensor)


def _require(right: bool, kind: type[Exception], text: str | Callable[[], str]) -> None:
    """text: or what makes it, as most calls do, since to make it takes longer than to see that nothing is wrong."""
    if not right:
        raise kind(text if isinstance(text, str) else text())


def require_tensors(**tensors: Any) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            found = "None" if tensor is None else f"{type(tensor).__module__}.{type(tensor).__qualname__}"
            raise TypeError(f"{name}: is {found}, must be a torch.Tensor")


def require_dimensions(dimensions: int, **tensors: Tensor) -> None:
    require_tensors(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() != dimensions:
            raise ValueError(f"{name}: {tensor.dim()} dimensions, must be {dimensions}")


class Names(NamedTuple):
    """What the function that was called calls its arguments."""
    a: str = "a"
    b: str = "b"
    c: str = "input"
    bias: str = "bias"
    dtype: str = "out_dtype"


def result_shape(a: _Kind, b: _Kind, c: _Kind | None, bias: _Kind | None, out_dtype: torch.dtype,
                 names: Names = Names()) -> tuple[int, ...]:
    """Raises what is wrong with the arguments of a product, naming one of them."""
    _require(a.dtype in HALF, TypeError,
             lambda: f"{names.a}: is {a.dtype}, must be torch.float16 or torch.bfloat16{_about_autocast(a.device)}")
    _require(b.dtype == a.dtype, TypeError, lambda: f"{names.b}: is {b.dtype}, must be {a.dtype} as {names.a}")
    _require(len(a.shape) in (2, 3), ValueError, lambda: f"{names.a}: {len(a.shape)} dimensions, must be 2 or 3")
    _require(len(b.shape) == len(a.shape), ValueError,
             lambda: f"{names.b}: {len(b.shape)} dimensions, must be {len(a.shape)} as {names.a}")
    _require(b.shape[:-1] == (*a.shape[:-2], a.shape[-1]), ValueError,
             lambda: f"{names.b}: its shape {tuple(b.shape)} does not fit that of {names.a}, {tuple(a.shape)}")
    _require(out_dtype in (a.dtype, torch.float32), TypeError,
             lambda: f"{names.dtype}: is {out_dtype}, must be {a.dtype} or torch.float32")
    shape = (*a.shape[:-1], b.shape[-1])
    for name, added, wanted in ((names.c, c, shape), (names.bias, bias, shape[-1:])):
        if added is not None:
            _require(added.dtype in (a.dtype, torch.float32), TypeError,
                     lambda: f"{name}: is {added.dtype}, must be {a.dtype} or torch.float32")
            _require(added.shape == wanted, ValueError,
                     lambda: f"{name}: its shape is {tuple(added.shape)}, must be {wanted}")
    for name, other in ((names.b, b), (names.c, c), (names.bias, bias)):
        _require(other is None or other.device == a.device, ValueError,
                 lambda: f"{name}: is on {other and other.device}, must be on {a.device} as {names.a}")
    return shape


def _about_autocast(device: torch.device) -> str:
    if device.type in ("cpu", "cuda") and torch.is_autocast_enabled(device.type):
        return "; hgemm.torch does not cast under autocast"
    return ""


def check(a: Tensor, b: Tensor, c_tensor: Tensor | None, bias: Tensor | None, out_dtype: torch.dtype | None,
          names: Names) -> tuple[int, ...]:
    """As result_shape()."""
    return result_shape(kind(a), kind(b), kind_or_none(c_tensor), kind_or_none(bias), out_dtype or a.dtype, names)


def raise_named(error: Exception, *arguments: Any) -> NoReturn:
    """What check() says of these arguments, else the error."""
    try:
        check(*arguments)
    except (TypeError, ValueError) as named:
        raise named from None
    raise error


def resize_empty(out: Tensor, *arguments: Tensor | None, names: Names) -> None:
    """As torch does before its own operators write: what has no elements takes the result's shape."""
    if out.numel() == 0:
        shape = check(*arguments, out.dtype, names)
        if out.shape != shape:
            out.resize_(shape)


class _Plan(NamedTuple):
    """How to run products of these kinds of tensors: arguments that lack addresses, and what is copied before."""
    args: c.Args
    shape: tuple[int, ...]
    copy_a: bool
    copy_b: bool
    copy_c: Callable[[Tensor], Tensor] | None
    copy_out: bool


def _readable(kind: _Kind) -> tuple[Operand, bool]:
    """As torch's own kernels do, this copies what BLAS cannot read, such as every second column."""
    if fits(kind.operand):
        return kind.operand, False
    return _contiguous(kind.dtype, kind.shape), True


def in_lines(x: Tensor) -> tuple[Tensor, int]:
    """x, or a copy, in rows that the C API addresses, and its leading dimension."""
    ld = leading(Operand(0, tuple(x.shape), x.stride()), c.Layout.ROW_MAJOR)
    return (x, ld) if ld is not None else (x.contiguous(), max(1, x.shape[1]))


def _contiguous(dtype: torch.dtype, shape: tuple[int, ...], row_major: bool = True) -> Operand:
    """What _copy_by_rows() or _copy_by_columns() return."""
    order = [*range(len(shape))] if row_major else [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    strides, step = [0] * len(shape), 1
    for i in reversed(order):
        strides[i] = step
        step *= shape[i]
    return Operand(_TYPES[dtype], shape, tuple(strides))


def _copy_by_rows(tensor: Tensor) -> Tensor:
    return tensor.contiguous()


def _copy_by_columns(tensor: Tensor) -> Tensor:
    return tensor.mT.contiguous().mT


@lru_cache(maxsize=4096)
def _plan(a: _Kind, b: _Kind, c_kind: _Kind | None, bias: _Kind | None, out: _Kind | None, out_dtype: torch.dtype,
          with_aux: bool, alpha: float, beta: float, activation: str, symmetric: bool) -> _Plan:
    """out: None is a new, contiguous tensor of out_dtype."""
    shape = result_shape(a, b, c_kind, bias, out_dtype)
    a_operand, copy_a = _readable(a)
    b_operand, copy_b = _readable(b)
    out_operand, copy_out = _contiguous(out_dtype, shape), False
    if out is not None:
        _require(out.shape == shape, ValueError, lambda: f"out: its shape is {tuple(out.shape)}, must be {shape}")
        _require(out.device == a.device, ValueError, lambda: f"out: is on {out.device}, must be on {a.device} as a")
        out_operand, copy_out = _readable(out)
    row_major = leading(out_operand, c.Layout.ROW_MAJOR) is not None
    extra: dict[str, Operand] = {"aux": out_operand} if with_aux else {}
    copy_c = None
    if c_kind is not None and beta != 0:
        extra["c"] = c_kind.operand
        if leading(c_kind.operand, c.Layout.ROW_MAJOR if row_major else c.Layout.COL_MAJOR) is None:
            copy_c = _copy_by_rows if row_major else _copy_by_columns
            extra["c"] = _contiguous(c_kind.dtype, shape, row_major)
    if bias is not None:
        extra["bias"] = _contiguous(bias.dtype, bias.shape)
    args = gemm_args(a_operand, b_operand, out_operand, alpha=alpha, beta=beta if "c" in extra else 0.0,
                     activation=activation_of(activation), symmetric=symmetric, **extra)
    return _Plan(args, shape, copy_a, copy_b, copy_c, copy_out)


def run(a: Tensor, b: Tensor, c_tensor: Tensor | None, bias: Tensor | None, alpha: float, beta: float,
         activation: str, out_dtype: torch.dtype | None, mode: int, out: Tensor | None = None,
         with_aux: bool = False, symmetric: bool = False) -> tuple[Tensor, Tensor | None]:
    """mode: of c.Mode; a bool is whether it is batch-invariant. symmetric: the result is known to be.

    Copies live until the kernel is on the stream, and torch's allocator keeps their memory for that stream."""
    plan = _plan(kind(a), kind(b), kind_or_none(c_tensor), kind_or_none(bias), kind_or_none(out),
                 out_dtype or a.dtype, with_aux, alpha, beta, activation, symmetric)
    result = out
    if out is None or plan.copy_out:
        result = a.new_empty(plan.shape, dtype=out_dtype)
    assert result is not None
    args = c.Args.from_buffer_copy(plan.args)
    if plan.copy_a:
        a = a.contiguous()
    if plan.copy_b:
        b = b.contiguous()
    args.a, args.b, args.d = a.data_ptr(), b.data_ptr(), result.data_ptr()
    if c_tensor is not None and beta != 0:
        if plan.copy_c is not None:
            c_tensor = plan.copy_c(c_tensor)
        args.c = c_tensor.data_ptr()
    if bias is not None:
        bias = bias.contiguous()
        args.bias = bias.data_ptr()
    aux = None
    if with_aux:
        aux = torch.empty_like(result)
        args.aux = aux.data_ptr()
    _handles.call(c.hgemm_gemm_ex, args, a.device, mode)
    if plan.copy_out and out is not None:
        return out.copy_(result), aux
    return result, aux


def _serve(a: Tensor, b: Tensor, c_tensor: Tensor | None, bias: Tensor | None, alpha: float, beta: float,
           activation: str, out_dtype: torch.dtype | None, batch_invariant: bool) -> Tensor | None:
    """By the extension; None: it leaves the product to run()."""
    matrix = c_tensor if beta != 0 else None
    added = matrix if bias is None else bias
    if out_dtype not in _extension.WIDTHS or (matrix is not None and bias is not None) or (
            added is None and alpha != 1) or (bias is not None and bias.dim() != 1):
        return None
    form = batch_invariant | _extension.WIDTHS[out_dtype] | activation_of(activation) << _extension.ACTIVATION_SHIFT
    if a.dim() == 3:
        form |= _extension.BATCHED
    return _extension.serve(a, b, form, added, alpha, beta if bias is None else 1.0)


def gemm(a: Tensor, b: Tensor, c: Tensor | None, bias: Tensor | None, alpha: float, beta: float, activation: str,
         out_dtype: torch.dtype | None, batch_invariant: bool) -> Tensor:
    served = _serve(a, b, c, bias, alpha, beta, activation, out_dtype, batch_invariant)
    return run(a, b, c, bias, alpha, beta, activation, out_dtype, batch_invariant)[0] if served is None else served


def gemm_aux(a: Tensor, b: Tensor, c: Tensor | None, bias: Tensor | None, alpha: float, beta: float,
              activation: str, out_dtype: torch.dtype | None, batch_invariant: bool) -> tuple[Tensor, Tensor | None]:
    return run(a, b, c, bias, alpha, beta, activation, out_dtype, batch_invariant, with_aux=True)


def gemm_out(a: Tensor, b: Tensor, c: Tensor | None, bias: Tensor | None, alpha: float, beta: float,
             activation: str, out: Tensor, batch_invariant: bool) -> None:
    run(a, b, c, bias, alpha, beta, activation, out.dtype, batch_invariant, out)


for _key in ("CPU", "CUDA"):
    for _kernel in (gemm, gemm_aux, gemm_out):
        _library.impl(_kernel.__name__, _extension.untraced(_kernel), _key)

GEMM, GEMM_AUX = torch.ops.hgemm.gemm.default, torch.ops.hgemm.gemm_aux.default
GEMM_OUT = torch.ops.hgemm.gemm_out.default


def split_input(input: Tensor, a: Tensor, b: Tensor, beta: float) -> tuple[Tensor | None, Tensor | None]:
    """What addmm() adds as a matrix and a bias, of which one is None. A row that is added to all others is a bias; what
    else is broadcast is a matrix, which costs a copy. It is not read if beta is 0, and has a gradient of zeros."""
    if beta == 1 and input.dim() == 1 and input.shape[0] == b.shape[-1]:
        return None, input
    shape = (*a.shape[:-1], b.shape[-1])
    try:
        expanded = input.expand(shape)
    except RuntimeError as error:
        raise ValueError(f"input: its shape {tuple(input.shape)} cannot be expanded to {tuple(shape)}") from error
    return expanded, None
