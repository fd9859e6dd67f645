"""Gated products: their gradients, and the functions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from .._operand import ACTIVATIONS
from . import _autograd, _gate_products, _groups, _linear, _ops
from ._autograd import _SATURATED, Differentiable
from ._extension import LINEAR, is_plain, may_differentiate, needs_gradient, serve_gated
from ._gate_products import GATE_GRADIENT, GATED, GATED_AUX, GROUPED_GATED_MM, GROUPED_GATED_MM_AUX, Gate
from ._ops import _require, kind, kind_or_none, require_dimensions, require_tensors
from ._overrides import mode

_LARGEST, _SMALLEST = torch.finfo(torch.float32).max, 2.0**-149


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {value!r}, must be a number") from None
    _require(abs(number) <= _LARGEST, ValueError, f"{name}: {number}, must be finite in float32")  # no NaN either
    return number


def _positive(name: str, value: Any) -> float:
    number = _finite(name, value)
    _require(number >= _SMALLEST, ValueError, f"{name}: {number}, must be positive in float32")
    return number


def gate_of(columns: int, weight: str, activation: Optional[str], block: Optional[int], limit: Optional[float],
            slope: Optional[float], offset: float) -> Gate:
    """From arguments of functions, for so many columns. Raises what is wrong with one; `weight` has the columns."""
    _require(activation in ACTIVATIONS, ValueError,
             f"activation: {activation!r}, must be one of {', '.join(map(str, ACTIVATIONS))}")
    _require(columns % 2 == 0, ValueError, f"{weight}: gives {columns} columns, must be gates and as many up elements")
    if block is None:
        block = max(columns // 2, 1)
    else:
        _require(isinstance(block, (int, torch.SymInt)), TypeError, f"gate_block: {block!r}, must be an integer")
        _require(block > 0 and columns % (2 * block) == 0, ValueError,
                 f"gate_block: {block}, must be positive, and twice of it must divide {columns}, the columns of "
                 f"{weight}")
    _require(slope is None or activation == "silu", ValueError, f"slope: {slope}, must be None but for silu")
    return Gate(activation or "none", block, 0.0 if limit is None else _positive("limit", limit),
                0.0 if slope is None else _positive("slope", slope), _finite("offset", offset))


def _activate(gate: Gate, gates: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """activation(gates), and its derivative times grad."""
    if gate.activation == "none":
        return gates, grad
    if gate.activation == "relu":
        return gates.relu(), torch.where(gates <= 0, 0, grad)
    if gate.activation == "silu":
        steep = (gates * (gate.slope or 1.0)).clamp(-_SATURATED, _SATURATED)
        sigmoid = steep.sigmoid()
        return gates.clamp(min=-_LARGEST) * sigmoid, grad * sigmoid * (1 + steep * (1 - sigmoid))
    approximate = "tanh" if "tanh" in gate.activation else "none"
    inner = gates.clamp(-_SATURATED, _SATURATED)
    # Where oneDNN computes it, torch's GELU of infinity is NaN: findings/torch_gelu_of_infinity_by_avx512.sh.
    return (torch.where(gates > _SATURATED, gates, functional.gelu(inner, approximate=approximate)),
            torch.ops.aten.gelu_backward(grad, inner, approximate=approximate))


def _differentiable_gradient(gate: Gate, product: Tensor, grad: Tensor) -> Tensor:
    """As the operator hgemm::gate_gradient, of torch's operators."""
    half = grad.dtype
    gates, ups = product.float().unflatten(-1, (-1, 2, gate.block)).unbind(-2)
    grad = grad.float().unflatten(-1, (-1, gate.block))
    inner_gates, inner_ups = gates, ups
    if gate.limit:
        inner_gates, inner_ups = gates.clamp(max=gate.limit), ups.clamp(-gate.limit, gate.limit)
    activated, of_gates = _activate(gate, inner_gates, grad * (inner_ups + gate.offset))
    of_ups = grad * activated
    if gate.limit:
        of_gates = torch.where(gates > gate.limit, 0, of_gates)
        of_ups = torch.where(ups.abs() > gate.limit, 0, of_ups)
    return torch.stack((of_gates.to(half), of_ups.to(half)), -2).flatten(-3)


def product_gradient(gate: Gate, product: Tensor, grad: Tensor) -> Tensor:
    """Of the product, from that of the gated result: computed in float32, and rounded once."""
    if torch.is_grad_enabled():  # a gradient of this gradient is wanted
        return _differentiable_gradient(gate, product, grad)
    return (_gate_products._run_gradient if is_plain(product, grad) else GATE_GRADIENT)(product, grad, *gate)


