"""Symmetric results, large ones by half of the work of a product: the operators, their shapes and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._operand import fits
from . import _autograd, _extension, _ops
from ._autograd import Differentiable
from ._extension import BATCHED, SYMMETRIC, WIDTHS, serve_plain
from ._ops import _require, kind, require_tensors
from ._overrides import mode

_ARGUMENTS = "Tensor? c, float alpha, float beta, ScalarType? out_dtype, bool batch_invariant"
# alpha * a @ a.mT + beta * c: a is (N, K), or a batch.
_ops._library.define(f"syrk(Tensor a, {_ARGUMENTS}) -> Tensor")
# alpha * a @ b.mT + beta * c, which the caller knows to be symmetric.
_ops._library.define(f"syrkx(Tensor a, Tensor b, {_ARGUMENTS}) -> Tensor")


def _check(a: Tensor, b: Tensor, c: Tensor | None, out_dtype: torch.dtype | None) -> tuple[int, ...]:
    """The result's shape. Raises what is wrong, naming the argument of syrk() or syrkx()."""
    for name, x in (("a", a), ("b", b)):
        _require(x.dim() in (2, 3), ValueError, f"{name}: {x.dim()} dimensions, must be 2 or 3")
    _require(b.shape == a.shape, ValueError, f"b: its shape is {tuple(b.shape)}, must be {tuple(a.shape)} as that of a")
    return _ops.check(a, b.mT, c, None, out_dtype, _ops.Names(c="c"))


def _run_syrk(a: Tensor, c: Tensor | None, alpha: float, beta: float, out_dtype: torch.dtype | None,
              batch_invariant: bool) -> Tensor:
    _check(a, a, c, out_dtype)
    if not fits(kind(a).operand):
        a = a.contiguous()  # once for both factors
    return _ops.run(a, a.mT, c, None, alpha, beta, "none", out_dtype, batch_invariant, symmetric=True)[0]


def _run_syrkx(a: Tensor, b: Tensor, c: Tensor | None, alpha: float, beta: float, out_dtype: torch.dtype | None,
               batch_invariant: bool) -> Tensor:
    _check(a, b, c, out_dtype)
    return _ops.run(a, b.mT, c, None, alpha, beta, "none", out_dtype, batch_invariant, symmetric=True)[0]


for _key in ("CPU", "CUDA"):
    _ops._library.impl("syrk", _extension.untraced(_run_syrk), _key)
    _ops._library.impl("syrkx", _extension.untraced(_run_syrkx), _key)
SYRK, SYRKX = torch.ops.hgemm.syrk.default, torch.ops.hgemm.syrkx.default


@torch.library.register_fake("hgemm::syrk")
def _syrk_fake(a: Tensor, c: Tensor | None, alpha: float, beta: float, out_dtype: torch.dtype | None,
               batch_invariant: bool) -> Tensor:
    return a.new_empty(_check(a, a, c, out_dtype), dtype=out_dtype)


