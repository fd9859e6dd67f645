"""Gated products, as SwiGLU and its like have them: the operators, their shapes and gradients."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional

from .. import c
from .._operand import ACTIVATIONS, activation_of, gemm_args
from . import _autograd, _extension, _groups, _handles, _ops
from ._autograd import _SATURATED, _transformed
from ._extension import ACTIVATION_SHIFT, LINEAR, is_transformed, refuse_forward_mode, serve_gated
from ._ops import _Kind, _require, kind, kind_or_none, require_dimensions, require_tensors
from ._overrides import mode

_LARGEST, _SMALLEST = torch.finfo(torch.float32).max, 2.0**-149
_ARGUMENTS = "str activation, SymInt block, float limit, float slope, float offset, bool batch_invariant"
# activation(gates) * (ups + offset) of a @ b + bias: (M, K) by (K, 2 F) is (M, F). `block` columns are gates of the
# next `block`. A limit of 0 is none, and a slope of 0 is 1.
_ops._library.define(f"gated(Tensor a, Tensor b, Tensor? bias, {_ARGUMENTS}) -> Tensor")
# The same of the products by groups of rows, as grouped_mm.
_ops._library.define(f"grouped_gated_mm(Tensor a, Tensor b, Tensor ends, {_ARGUMENTS}, Tensor? bias=None) -> Tensor")


class Gate(NamedTuple):
    """As operators take it."""
    activation: str
    block: int
    limit: float
    slope: float
    offset: float

    def write(self, args: Any) -> None:
        """To args of the C API, of products of twice as many columns as their results have."""
        args.activation = activation_of(self.activation)
        args.ldd = max(1, args.n // 2)
        args.gate.block = self.block
        args.gate.limit, args.gate.slope, args.gate.offset = self.limit, self.slope, self.offset


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


def _shape(a: _Kind, b: _Kind, bias: _Kind | None) -> tuple[int, ...]:
    rows, columns = _ops.result_shape(a, b, None, bias, a.dtype)
    return rows, columns // 2


@lru_cache(maxsize=4096)
def _plan(a: _Kind, b: _Kind, bias: _Kind | None, gate: Gate) -> _ops._Plan:
    shape = _shape(a, b, bias)
    (a_operand, copy_a), (b_operand, copy_b) = _ops._readable(a), _ops._readable(b)
    product = _ops._contiguous(a.dtype, (shape[0], b.shape[1]))
    extra = {} if bias is None else {"bias": _ops._contiguous(bias.dtype, bias.shape)}
    args = gemm_args(a_operand, b_operand, product, **extra)
    gate.write(args)
    return _ops._Plan(args, shape, copy_a, copy_b, None, False)


def _run(a: Tensor, b: Tensor, bias: Tensor | None, activation: str, block: int, limit: float, slope: float,
         offset: float, batch_invariant: bool) -> Tensor:
    plan = _plan(kind(a), kind(b), kind_or_none(bias), Gate(activation, block, limit, slope, offset))
    result = a.new_empty(plan.shape)
    args = c.Args.from_buffer_copy(plan.args)
    if plan.copy_a:
        a = a.contiguous()
    if plan.copy_b:
        b = b.contiguous()
    args.a, args.b, args.d = a.data_ptr(), b.data_ptr(), result.data_ptr()
    if bias is not None:
        bias = bias.contiguous()
        args.bias = bias.data_ptr()
    _handles.call(c.hgemm_gemm_ex, args, a.device, batch_invariant)
    return result


@lru_cache(maxsize=4096)
def _plan_by_rows(a: _Kind, b: _Kind, ends: _Kind, bias: _Kind | None, gate: Gate) -> _groups._Plan:
    plan = _groups._plan_by_rows(a, b, ends, None, bias)
    args = c.GroupedArgs.from_buffer_copy(plan.args)
    gate.write(args)
    return plan._replace(args=args, shape=(plan.shape[0], plan.shape[1] // 2))


def _run_by_rows(a: Tensor, b: Tensor, ends: Tensor, activation: str, block: int, limit: float, slope: float,
                 offset: float, batch_invariant: bool, bias: Tensor | None = None) -> Tensor:
    gate = Gate(activation, block, limit, slope, offset)
    plan = _plan_by_rows(kind(a), kind(b), kind(ends), kind_or_none(bias), gate)
    return _groups._run(plan, a, b, ends, a.new_empty(plan.shape), batch_invariant, bias)


for _key in ("CPU", "CUDA"):
    _ops._library.impl("gated", _extension.untraced(_run), _key)
    _ops._library.impl("grouped_gated_mm", _extension.untraced(_run_by_rows), _key)
GATED, GROUPED_GATED_MM = torch.ops.hgemm.gated.default, torch.ops.hgemm.grouped_gated_mm.default


@torch.library.register_fake("hgemm::gated")
def _fake(a: Tensor, b: Tensor, bias: Tensor | None, *_: Any) -> Tensor:
    return a.new_empty(_shape(kind(a), kind(b), kind_or_none(bias)))


@torch.library.register_fake("hgemm::grouped_gated_mm")
def _fake_by_rows(a: Tensor, b: Tensor, ends: Tensor, activation: str, block: int, limit: float, slope: float,
                  offset: float, batch_invariant: bool, bias: Tensor | None = None) -> Tensor:
    rows, columns = _groups._shape_by_rows(kind(a), kind(b), kind(ends), kind_or_none(bias))
    return a.new_empty((rows, columns // 2))


def _activate(gate: Gate, gates: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """activation(gates), and its derivative times grad."""
    if gate.activation == "none":
        return gates, grad
    if gate.activation == "relu":
        return gates.relu(), torch.where(gates > 0, grad, 0)
    if gate.activation == "silu":
        steep = (gates * (gate.slope or 1.0)).clamp(-_SATURATED, _SATURATED)
        sigmoid = steep.sigmoid()
        return gates * sigmoid, grad * sigmoid * (1 + steep * (1 - sigmoid))
    approximate = "tanh" if "tanh" in gate.activation else "none"
    return (functional.gelu(gates, approximate=approximate),
            torch.ops.aten.gelu_backward(grad, gates.clamp(-_SATURATED, _SATURATED), approximate=approximate))


def product_gradient(gate: Gate, product: Tensor, grad: Tensor) -> Tensor:
    """Of the product, in float32, from that of the gated result: computed in float32, and rounded once."""
    half = grad.dtype
    gates, ups = product.unflatten(-1, (-1, 2, gate.block)).unbind(-2)
    grad = grad.float().unflatten(-1, (-1, gate.block))
    inner_gates, inner_ups = gates, ups
    if gate.limit:
        inner_gates, inner_ups = gates.clamp(max=gate.limit), ups.clamp(-gate.limit, gate.limit)
    activated, of_gates = _activate(gate, inner_gates, grad * (inner_ups + gate.offset))
    of_ups = grad * activated
    if gate.limit:
        of_gates = torch.where(gates <= gate.limit, of_gates, 0)
        of_ups = torch.where(ups.abs() <= gate.limit, of_ups, 0)
    return torch.stack((of_gates.to(half), of_ups.to(half)), -2).flatten(-3)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, activation, block, limit, slope, offset, ctx.batch_invariant = inputs
    ctx.gate = Gate(activation, block, limit, slope, offset)
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    """What was multiplied is multiplied again: the product is not kept."""
    a, b, bias = ctx.saved_tensors

    def multiply(x: Tensor, y: Tensor, bias: Tensor | None = None, out_dtype: torch.dtype | None = None) -> Tensor:
        return _autograd.gemm(x, y, None, bias, 1.0, 0.0, "none", out_dtype, ctx.batch_invariant)

    of_product = product_gradient(ctx.gate, multiply(a, b, bias, torch.float32), grad)
    grad_a = grad_b = grad_bias = None
    if ctx.needs_input_grad[0]:
        grad_a = multiply(of_product, b.t())
    if ctx.needs_input_grad[1]:  # stored as b is: torch would copy it else
        grad_b = multiply(of_product.t(), a).t() if b.stride(0) == 1 else multiply(a.t(), of_product)
    if ctx.needs_input_grad[2]:
        grad_bias = of_product.sum(0, dtype=torch.float32).to(bias.dtype)
    return grad_a, grad_b, grad_bias, None, None, None, None, None, None


def _save_by_rows(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ends, *gate, ctx.batch_invariant, bias = inputs
    ctx.gate = Gate(*gate)
    ctx.save_for_backward(a, b, ends, bias)


def _backward_by_rows(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    a, b, ends, bias = ctx.saved_tensors
    product = _groups.grouped_mm(a, b, ends, False, ctx.batch_invariant, torch.float32, bias)
    of_product = product_gradient(ctx.gate, product, grad)
    of_bias = None
    if bias is not None and ctx.needs_input_grad[9]:  # torch drops arguments that are their defaults
        of_bias = _groups.bias_gradient(of_product, ends, bias.dtype, ctx.batch_invariant)
    return *_groups.gradients_by_rows(ctx, a, b, ends, of_product), None, None, None, None, None, None, None, of_bias


torch.library.register_autograd("hgemm::gated", _backward, setup_context=_save)
torch.library.register_autograd("hgemm::grouped_gated_mm", _backward_by_rows, setup_context=_save_by_rows)
_transformed_gated = _transformed(GATED, _save, _backward)
_transformed_by_rows = _transformed(GROUPED_GATED_MM, _save_by_rows, _backward_by_rows)


def by_rows(a: Tensor, b: Tensor, ends: Tensor, gate: Gate, batch_invariant: bool, bias: Tensor | None) -> Tensor:
    """The operator hgemm::grouped_gated_mm."""
    refuse_forward_mode(a, b, bias)
    operator = _transformed_by_rows if is_transformed() else GROUPED_GATED_MM
    return operator(a, b, ends, *gate, batch_invariant, bias)


def gated_linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *, activation: Optional[str] = "silu",
                 gate_block: Optional[int] = None, limit: Optional[float] = None, slope: Optional[float] = None,
                 offset: float = 0.0) -> Tensor:
    """``activation(gate) * (up + offset)``, of the halves ``gate`` and ``up`` of ``linear(input, weight, bias)``.

    ``input``: (..., K), ``weight``: (2 F, K), ``bias``: (2 F,); the result is (..., F). All is computed in float32 and
    rounded once. Without ``gate_block`` the first F rows of ``weight`` are those of the gates. Else ``gate_block`` rows
    are of gates, the next ``gate_block`` of their up elements, and so on: with 1 they alternate.

    ``activation``: "silu", "gelu_tanh", "gelu_erf", "relu" or None. ``limit``: larger gates count as it, and up
    elements are clamped to -limit ... limit. ``slope``: of silu, ``x * sigmoid(slope * x)``. Both are positive or None.
    Nothing but the arguments is kept for the gradient, which computes the product again.
    """
    require_tensors(input=input)
    require_dimensions(2, weight=weight)
    if bias is not None:
        require_tensors(bias=bias)
    _require(input.dim() > 0, ValueError, "input: 0 dimensions, must be 1 or more")
    _require(input.shape[-1] == weight.shape[1], ValueError,
             f"weight: its shape {tuple(weight.shape)} does not fit that of input, {tuple(input.shape)}")
    gate = gate_of(weight.shape[0], "weight", activation, gate_block, limit, slope, offset)
    if bias is None:
        form = mode.now.batch_invariant | LINEAR | ACTIVATIONS[activation] << ACTIVATION_SHIFT
        result = serve_gated(input, weight, form, *gate[1:])
        if result is not None:
            return result
    a, b = input.reshape(math.prod(input.shape[:-1]), input.shape[-1]), weight.t()
    refuse_forward_mode(a, b, bias)
    try:
        result = (_transformed_gated if is_transformed() else GATED)(a, b, bias, *gate, mode.batch_invariant)
    except (TypeError, ValueError) as error:
        _ops.raise_named(error, a, b, None, bias, None, _ops.Names("input", "weight"))
    return result.reshape(*input.shape[:-1], weight.shape[0] // 2)


def grouped_gated_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor, bias: Optional[Tensor] = None,
                     activation: Optional[str] = "silu", gate_block: Optional[int] = None,
                     limit: Optional[float] = None, slope: Optional[float] = None, offset: float = 0.0) -> Tensor:
    """:func:`grouped_mm` of ``mat_a``, (M, K), by ``mat_b``, (G, K, 2 F), gated as by :func:`gated_linear`: (M, F).

    ``bias``: (G, 2 F), for the rows of each group, before they are gated. Without ``gate_block`` the first F columns of
    each matrix of ``mat_b`` are those of the gates. Fused on GPUs of compute capability 9.0 where
    matrices of ``mat_b`` are contiguous along K, as the transposed view of weights (G, 2 F, K) is.
    ``offs``: int32, (G,), where each group ends, on the device. Rows behind the last end are not written.
    """
    require_tensors(mat_a=mat_a, mat_b=mat_b, offs=offs)
    if bias is not None:
        require_tensors(bias=bias)
    _groups._shape_by_rows(kind(mat_a), kind(mat_b), kind(offs), kind_or_none(bias))
    gate = gate_of(mat_b.shape[2], "mat_b", activation, gate_block, limit, slope, offset)
    return by_rows(mat_a, mat_b, offs, gate, mode.batch_invariant, bias)
