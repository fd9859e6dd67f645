"""Gated products, as SwiGLU and its like have them: the operators, and their shapes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import c
from .._operand import activation_of, gemm_args
from . import _extension, _groups, _handles, _ops
from ._extension import AUX
from ._ops import _Kind, kind, kind_or_none

_ARGUMENTS = "str activation, SymInt block, float limit, float slope, float offset, bool batch_invariant"
# activation(gates) * (ups + offset) of a @ b + bias: (M, K) by (K, 2 F) is (M, F). `block` columns are gates of the
# next `block`. A limit of 0 is none, and a slope of 0 is 1.
_ops._library.define(f"gated(Tensor a, Tensor b, Tensor? bias, {_ARGUMENTS}) -> Tensor")
# The same of the products by groups of rows, as grouped_mm.
_ops._library.define(f"grouped_gated_mm(Tensor a, Tensor b, Tensor ends, {_ARGUMENTS}, Tensor? bias=None) -> Tensor")
# And the products, (M, 2 F), as well.
_ops._library.define(f"gated_aux(Tensor a, Tensor b, Tensor? bias, {_ARGUMENTS}) -> (Tensor, Tensor)")
_ops._library.define(f"grouped_gated_mm_aux(Tensor a, Tensor b, Tensor ends, {_ARGUMENTS}, Tensor? bias=None) "
                     "-> (Tensor, Tensor)")
# The gradient of the product, (M, 2 F), from the product and the gradient of the gated result, (M, F), in its type.
_ops._library.define("gate_gradient(Tensor product, Tensor grad, str activation, SymInt block, float limit, "
                     "float slope, float offset) -> Tensor")


class Gate(NamedTuple):
    """As operators take it."""
    activation: str
    block: int
    limit: float
    slope: float
    offset: float

    @property
    def served(self) -> tuple[int, int, float, float, float]:
        """As the extension takes it: a form, and the rest."""
        return activation_of(self.activation) << _extension.ACTIVATION_SHIFT, *self[1:]

    def write(self, args: Any) -> None:
        """To args of the C API, of products of twice as many columns as their results have."""
        args.ldd = max(1, args.n // 2)
        self.write_function(args)

    def write_function(self, args: Any) -> None:
        args.activation = activation_of(self.activation)
        args.gate.block = self.block
        args.gate.limit, args.gate.slope, args.gate.offset = self.limit, self.slope, self.offset


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


def _multiply(a: Tensor, b: Tensor, bias: Tensor | None, gate: Gate, batch_invariant: bool,
              aux: Tensor | None) -> Tensor:
    plan = _plan(kind(a), kind(b), kind_or_none(bias), gate)
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
    if aux is not None:
        args.aux, args.ldaux = aux.data_ptr(), max(1, args.n)
    _handles.call(c.hgemm_gemm_ex, args, a.device, batch_invariant)
    return result


def _run(a: Tensor, b: Tensor, bias: Tensor | None, activation: str, block: int, limit: float, slope: float,
         offset: float, batch_invariant: bool) -> Tensor:
    return _multiply(a, b, bias, Gate(activation, block, limit, slope, offset), batch_invariant, None)


def _run_aux(a: Tensor, b: Tensor, bias: Tensor | None, activation: str, block: int, limit: float, slope: float,
             offset: float, batch_invariant: bool) -> tuple[Tensor, Tensor]:
    gate = Gate(activation, block, limit, slope, offset)
    form, *rest = gate.served
    result, aux = _extension.serve_aux(a, b, bias, batch_invariant | form, *rest)
    if result is not None:
        return result, aux
    aux = a.new_empty(_ops.result_shape(kind(a), kind(b), None, kind_or_none(bias), a.dtype))
    return _multiply(a, b, bias, gate, batch_invariant, aux), aux


@lru_cache(maxsize=4096)
def _plan_by_rows(a: _Kind, b: _Kind, ends: _Kind, bias: _Kind | None, gate: Gate) -> _groups._Plan:
    plan = _groups._plan_by_rows(a, b, ends, None, bias)
    args = c.GroupedArgs.from_buffer_copy(plan.args)
    gate.write(args)
    return plan._replace(args=args, shape=(plan.shape[0], plan.shape[1] // 2))


def _multiply_by_rows(a: Tensor, b: Tensor, ends: Tensor, gate: Gate, batch_invariant: bool, bias: Tensor | None,
                      aux: Tensor | None) -> Tensor:
    plan = _plan_by_rows(kind(a), kind(b), kind(ends), kind_or_none(bias), gate)
    if aux is not None:
        args = c.GroupedArgs.from_buffer_copy(plan.args)
        args.aux, args.ldaux = aux.data_ptr(), max(1, args.n)
        plan = plan._replace(args=args)
    return _groups._run(plan, a, b, ends, a.new_empty(plan.shape), batch_invariant, bias)


def _run_by_rows(a: Tensor, b: Tensor, ends: Tensor, activation: str, block: int, limit: float, slope: float,
                 offset: float, batch_invariant: bool, bias: Tensor | None = None) -> Tensor:
    gate = Gate(activation, block, limit, slope, offset)
    form, *rest = gate.served
    served, _ = _extension.serve_groups(a, b, ends, bias, batch_invariant | form, *rest)
    return _multiply_by_rows(a, b, ends, gate, batch_invariant, bias, None) if served is None else served


def _run_by_rows_aux(a: Tensor, b: Tensor, ends: Tensor, activation: str, block: int, limit: float, slope: float,
                     offset: float, batch_invariant: bool, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
    gate = Gate(activation, block, limit, slope, offset)
    form, *rest = gate.served
    served, aux = _extension.serve_groups(a, b, ends, bias, batch_invariant | AUX | form, *rest)
    if served is not None:
        return served, aux
    aux = a.new_empty(_groups._shape_by_rows(kind(a), kind(b), kind(ends), kind_or_none(bias)))
    return _multiply_by_rows(a, b, ends, gate, batch_invariant, bias, aux), aux


def _run_gradient(product: Tensor, grad: Tensor, activation: str, block: int, limit: float, slope: float,
                  offset: float) -> Tensor:
    gate = Gate(activation, block, limit, slope, offset)
    result = _extension.serve_gate_gradient(product, grad, *gate.served)
    if result is not None:
        return result
    result = product.new_empty(product.shape, dtype=grad.dtype)
    args = c.GateGradientArgs()
    (product, args.ld_product), (grad, args.ld_of_d) = _ops.in_lines(product), _ops.in_lines(grad)
    args.rows, args.columns = product.shape
    args.ld_of_product = max(1, args.columns)
    args.product, args.of_d, args.of_product = product.data_ptr(), grad.data_ptr(), result.data_ptr()
    args.type_product, args.type_of_d = _ops._TYPES[product.dtype], _ops._TYPES[grad.dtype]
    args.type_of_product = args.type_of_d
    gate.write_function(args)
    _handles.call(c.hgemm_gate_gradient, args, product.device, False)
    return result


for _key in ("CPU", "CUDA"):
    for _name, _kernel in (("gated", _run), ("gated_aux", _run_aux), ("grouped_gated_mm", _run_by_rows),
                           ("grouped_gated_mm_aux", _run_by_rows_aux), ("gate_gradient", _run_gradient)):
        _ops._library.impl(_name, _extension.untraced(_kernel), _key)
GATED, GROUPED_GATED_MM = torch.ops.hgemm.gated.default, torch.ops.hgemm.grouped_gated_mm.default
GATED_AUX, GROUPED_GATED_MM_AUX = torch.ops.hgemm.gated_aux.default, torch.ops.hgemm.grouped_gated_mm_aux.default
GATE_GRADIENT = torch.ops.hgemm.gate_gradient.default


@torch.library.register_fake("hgemm::gated")
def _fake(a: Tensor, b: Tensor, bias: Tensor | None, *_: Any) -> Tensor:
    return a.new_empty(_shape(kind(a), kind(b), kind_or_none(bias)))


@torch.library.register_fake("hgemm::grouped_gated_mm")
def _fake_by_rows(a: Tensor, b: Tensor, ends: Tensor, activation: str, block: int, limit: float, slope: float,
                  offset: float, batch_invariant: bool, bias: Tensor | None = None) -> Tensor:
    rows, columns = _groups._shape_by_rows(kind(a), kind(b), kind(ends), kind_or_none(bias))
    return a.new_empty((rows, columns // 2))


@torch.library.register_fake("hgemm::gated_aux")
def _fake_aux(a: Tensor, b: Tensor, bias: Tensor | None, *_: Any) -> tuple[Tensor, Tensor]:
    rows, columns = _shape(kind(a), kind(b), kind_or_none(bias))
    return a.new_empty((rows, columns)), a.new_empty((rows, b.shape[1]))


@torch.library.register_fake("hgemm::grouped_gated_mm_aux")
def _fake_by_rows_aux(a: Tensor, b: Tensor, ends: Tensor, activation: str, block: int, limit: float, slope: float,
                      offset: float, batch_invariant: bool, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
    rows, columns = _groups._shape_by_rows(kind(a), kind(b), kind(ends), kind_or_none(bias))
    return a.new_empty((rows, columns // 2)), a.new_empty((rows, columns))


@torch.library.register_fake("hgemm::gate_gradient")
def _fake_gradient(product: Tensor, grad: Tensor, *_: Any) -> Tensor:
    return product.new_empty(product.shape, dtype=grad.dtype)