@torch.library.register_fake("hgemm::syrkx")
def _syrkx_fake(a: Tensor, b: Tensor, c: Tensor | None, alpha: float, beta: float, out_dtype: torch.dtype | None,
                batch_invariant: bool) -> Tensor:
    return a.new_empty(_check(a, b, c, out_dtype), dtype=out_dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *factors, c, ctx.alpha, ctx.beta, _, ctx.batch_invariant = inputs
    ctx.save_for_backward(*factors)
    ctx.c_dtype = getattr(c, "dtype", None)


def _product(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
    return _autograd.product(a, b, ctx.batch_invariant, ctx.alpha)


def _of_c(ctx: Any, grad: Tensor) -> Optional[Tensor]:
    return (grad * ctx.beta).to(ctx.c_dtype) if ctx.needs_input_grad[-5] else None


def _syrk_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    a, = ctx.saved_tensors
    grad_a = _product(ctx, (grad + grad.mT).to(a.dtype), a) if ctx.needs_input_grad[0] else None
    return grad_a, _of_c(ctx, grad), None, None, None, None


def _syrkx_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    a, b = ctx.saved_tensors
    half = grad.to(a.dtype)
    grad_a = _product(ctx, half, b) if ctx.needs_input_grad[0] else None
    grad_b = _product(ctx, half.mT, a) if ctx.needs_input_grad[1] else None
    return grad_a, grad_b, _of_c(ctx, grad), None, None, None, None


_SYRK = Differentiable(SYRK, _run_syrk, _save, _syrk_backward)
_SYRKX = Differentiable(SYRKX, _run_syrkx, _save, _syrkx_backward)


def _serve(a: Tensor, b: Tensor, c: Tensor | None, alpha: float, beta: float, out_dtype: torch.dtype | None,
           flags: int) -> Tensor | None:
    """By the extension; None: it leaves alpha * a @ b + beta * c to the operators."""
    added = c is not None and beta != 0 and c.dim() == a.dim()
    if out_dtype not in WIDTHS or not (added or (c is None and alpha == 1 and beta == 0)):
        return None
    form = mode.now.batch_invariant | WIDTHS[out_dtype] | flags | (BATCHED if a.dim() == 3 else 0)
    return serve_plain(a, b, form, c, alpha, beta)


def _call(way: Differentiable, factors: tuple[Tensor, ...], c: Tensor | None, alpha: float, beta: float | None,
          out_dtype: torch.dtype | None) -> Tensor:
    if c is not None:
        require_tensors(c=c)
    beta = float(c is not None) if beta is None else beta
    a, b = factors[0], factors[-1]
    if a.dim() in (2, 3) and b.dim() == a.dim():
        served = _serve(a, b.mT, c, alpha, beta, out_dtype, SYMMETRIC)
        if served is not None:
            return served
    _require(c is not None or beta == 0, ValueError, "c: must be given where beta is not 0")
    return way.of(*factors, c)(*factors, c, float(alpha), float(beta), out_dtype, mode.batch_invariant)


def syrk(a: Tensor, *, alpha: float = 1, beta: Optional[float] = None, c: Optional[Tensor] = None,
         out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """alpha * a @ a.mT + beta * c, symmetric bit for bit. A large one takes about half of the work of a product.

    ``a``: (N, K) or (batch, N, K). ``c``: (N, N) or (batch, N, N), of which the half above the diagonal counts, and
    the diagonal; pass a symmetric one, for which its gradient, beta times the result's, is right. ``beta`` is 1 by
    default if there is a ``c``, and must be 0 without one. ``out_dtype`` may be torch.float32.
    """
    require_tensors(a=a)
    return _call(_SYRK, (a,), c, alpha, beta, out_dtype)


def syrkx(a: Tensor, b: Tensor, *, alpha: float = 1, beta: Optional[float] = None, c: Optional[Tensor] = None,
          out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """alpha * a @ b.mT + beta * c as :func:`syrk`, where the caller knows that the product is symmetric.

    So it is if ``b`` is ``a`` times a symmetric matrix, or if both are powers of one symmetric matrix. Of other
    products the half above the diagonal is computed, and mirrored. Gradients are those of the plain product.
    """
    require_tensors(a=a, b=b)
    return _call(_SYRKX, (a, b), c, alpha, beta, out_dtype)


# Elements of Gram matrices that are computed whole: with a C, mirroring one half takes as long as computing it.
_SMALL_GRAM = 2048**2
# Larger matrices fill a GPU one by one, without copies of all of them: 8 of 4096 x 14336 49.4 ms, as a batch 52.0
# (H200).
_MOST_ROWS_OF_BATCH = 2048


def _add_product(c: Tensor, a: Tensor, b: Tensor, alpha: float, beta: float) -> Tensor:
    """alpha * a @ b + beta * c."""
    served = _serve(a, b, c, alpha, beta, None, 0)
    if served is not None:
        return served
    return _autograd.gemm(a, b, c, None, alpha, beta, "none", None, mode.batch_invariant)


def newton_schulz(x: Tensor | Sequence[Tensor], steps: int = 5,
                  coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
                  eps: float = 1e-7) -> Tensor | list[Tensor]:
    """The orthogonalisation of torch.optim.Muon: x's singular vectors, with singular values between 0.6 and 1.3.

    ``x``: (M, N), or a batch of matrices, (batch, M, N), each orthogonalised by itself, of any floating type; the
    result is bfloat16, and equals torch's up to rounding. Or a list or tuple of such tensors, and the result a list:
    matrices of one shape and device, or of the transposed shape, are one batch, but for those with more than 2,048
    rows and columns. A step makes a polynomial of x and of its Gram matrix A = x @ x.mT (where M > N, of the
    transpose): ``coefficients[0] * x + (coefficients[1] * A + coefficients[2] * A @ A) @ x``. Both A and the
    polynomial of A are symmetric, so that half of them is computed where they are large. ``eps``: the least norm by
    which x is divided.
    """
    several = isinstance(x, (list, tuple))
    for name, tensor in [(f"x[{i}]", each) for i, each in enumerate(x)] if several else [("x", x)]:
        require_tensors(**{name: tensor})
        _require(tensor.dim() in (2, 3), ValueError, f"{name}: {tensor.dim()} dimensions, must be 2 or 3")
        _require(tensor.is_floating_point(), TypeError, f"{name}: is {tensor.dtype}, must be of a floating type")
    _require(len(coefficients) == 3, ValueError, f"coefficients: {len(coefficients)} of them, must be 3")
    if several:
        return _orthogonal_list(x, steps, coefficients, eps)
    return _turned_as(x, _orthogonal(_wide(x).bfloat16(), steps, coefficients, eps))


def _wide(x: Tensor) -> Tensor:
    """x, or its transpose, so that M <= N."""
    return x.mT if x.shape[-2] > x.shape[-1] else x


def _turned_as(x: Tensor, result: Tensor) -> Tensor:
    """What was made of _wide(x), in the shape of x."""
    return result if result.shape == x.shape else result.mT


def _orthogonal_list(tensors: Sequence[Tensor], steps: int, coefficients: tuple[float, float, float],
                     eps: float) -> list[Tensor]:
    """Tensors of one shape, or of the transposed shape, as one batch."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for i, x in enumerate(tensors):
        alike.setdefault((*_wide(x).shape[-2:], x.device), []).append(i)
    results = list(tensors)
    for (rows, *_), places in alike.items():
        if rows > _MOST_ROWS_OF_BATCH:
            for i in places:
                results[i] = newton_schulz(tensors[i], steps, coefficients, eps)
            continue
        parts = [_wide(tensors[i]).bfloat16() for i in places]
        parts = [part if part.dim() == 3 else part[None] for part in parts]
        batch = _orthogonal(torch.cat(parts) if len(parts) > 1 else parts[0], steps, coefficients, eps)
        for i, part in zip(places, batch.split([len(part) for part in parts])):
            results[i] = _turned_as(tensors[i], part if tensors[i].dim() == 3 else part[0])
    return results


def _orthogonal(x: Tensor, steps: int, coefficients: tuple[float, float, float], eps: float) -> Tensor:
    """Of matrices of bfloat16 with M <= N."""
    a, b, c = coefficients
    norm = x.norm(dim=(-2, -1), keepdim=True).clamp(min=eps)
    result = (x / norm).bfloat16()
    for _ in range(steps):
        gram = syrk(result)
        if gram.numel() > _SMALL_GRAM:
            update = syrk(gram, alpha=c, beta=b, c=gram)
        else:
            update = _add_product(gram, gram, gram.mT, float(c), float(b))
        result = _add_product(result, update, result, 1.0, float(a))
    return result