def keeps_product(a: Tensor, *others: Tensor | None) -> bool:
    """For the gradient. A float16 of it could be infinite where the gated result is not: it is computed again."""
    return a.dtype == torch.bfloat16 and needs_gradient(a, *others)


def _product_gradient(ctx: Any, product: Tensor, grad: Tensor | None, grad_product: Tensor | None) -> Tensor:
    """Of a product that is a result itself, or of a gated one, or both."""
    if grad is None:
        return grad_product
    of_product = product_gradient(ctx.gate, product, grad.to(product.dtype))
    return of_product if grad_product is None else of_product + grad_product


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """What is kept is the product, if it is a result, or else the bias, from which the product is computed again."""
    a, b, bias, *gate, ctx.batch_invariant = inputs
    ctx.gate, ctx.bias_dtype = Gate(*gate), getattr(bias, "dtype", None)
    ctx.save_for_backward(a, b, output[1] if isinstance(output, tuple) else bias)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, a: Tensor, b: Tensor, of_product: Tensor) -> tuple[Optional[Tensor], ...]:
    grad_a, grad_b = _autograd.factor_gradients(ctx.needs_input_grad, a, b, of_product, ctx.batch_invariant)
    grad_bias = None
    if ctx.needs_input_grad[2]:
        grad_bias = of_product.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
    return grad_a, grad_b, grad_bias, None, None, None, None, None, None


