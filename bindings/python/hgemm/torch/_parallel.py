"""all_gather_matmul(), matmul_reduce_scatter(), matmul_all_reduce(): arguments, shapes without data, gradients."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import _ops, _overlap
from ._extension import is_plain, needs_gradient, refuse_forward_mode
from ._ops import GEMM, Names, kind, kind_or_none, require_dimensions, require_tensors
from ._overrides import mode
from ._ranks import Group, known, place, place_in

_GATHER = torch.ops.hgemm.all_gather_matmul.default
_GATHER_GRADIENTS = torch.ops.hgemm.all_gather_gradients.default
_REDUCE = torch.ops.hgemm.matmul_reduce.default
_SUM_OF_RANKS = torch.ops.hgemm.sum_of_ranks.default
_OF = Names("x", "mat2")


@torch.library.register_fake("hgemm::all_gather_matmul")
def _fake_gather(x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype | None,
                 batch_invariant: bool) -> Tensor:
    return x.new_empty((len(x) * place_in(group)[1], mat2.shape[1]), dtype=out_dtype)


@torch.library.register_fake("hgemm::all_gather_gradients")
def _fake_gradients(x: Tensor, mat2: Tensor | None, left: Tensor, group: str, by_columns: bool,
                    batch_invariant: bool) -> tuple[Tensor, Tensor]:
    rows, shape = len(x) * place_in(group)[1], (left.shape[0], x.shape[1])
    return (x.new_empty((0,) if mat2 is None else (rows, mat2.shape[1])),
            x.new_empty(shape[::-1]).t() if by_columns else x.new_empty(shape))


@torch.library.register_fake("hgemm::matmul_reduce")
def _fake_reduce(x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype | None, scatter: bool,
                 batch_invariant: bool) -> Tensor:
    rows = len(x) // place_in(group)[1] if scatter else len(x)
    return x.new_empty((rows, mat2.shape[1]), dtype=out_dtype)


@torch.library.register_fake("hgemm::sum_of_ranks")
def _fake_sum(values: Tensor, group: str) -> Tensor:
    return torch.empty_like(values)


def _save(ctx: Any, x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, batch_invariant: bool) -> None:
    ctx.save_for_backward(x, mat2)
    ctx.bias_dtype, ctx.group, ctx.batch_invariant = getattr(bias, "dtype", None), group, batch_invariant


class _AllGather(torch.autograd.Function):
    """The gradient needs all ranks' rows again: they are gathered again, and not kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype | None,
                batch_invariant: bool) -> Tensor:
        _save(ctx, x, mat2, bias, group, batch_invariant)
        return _GATHER(x, mat2, bias, group, out_dtype, batch_invariant)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        x, mat2 = ctx.saved_tensors
        half, of_x, of_mat2, of_bias = grad.to(x.dtype), None, None, None
        if ctx.needs_input_grad[0]:
            of_x = _REDUCE(half, mat2.t(), None, ctx.group, None, True, ctx.batch_invariant)
        if ctx.needs_input_grad[1]:
            by_columns = not _by_columns(mat2)
            of_mat2 = _GATHER_GRADIENTS(x, None, half.t(), ctx.group, by_columns, ctx.batch_invariant)[1].t()
        if ctx.needs_input_grad[2]:
            of_bias = grad.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
        return of_x, of_mat2, of_bias, None, None, None


