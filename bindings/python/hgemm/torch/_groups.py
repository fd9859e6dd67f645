"""Products by groups, of rows or of K: the operators, their shapes and gradients."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .. import c
from .._operand import leading
from . import _extension, _handles, _ops
from ._autograd import Differentiable
from ._extension import CLEAR, OF_K, WIDTHS, serve_groups
from ._ops import _require, _Kind, kind, kind_or_none

# Rows ends[g - 1] to ends[g] - 1 of a (M, K) by b[g] (K, N), plus bias[g] (N), for each group g. clear: rows of no
# group are 0.
_ops._library.define("grouped_mm(Tensor a, Tensor b, Tensor ends, bool clear, bool batch_invariant, "
                     "ScalarType? out_dtype=None, Tensor? bias=None) -> Tensor")
# Columns ends[g - 1] to ends[g] - 1 of a (M, K) by these rows of b (K, N): (groups, M, N).
_ops._library.define("grouped_mm_k(Tensor a, Tensor b, Tensor ends, ScalarType? out_dtype, bool batch_invariant) "
                     "-> Tensor")


class _Plan(NamedTuple):
    """Arguments that lack addresses, and what is copied before."""
    args: c.GroupedArgs
    shape: tuple[int, ...]
    copy_a: bool
    copy_b: bool


def _check(a: _Kind, b: _Kind, ends: _Kind, dimensions: int) -> None:
    """dimensions: those of b."""
    _require(a.dtype in _ops.HALF, TypeError, lambda: f"mat_a: is {a.dtype}, must be torch.float16 or torch.bfloat16")
    _require(b.dtype == a.dtype, TypeError, lambda: f"mat_b: is {b.dtype}, must be {a.dtype} as mat_a")
    _require(len(a.shape) == 2, ValueError, lambda: f"mat_a: {len(a.shape)} dimensions, must be 2")
    _require(len(b.shape) == dimensions, ValueError, lambda: f"mat_b: {len(b.shape)} dimensions, must be {dimensions}")
    _require(b.shape[-2] == a.shape[1], ValueError,
             lambda: f"mat_b: its shape {tuple(b.shape)} does not fit that of mat_a, {tuple(a.shape)}")
    _require(ends.dtype in (torch.int32, torch.int64), TypeError, lambda: f"offs: is {ends.dtype}, must be torch.int32")
    for name, other in (("mat_b", b), ("offs", ends)):
        _require(other.device == a.device, ValueError,
                 lambda: f"{name}: is on {other.device}, must be on {a.device} as mat_a")


def _check_bias(a: _Kind, b: _Kind, bias: _Kind) -> None:
    wanted = b.shape[0], b.shape[2]
    _require(bias.dtype in (a.dtype, torch.float32), TypeError,
             lambda: f"bias: is {bias.dtype}, must be {a.dtype} as mat_a or torch.float32")
    _require(bias.shape == wanted, ValueError,
             lambda: f"bias: its shape is {tuple(bias.shape)}, must be {tuple(wanted)}")
    _require(bias.device == a.device, ValueError, lambda: f"bias: is on {bias.device}, must be on {a.device} as mat_a")


def _shape_by_rows(a: _Kind, b: _Kind, ends: _Kind, bias: _Kind | None = None) -> tuple[int, ...]:
    _check(a, b, ends, 3)
    _require(ends.shape == b.shape[:1], ValueError,
             lambda: f"offs: its shape is {tuple(ends.shape)}, must be {tuple(b.shape[:1])}")
    if bias is not None:
        _check_bias(a, b, bias)
    return a.shape[0], b.shape[2]


def _shape_by_k(a: _Kind, b: _Kind, ends: _Kind, out_dtype: torch.dtype | None) -> tuple[int, ...]:
    _check(a, b, ends, 2)
    _require(len(ends.shape) == 1, ValueError, lambda: f"offs: {len(ends.shape)} dimensions, must be 1")
    _require(out_dtype in (None, a.dtype, torch.float32), TypeError,
             lambda: f"out_dtype: is {out_dtype}, must be {a.dtype} or torch.float32")
    return ends.shape[0], a.shape[0], b.shape[1]


@lru_cache(maxsize=4096)
def _plan_by_rows(a: _Kind, b: _Kind, ends: _Kind, out_dtype: torch.dtype | None, bias: _Kind | None) -> _Plan:
    shape = _shape_by_rows(a, b, ends, bias)
    lda = leading(a.operand, c.Layout.ROW_MAJOR)
    operand, copy_b = _ops._readable(b)
    ldb = leading(operand, c.Layout.ROW_MAJOR)
    args = c.GroupedArgs()
    args.transb = c.Op.TRANS if ldb is None else c.Op.NO_TRANS
    args.type_ab, args.type_d = _ops._TYPES[a.dtype], _ops._TYPES[out_dtype or a.dtype]
    args.group_count, args.m, args.n, args.k = b.shape[0], a.shape[0], b.shape[2], a.shape[1]
    args.lda = max(1, a.shape[1]) if lda is None else lda
    args.ldb = leading(operand, c.Layout.COL_MAJOR) if ldb is None else ldb
    args.ldd, args.stride_b = max(1, b.shape[2]), operand.strides[0]
    if bias is not None:
        args.bias_type, args.stride_bias = _ops._TYPES[bias.dtype], b.shape[2]
    return _Plan(args, shape, lda is None, copy_b)


@lru_cache(maxsize=4096)
def _plan_by_k(a: _Kind, b: _Kind, ends: _Kind, out_dtype: torch.dtype | None) -> _Plan:
    """Where an operand is stored in both orders, it is said to be in that which GPUs are fast with."""
    shape = _shape_by_k(a, b, ends, out_dtype)
    (a_operand, copy_a), (b_operand, copy_b) = _ops._readable(a), _ops._readable(b)
    lda, ldb = leading(a_operand, c.Layout.COL_MAJOR), leading(b_operand, c.Layout.ROW_MAJOR)
    args = c.GroupedArgs()
    args.grouping = c.Grouping.K
    args.transa = c.Op.NO_TRANS if lda is None else c.Op.TRANS
    args.transb = c.Op.TRANS if ldb is None else c.Op.NO_TRANS
    args.type_ab, args.type_d = _ops._TYPES[a.dtype], _ops._TYPES[out_dtype or a.dtype]
    args.group_count, args.m, args.n = shape
    args.k = a.shape[1]
    args.lda = leading(a_operand, c.Layout.ROW_MAJOR) if lda is None else lda
    args.ldb = leading(b_operand, c.Layout.COL_MAJOR) if ldb is None else ldb
    args.ldd, args.stride_d = max(1, args.n), args.m * args.n
    return _Plan(args, shape, copy_a, copy_b)


def _set_ends(args: c.GroupedArgs, ends: Tensor) -> None:
    """The caller keeps `ends` until the call."""
    setattr(args, "ends_i32" if ends.dtype == torch.int32 else "ends", ends.data_ptr())


def _run(plan: _Plan, a: Tensor, b: Tensor, ends: Tensor, out: Tensor, batch_invariant: bool,
         bias: Tensor | None = None) -> Tensor:
    if plan.copy_a:
        a = a.contiguous()
    if plan.copy_b:
        b = b.contiguous()
    args = c.GroupedArgs.from_buffer_copy(plan.args)
    args.a, args.b, args.d = a.data_ptr(), b.data_ptr(), out.data_ptr()
    if bias is not None:
        bias = bias.contiguous()
        args.bias = bias.data_ptr()
    ends = ends.contiguous()
    _set_ends(args, ends)
    _handles.call(c.hgemm_grouped_ex, args, a.device, batch_invariant)
    return out


def run_by_rows(a: Tensor, b: Tensor, ends: Tensor, clear: bool, batch_invariant: bool,
                out_dtype: torch.dtype | None = None, bias: Tensor | None = None) -> Tensor:
    if out_dtype in WIDTHS:
        form = batch_invariant | WIDTHS[out_dtype] | (CLEAR if clear else 0)
        served, _ = serve_groups(a, b, ends, bias, form)
        if served is not None:
            return served
    plan = _plan_by_rows(kind(a), kind(b), kind(ends), out_dtype, kind_or_none(bias))
    out = _run(plan, a, b, ends, a.new_empty(plan.shape, dtype=out_dtype), batch_invariant, bias)
    return clear_rows(out, ends) if clear else out


def clear_rows(d: Tensor, ends: Tensor) -> Tensor:
    """d (M, N), contiguous, whose rows that no group owns are now 0."""
    args, ends = c.GroupedArgs(), ends.contiguous()
    args.group_count, (args.m, args.n) = ends.shape[0], d.shape
    args.d, args.ldd, args.type_d = d.data_ptr(), max(1, d.shape[1]), _ops._TYPES[d.dtype]
    _set_ends(args, ends)
    _handles.call(c.hgemm_clear_rows, args, d.device, False)
    return d


def in_aligned_lines(x: Tensor) -> Tensor:
    """x, or a copy, in rows that are contiguous and aligned to 16 bytes."""
    rows, columns = x.shape
    if x.stride(1) == 1 and x.stride(0) >= columns and x.stride(0) % 8 == 0 and x.data_ptr() % 16 == 0:
        return x
    return x.new_empty((rows, columns + -columns % 8))[:, :columns].copy_(x)


def run_by_k(a: Tensor, b: Tensor, ends: Tensor, out_dtype: torch.dtype | None, batch_invariant: bool) -> Tensor:
    if out_dtype in WIDTHS:
        served, _ = serve_groups(a, b, ends, None, batch_invariant | WIDTHS[out_dtype] | OF_K)
        if served is not None:
            return served
    if a.is_cuda:  # kernels for other operands read their elements one by one
        _shape_by_k(kind(a), kind(b), kind(ends), out_dtype)
        a, b = in_aligned_lines(a.t()).t(), in_aligned_lines(b)
    plan = _plan_by_k(kind(a), kind(b), kind(ends), out_dtype)
    return _run(plan, a, b, ends, a.new_empty(plan.shape, dtype=out_dtype), batch_invariant)


for _key in ("CPU", "CUDA"):
    _ops._library.impl("grouped_mm", _extension.untraced(run_by_rows), _key)
    _ops._library.impl("grouped_mm_k", _extension.untraced(run_by_k), _key)
GROUPED_MM, GROUPED_MM_K = torch.ops.hgemm.grouped_mm.default, torch.ops.hgemm.grouped_mm_k.default


@torch.library.register_fake("hgemm::grouped_mm")
def _fake(a: Tensor, b: Tensor, ends: Tensor, clear: bool, batch_invariant: bool,
          out_dtype: torch.dtype | None = None, bias: Tensor | None = None) -> Tensor:
    return a.new_empty(_shape_by_rows(kind(a), kind(b), kind(ends), kind_or_none(bias)), dtype=out_dtype)


@torch.library.register_fake("hgemm::grouped_mm_k")
def _fake_k(a: Tensor, b: Tensor, ends: Tensor, out_dtype: torch.dtype | None, batch_invariant: bool) -> Tensor:
    return a.new_empty(_shape_by_k(kind(a), kind(b), kind(ends), out_dtype), dtype=out_dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ends, _, ctx.batch_invariant, _, bias = inputs
    ctx.bias_dtype = getattr(bias, "dtype", None)
    ctx.save_for_backward(a, b, ends)


def _save_k(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ends, _, ctx.batch_invariant = inputs
    ctx.save_for_backward(a, b, ends)


def gradients_by_rows(ctx: Any, a: Tensor, b: Tensor, ends: Tensor,
                      grad: Tensor) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """Of a and b, from that of the product. That of b is stored as b is: torch would copy it else."""
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = grouped_mm(grad, b.transpose(1, 2), ends, True, ctx.batch_invariant)
    if ctx.needs_input_grad[1]:
        if b.stride(1) == 1:
            grad_b = grouped_mm_k(grad.t(), a, ends, None, ctx.batch_invariant).transpose(1, 2)
        else:
            grad_b = grouped_mm_k(a.t(), grad, ends, None, ctx.batch_invariant)
    return grad_a, grad_b


def bias_gradient(grad: Tensor, ends: Tensor, dtype: torch.dtype, batch_invariant: bool) -> Tensor:
    """The sums of each group's rows, in float32 and a fixed order: a product by a line of ones."""
    ones = grad.new_ones(1, grad.shape[0])
    return grouped_mm_k(ones, grad, ends, torch.float32, batch_invariant).squeeze(1).to(dtype)


