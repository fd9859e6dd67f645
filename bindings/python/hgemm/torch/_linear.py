"""linear() of plain tensors that need a gradient, by the extension: in as few calls as there are kernels."""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch import Tensor

from . import _autograd, _extension
from ._extension import LINEAR, OUTER, may_differentiate, serve_plain


def as_rows(x: Tensor) -> Tensor:
    return x if x.dim() == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _multiply(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
    return _autograd.gemm(a, b, None, None, 1.0, 0.0, "none", None, ctx.batch_invariant)


def gradients(ctx: Any, input: Tensor, weight: Tensor, grad: Tensor) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """Of input and weight, from that of their product, whose rows may be those of a matrix. That of weight is stored as
    weight is: torch would copy it else."""
    of_input = of_weight = None
    if ctx.needs_input_grad[0]:
        of_input = serve_plain(grad, weight.t(), ctx.batch_invariant | LINEAR)
        if of_input is None:
            of_input = _multiply(ctx, as_rows(grad), weight)
        if of_input.dim() != input.dim():
            of_input = of_input.reshape(input.shape)
    if ctx.needs_input_grad[1]:
        is_row_major = weight.stride(1) == 1
        if is_row_major:
            of_weight = serve_plain(grad, input, ctx.batch_invariant | OUTER)
        if of_weight is None:
            input, grad = as_rows(input), as_rows(grad)
            of_weight = _multiply(ctx, grad.t(), input) if is_row_major else _multiply(ctx, input.t(), grad).t()
    return of_input, of_weight


class _Linear(torch.autograd.Function):
    """Of a product that is there already; in a tuple, since it is no argument to torch."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor, bias: Tensor | None, results: tuple[Tensor],
                batch_invariant: bool) -> Tensor:
        ctx.save_for_backward(input, weight)
        ctx.set_materialize_grads(False)
        ctx.batch_invariant, ctx.bias_dtype = batch_invariant, getattr(bias, "dtype", None)
        return results[0]

    @staticmethod
    def backward(ctx: Any, grad: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
        if grad is None:
            return (None,) * 5
        of_bias = None
        if ctx.needs_input_grad[2]:
            of_bias = as_rows(grad).sum(0, dtype=torch.float32).to(ctx.bias_dtype)
        return *gradients(ctx, *ctx.saved_tensors, grad), of_bias, None, None


def linear(input: Tensor, weight: Tensor, bias: Tensor | None, batch_invariant: bool) -> Tensor | None:
    """None: the operators have to find out what to do."""
    if not may_differentiate(input, weight, bias):
        return None
    form = batch_invariant | LINEAR
    result = _extension.serve(input, weight, form, bias)
    return None if result is None else _Linear.apply(input, weight, bias, (result,), batch_invariant)
