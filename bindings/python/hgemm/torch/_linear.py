"""Linear layers of plain tensors that need a gradient, by the extension: in as few calls as there are kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Optional

import torch
from torch import Tensor

from .._operand import activation_of
from . import _autograd, _ops
from ._extension import ACTIVATION_SHIFT, LINEAR, OUTER, may_differentiate, serve, serve_aux, serve_plain


def _as_rows(x: Tensor) -> Tensor:
    return x if x.dim() == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _gradients(ctx: Any, input: Tensor, weight: Tensor, grad: Tensor) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """Of input and weight, from that of their product, whose rows may be those of a matrix. The extension first."""
    of_input = of_weight = None

    def left(*needed: bool) -> tuple[Optional[Tensor], Optional[Tensor]]:
        return _autograd.factor_gradients(needed, _as_rows(input), weight.t(), _as_rows(grad), ctx.batch_invariant)

    if ctx.needs_input_grad[0]:
        of_input = serve_plain(grad, weight.t(), ctx.batch_invariant | LINEAR)
        if of_input is None:
            of_input = left(True, False)[0]
        if of_input.dim() != input.dim():
            of_input = of_input.reshape(input.shape)
    if ctx.needs_input_grad[1]:
        if weight.stride(1) == 1:  # as that of weight will be
            of_weight = serve_plain(grad, input, ctx.batch_invariant | OUTER)
        if of_weight is None:
            of_weight = left(False, True)[1].t()
    return of_input, of_weight


class _Served(torch.autograd.Function):
    """Of results that are there already, in a tuple since they are no arguments to torch. With a derivative, a function
    of product and gradient, the second is the product before it."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor, bias: Tensor | None, results: tuple[Tensor, ...],
                derivative: Callable[[Tensor, Tensor], Tensor] | None, batch_invariant: bool) -> Any:
        ctx.save_for_backward(input, weight, *results[1:])
        ctx.set_materialize_grads(False)
        ctx.derivative, ctx.batch_invariant, ctx.bias_dtype = derivative, batch_invariant, getattr(bias, "dtype", None)
        return results if derivative is not None else results[0]

    @staticmethod
    def backward(ctx: Any, grad: Optional[Tensor], of_product: Optional[Tensor] = None) -> tuple[Optional[Tensor], ...]:
        if grad is None and of_product is None:
            return (None,) * 6
        input, weight, *product = ctx.saved_tensors
        if ctx.derivative is not None and grad is not None:
            grad = ctx.derivative(*product, _as_rows(grad))
        if of_product is not None:
            grad = of_product if grad is None else grad + of_product
        of_bias = None
        if ctx.needs_input_grad[2]:
            of_bias = _as_rows(grad).sum(0, dtype=torch.float32).to(ctx.bias_dtype)
        return *_gradients(ctx, input, weight, grad.to(input.dtype)), of_bias, None, None, None


def _computed(kernel: Callable[[Tensor, Tensor], tuple[Tensor, ...]], input: Tensor,
              weight: Tensor) -> tuple[Tensor, ...] | None:
    """What the extension has left, so that the same tensors are saved whoever computes: a checkpoint that computes again
    compares them. None where an argument is wrong, and other code knows its name."""
    if input.dim() == 0 or weight.dim() != 2 or input.shape[-1] != weight.shape[1]:
        return None
    try:
        with torch.no_grad():
            result, *others = kernel(_as_rows(input), weight.t())
            return result.reshape(*input.shape[:-1], result.shape[1]), *others
    except (TypeError, ValueError):
        return None


def linear(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None,
           batch_invariant: bool) -> Tensor | None:
    """None: the operators have to find out what to do."""
    if not may_differentiate(input, weight, bias):
        return None
    options = None, bias, 1.0, 0.0, activation or "none", None, batch_invariant
    if activation in (None, "none"):
        result = serve(input, weight, batch_invariant | LINEAR, bias)
        results = (result,) if result is not None else _computed(lambda a, b: (_ops.gemm(a, b, *options),), input, weight)
        return None if results is None else _Served.apply(input, weight, bias, results, None, batch_invariant)
    return activated(input, weight, bias, partial(_autograd.activation_backward, activation),
                     lambda a, b: _ops.gemm_aux(a, b, *options), batch_invariant,
                     activation_of(activation) << ACTIVATION_SHIFT)


def activated(input: Tensor, weight: Tensor, bias: Tensor | None, derivative: Callable[[Tensor, Tensor], Tensor],
              kernel: Callable[[Tensor, Tensor], tuple[Tensor, ...]], batch_invariant: bool, form: int,
              *gate: Any) -> Tensor | None:
    """The same of an activation or a gate, of tensors that may_differentiate(). kernel: what computes it otherwise."""
    results = serve_aux(input, weight, bias, form | batch_invariant | LINEAR, *gate)
    if results[0] is None:
        results = _computed(kernel, input, weight)
    return None if results is None else _Served.apply(input, weight, bias, results, derivative, batch_invariant)[0]