def _backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    a, b, ends = ctx.saved_tensors
    half = grad.to(a.dtype)
    of_bias = None
    if ctx.bias_dtype is not None and ctx.needs_input_grad[6]:  # torch drops arguments that are their defaults
        of_bias = bias_gradient(half, ends, ctx.bias_dtype, ctx.batch_invariant)
    return *gradients_by_rows(ctx, a, b, ends, half), None, None, None, None, of_bias


def _backward_k(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    """Groups of K are groups of rows of both gradients, of that of a if it is transposed."""
    a, b, ends = ctx.saved_tensors
    half = grad.to(a.dtype)
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = grouped_mm(b, half.transpose(1, 2), ends, True, ctx.batch_invariant).t()
    if ctx.needs_input_grad[1]:
        grad_b = grouped_mm(a.t(), half, ends, True, ctx.batch_invariant)
    return grad_a, grad_b, None, None, None


_BY_ROWS = Differentiable(GROUPED_MM, run_by_rows, _save, _backward)
_BY_K = Differentiable(GROUPED_MM_K, run_by_k, _save_k, _backward_k)


def grouped_mm(a: Tensor, b: Tensor, ends: Tensor, clear: bool, batch_invariant: bool,
               out_dtype: torch.dtype | None = None, bias: Tensor | None = None) -> Tensor:
    """The operator hgemm::grouped_mm."""
    return _BY_ROWS.of(a, b, ends, bias)(a, b, ends, clear, batch_invariant, out_dtype, bias)


def grouped_mm_k(*arguments: Any) -> Tensor:
    """The operator hgemm::grouped_mm_k."""
    return _BY_K.of(*arguments[:3])(*arguments)