class _Reduce(torch.autograd.Function):
    """Without ``scatter`` the result is taken to be used alike in all ranks, which then have the same gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype | None,
                scatter: bool, batch_invariant: bool) -> Tensor:
        _save(ctx, x, mat2, bias, group, batch_invariant)
        ctx.scatter = scatter
        return _REDUCE(x, mat2, bias, group, out_dtype, scatter, batch_invariant)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        x, mat2 = ctx.saved_tensors
        need_x, need_mat2, need_bias = ctx.needs_input_grad[:3]
        half, of_x, of_mat2, of_bias = grad.to(x.dtype), None, None, None
        # With scatter the whole gradient is nowhere but in the operator.
        if ctx.scatter and need_mat2:
            of_x, of_mat2 = _GATHER_GRADIENTS(half, mat2.t() if need_x else None, x.t(), ctx.group, _by_columns(mat2),
                                              ctx.batch_invariant)
        elif ctx.scatter and need_x:
            of_x = _GATHER(half, mat2.t(), None, ctx.group, None, ctx.batch_invariant)
        else:
            of_x = _product(half, mat2.t(), ctx) if need_x else None
            of_mat2 = _product(x.t(), half, ctx) if need_mat2 else None
        if need_bias:
            of_bias = grad.sum(0, dtype=torch.float32)
            if ctx.scatter and ctx.group:
                of_bias = _SUM_OF_RANKS(of_bias, ctx.group)
            of_bias = of_bias.to(ctx.bias_dtype)
        return of_x if need_x else None, of_mat2, of_bias, None, None, None, None


def _product(a: Tensor, b: Tensor, ctx: Any) -> Tensor:
    return GEMM(a, b, None, None, 1.0, 0.0, "none", None, ctx.batch_invariant)


def _by_columns(matrix: Tensor) -> bool:
    return matrix.stride(0) == 1 and matrix.stride(1) >= matrix.shape[0]


_check_kinds = lru_cache(maxsize=4096)(_ops.result_shape)


def _check(x: Tensor, mat2: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None, group: Group, least: int,
           scatter: bool) -> tuple[Tensor, str, int]:
    """x as a matrix, the group's name, and its size."""
    require_tensors(x=x)
    require_dimensions(2, mat2=mat2)
    if bias is not None:
        require_tensors(bias=bias)
    size = place(group)[1]
    _ops._require(x.dim() >= least, ValueError, f"x: {x.dim()} dimensions, must be {least} or more")
    _ops._require(not scatter or x.shape[0] % size == 0, ValueError,
                  f"x: its first dimension is {x.shape[0]}, must be a multiple of the {size} ranks")
    matrix = x.reshape(x.shape[:-1].numel(), x.shape[-1])
    kinds = (kind(matrix), kind(mat2), None, kind_or_none(bias), out_dtype or x.dtype)
    (_check_kinds if is_plain(x, mat2, bias) else _ops.result_shape)(*kinds, _OF)
    refuse_forward_mode(x, mat2, bias)
    if size == 1:
        return matrix, "", 1
    return matrix, known(group).group_name, size


def _is_plain(*tensors: Tensor | None) -> bool:
    """The operator's kernel may be called as it is, which takes less time."""
    return is_plain(*tensors) and not needs_gradient(*tensors)


def all_gather_matmul(x: Tensor, mat2: Tensor, group: Group = None, *, bias: Optional[Tensor] = None,
                      out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """The rows of all ranks of ``group``, times this rank's matrix: gathered @ mat2 + bias.

    ``x``: this rank's part of the first dimension, (S / P, ..., K). ``mat2``: (K, N), ``bias``: (N,), both of this rank
    alone. The result: (S, ..., N). ``out_dtype`` may be torch.float32. Call it in all ranks, with ``x`` of the same
    shape and type: it does not compare them. ``group``: None is torch's default group, or this process alone where
    there is none.
    """
    matrix, name, size = _check(x, mat2, bias, out_dtype, group, 2, False)
    arguments = (matrix, mat2, bias, name, out_dtype or x.dtype, mode.batch_invariant)
    result = (_overlap.all_gather_matmul if _is_plain(x, mat2, bias) else _AllGather.apply)(*arguments)
    return result.reshape(x.shape[0] * size, *x.shape[1:-1], mat2.shape[1])


def _reduce(*arguments: Any) -> Tensor:
    return (_overlap.matmul_reduce if _is_plain(*arguments[:3]) else _Reduce.apply)(*arguments)


def matmul_reduce_scatter(x: Tensor, mat2: Tensor, group: Group = None, *, bias: Optional[Tensor] = None,
                          out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """The sum of all ranks' x @ mat2, and the bias: rank r of P gets the r-th of P equal parts of the first dimension.

    ``x``: (S, ..., K / P) and ``mat2``: (K / P, N), this rank's parts of K. ``bias``: the whole, (N,), alike in all
    ranks. The result: (S / P, ..., N). The ranks' sums are float32, are added in the order of the ranks, and the result
    is rounded once. The rest is as for ``all_gather_matmul``.
    """
    matrix, name, size = _check(x, mat2, bias, out_dtype, group, 2, True)
    result = _reduce(matrix, mat2, bias, name, out_dtype or x.dtype, True, mode.batch_invariant)
    return result.reshape(x.shape[0] // size, *x.shape[1:-1], mat2.shape[1])


def matmul_all_reduce(x: Tensor, mat2: Tensor, group: Group = None, *, bias: Optional[Tensor] = None,
                      out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """As ``matmul_reduce_scatter``, and every rank gets the whole result, (..., N), with the same bits."""
    matrix, name, _ = _check(x, mat2, bias, out_dtype, group, 1, False)
    result = _reduce(matrix, mat2, bias, name, out_dtype or x.dtype, False, mode.batch_invariant)
    return result.reshape(*x.shape[:-1], mat2.shape[1])