def _backward(ctx: Any, grad: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    if grad is None:
        return (None,) * 9
    a, b, bias = ctx.saved_tensors
    product = _autograd.gemm(a, b, None, bias, 1.0, 0.0, "none", torch.float32, ctx.batch_invariant)
    return _gradients(ctx, a, b, product_gradient(ctx.gate, product, grad))


def _backward_aux(ctx: Any, grad: Optional[Tensor], grad_aux: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    if grad is None and grad_aux is None:
        return (None,) * 9
    a, b, aux = ctx.saved_tensors
    return _gradients(ctx, a, b, _product_gradient(ctx, aux, grad, grad_aux))


def _save_by_rows(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    a, b, ends, *gate, ctx.batch_invariant, bias = inputs
    ctx.gate, ctx.bias_dtype = Gate(*gate), getattr(bias, "dtype", None)
    ctx.save_for_backward(a, b, ends, output[1] if isinstance(output, tuple) else bias)
    ctx.set_materialize_grads(False)


def _gradients_by_rows(ctx: Any, a: Tensor, b: Tensor, ends: Tensor,
                       of_product: Tensor) -> tuple[Optional[Tensor], ...]:
    of_bias = None
    if ctx.bias_dtype is not None and ctx.needs_input_grad[9]:  # torch drops arguments that are their defaults
        of_bias = _groups.bias_gradient(of_product, ends, ctx.bias_dtype, ctx.batch_invariant)
    return *_groups.gradients_by_rows(ctx, a, b, ends, of_product), None, None, None, None, None, None, None, of_bias


def _backward_by_rows(ctx: Any, grad: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    if grad is None:
        return (None,) * 10
    a, b, ends, bias = ctx.saved_tensors
    product = _groups.grouped_mm(a, b, ends, False, ctx.batch_invariant, torch.float32, bias)
    return _gradients_by_rows(ctx, a, b, ends, product_gradient(ctx.gate, product, grad))


def _backward_by_rows_aux(ctx: Any, grad: Optional[Tensor],
                          grad_aux: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    if grad is None and grad_aux is None:
        return (None,) * 10
    a, b, ends, aux = ctx.saved_tensors
    return _gradients_by_rows(ctx, a, b, ends, _product_gradient(ctx, aux, grad, grad_aux))


_GATED = Differentiable(GATED, _gate_products._run, _save, _backward)
_AUX = Differentiable(GATED_AUX, _gate_products._run_aux, _save, _backward_aux)
_BY_ROWS = Differentiable(GROUPED_GATED_MM, _gate_products._run_by_rows, _save_by_rows, _backward_by_rows)
_BY_ROWS_AUX = Differentiable(GROUPED_GATED_MM_AUX, _gate_products._run_by_rows_aux, _save_by_rows,
                              _backward_by_rows_aux)


def _serve(input: Tensor, weight: Tensor, bias: Tensor | None, gate: Gate, batch_invariant: bool) -> Tensor | None:
    """By the extension; None: the operators have to find out what to do."""
    form, *rest = gate.served
    if not needs_gradient(input, weight, bias):
        return serve_gated(input, weight, bias, form | batch_invariant | LINEAR, *rest)
    if not keeps_product(input, weight, bias) or not may_differentiate(input, weight, bias):
        return None
    return _linear.activated(input, weight, bias, partial(product_gradient, gate),
                             lambda a, b: _gate_products._run_aux(a, b, bias, *gate, batch_invariant), batch_invariant,
                             form, *rest)


def gated(a: Tensor, b: Tensor, bias: Tensor | None, gate: Gate, batch_invariant: bool) -> Tensor:
    """The operator hgemm::gated, or hgemm::gated_aux."""
    if keeps_product(a, b, bias):
        return _AUX.of(a, b, bias)(a, b, bias, *gate, batch_invariant)[0]
    return _GATED.of(a, b, bias)(a, b, bias, *gate, batch_invariant)


def by_rows(a: Tensor, b: Tensor, ends: Tensor, gate: Gate, batch_invariant: bool, bias: Tensor | None) -> Tensor:
    """The operator hgemm::grouped_gated_mm, or hgemm::grouped_gated_mm_aux."""
    if keeps_product(a, b, bias):
        return _BY_ROWS_AUX.of(a, b, ends, bias)(a, b, ends, *gate, batch_invariant, bias)[0]
    return _BY_ROWS.of(a, b, ends, bias)(a, b, ends, *gate, batch_invariant, bias)


def gated_linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *, activation: Optional[str] = "silu",
                 gate_block: Optional[int] = None, limit: Optional[float] = None, slope: Optional[float] = None,
                 offset: float = 0.0) -> Tensor:
    """``activation(gate) * (up + offset)``, of the halves ``gate`` and ``up`` of ``linear(input, weight, bias)``.

    ``input``: (..., K), ``weight``: (2 F, K), ``bias``: (2 F,); the result is (..., F). All is computed in float32 and
    rounded once. Without ``gate_block`` the first F rows of ``weight`` are those of the gates. Else ``gate_block`` rows
    are of gates, the next ``gate_block`` of their up elements, and so on: with 1 they alternate.

    ``activation``: "silu", "gelu_tanh", "gelu_erf", "relu" or None. ``limit``: larger gates count as it, and up
    elements are clamped to -limit ... limit. ``slope``: of silu, ``x * sigmoid(slope * x)``. Both are positive or None.
    For a gradient of bfloat16 the product is kept, rounded to it; the gradient is 0 where that is beyond the limit. Of
    float16 only the arguments are kept, since the product may be infinite where the result is not: it is computed
    again.
    """
    require_tensors(input=input)
    require_dimensions(2, weight=weight)
    if bias is not None:
        require_tensors(bias=bias)
    _require(input.dim() > 0, ValueError, "input: 0 dimensions, must be 1 or more")
    _require(input.shape[-1] == weight.shape[1], ValueError,
             lambda: f"weight: its shape {tuple(weight.shape)} does not fit that of input, {tuple(input.shape)}")
    gate = gate_of(weight.shape[0], "weight", activation, gate_block, limit, slope, offset)
    result = _serve(input, weight, bias, gate, mode.now.batch_invariant)
    if result is not None:
        return result
    a, b = input.reshape(math.prod(input.shape[:-1]), input.shape[-1]), weight.t()
    try:
        result = gated(a, b, bias, gate, mode.batch_invariant)
    except (TypeError, ValueError) as error:
        _ops.raise_named(error, a, b, None, bias, None, _ops.Names("input", "weight"))
    return result.reshape(*input.shape[:-1], weight.shape[0] // 2)


def grouped_gated_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor, bias: Optional[Tensor] = None,
                     activation: Optional[str] = "silu", gate_block: Optional[int] = None,
                     limit: Optional[float] = None, slope: Optional[float] = None, offset: float = 0.0) -> Tensor:
    """:func:`grouped_mm` of ``mat_a``, (M, K), by ``mat_b``, (G, K, 2 F), gated as by :func:`gated_linear`: (M, F).

    ``bias``: (G, 2 F), for the rows of each group, before they are gated. Without ``gate_block`` the first F columns of
    each matrix of ``mat_b`` are those of the gates. Fused on GPUs of compute capability 8.x, 9.0 and 12.x where
    matrices of ``mat_b`` are contiguous along K, as the transposed view of weights (G, 2 F, K) is, or along their
    columns (on 9.0: if ``gate_block`` is None, 1 or a multiple of 64).
    ``offs``: int32, (G,), where each group ends, on the device. Rows behind the last end are not written.
    """
    require_tensors(mat_a=mat_a, mat_b=mat_b, offs=offs)
    if bias is not None:
        require_tensors(bias=bias)
    _groups._shape_by_rows(kind(mat_a), kind(mat_b), kind(offs), kind_or_none(bias))
    gate = gate_of(mat_b.shape[2], "mat_b", activation, gate_block, limit, slope, offset)
    return by_rows(mat_a, mat_b, offs, gate, mode.batch_invariant, bias)
