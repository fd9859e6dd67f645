"""Mixtures of experts: tokens are sorted by expert, multiplied by groups, and summed in the order of their choices."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .. import c
from . import _extension, _gates, _groups, _handles, _ops
from ._autograd import Differentiable
from ._extension import is_plain
from ._ops import _require, require_dimensions
from ._overrides import mode

# indices (T, top_k): of the experts of each token, -1 for none. Each choice has a row; rows are sorted by expert, and
# then by token and choice. rows (T, top_k): of each choice, -1 where there is none; ends: where each expert's rows end.
_ops._library.define("route(Tensor indices, SymInt experts) -> (Tensor rows, Tensor ends)")
# For each choice its token's row of x, times its weight (T, top_k) if there are any. Other rows are zeros with `clear`,
# else they are not written. They are those behind the last end, if ends are given.
_ops._library.define("gather_rows(Tensor x, Tensor? weights, Tensor rows, bool clear=False, Tensor? ends=None) "
                     "-> Tensor")
# The sums of each token's values, times weights (T, top_k) if there are any. ends: for the gradient of the values.
_ops._library.define("combine_rows(Tensor values, Tensor? weights, Tensor rows, Tensor? ends=None) -> Tensor")
# The dot products of each token's row of x and its choices' values, (T, top_k): gradients of weights. 0 where there is
# no row.
_ops._library.define("dot_rows(Tensor x, Tensor values, Tensor rows, ScalarType dtype) -> Tensor")


def _routed(indices: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    return (indices.new_empty(indices.shape, dtype=torch.int32), indices.new_empty(experts, dtype=torch.int32))


def _route(indices: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    if indices.device.type == "cpu" and indices.numel() > 0:
        least, most = (x.item() for x in indices.aminmax())
        _require(-1 <= least and most < experts, ValueError,
                 lambda: f"router_indices: has {least if least < -1 else most}, must be from -1 to {experts - 1}")
    rows, ends = _extension.serve_route(indices, experts)
    if rows is not None:
        return rows, ends
    rows, ends = _routed(indices, experts)
    args = c.RouteArgs()
    indices, args.ld = _ops.in_lines(indices)
    (args.tokens, args.choices), args.experts = indices.shape, experts
    setattr(args, "chosen_i32" if indices.dtype == torch.int32 else "chosen", indices.data_ptr())
    args.row_of_choice, args.ends = rows.data_ptr(), ends.data_ptr()
    _handles.call(c.hgemm_route, args, indices.device, False)
    return rows, ends


def _move(function: Any, a: Tensor, d: Tensor, weights: Tensor | None, rows: Tensor) -> Tensor:
    rows = rows.contiguous()
    args = c.RowsArgs()
    (a, args.lda), (_, args.ldd) = _ops.in_lines(a), _ops.in_lines(d)
    (args.tokens, args.choices), args.columns, args.row_of_choice = rows.shape, a.shape[1], rows.data_ptr()
    args.a, args.type_a, args.d, args.type_d = a.data_ptr(), _ops._TYPES[a.dtype], d.data_ptr(), _ops._TYPES[d.dtype]
    if weights is not None:
        weights, args.ldw = _ops.in_lines(weights)
        args.weights, args.type_weights = weights.data_ptr(), _ops._TYPES[weights.dtype]
    _handles.call(function, args, a.device, False)
    return d


def _require_lines(rows: Tensor, weights: Tensor | None, **lines: tuple[Tensor, int]) -> None:
    """Of matrices: each with its number of lines, and all of as many columns."""
    columns = None
    for name, (x, count) in lines.items():
        shape = count, x.shape[-1] if columns is None else columns
        _require(x.shape == shape, ValueError, lambda: f"{name}: its shape is {tuple(x.shape)}, must be {shape}")
        columns = shape[1]
    _require(weights is None or weights.shape == rows.shape, ValueError,
             lambda: f"weights: its shape is {tuple(weights.shape)}, must be {tuple(rows.shape)}")


def _gather(x: Tensor, weights: Tensor | None, rows: Tensor, clear: bool = False, ends: Tensor | None = None) -> Tensor:
    if not clear or ends is not None:
        served = _extension.serve_gather(x, weights, rows, ends if clear else None)
        if served is not None:
            return served
    _require_lines(rows, weights, x=(x, rows.shape[0]))
    new = x.new_zeros if clear and ends is None else x.new_empty
    d = _move(c.hgemm_gather_rows, x, new((rows.numel(), x.shape[1])), weights, rows)
    return d if not clear or ends is None else _groups.clear_rows(d, ends)


def _combine(values: Tensor, weights: Tensor | None, rows: Tensor, ends: Tensor | None = None) -> Tensor:
    """In the order of the token's choices, in float32, rounded once, whatever T is."""
    served = _extension.serve_combine(values, weights, rows)
    if served is not None:
        return served
    _require_lines(rows, weights, values=(values, rows.numel()))
    return _move(c.hgemm_combine_rows, values, values.new_empty(rows.shape[0], values.shape[1]), weights, rows)


def _dot(x: Tensor, values: Tensor, rows: Tensor, dtype: torch.dtype) -> Tensor:
    served = _extension.serve_dot(x, values, rows, _ops._TYPES[dtype])
    if served is not None:
        return served
    _require_lines(rows, None, x=(x, rows.shape[0]), values=(values, rows.numel()))
    d, rows = x.new_empty(rows.shape, dtype=dtype), rows.contiguous()
    args = c.RowsArgs()
    (x, args.lda), (values, args.ldb) = _ops.in_lines(x), _ops.in_lines(values)
    (args.tokens, args.choices), args.columns, args.row_of_choice = rows.shape, x.shape[1], rows.data_ptr()
    args.a, args.type_a, args.b, args.type_b = (x.data_ptr(), _ops._TYPES[x.dtype], values.data_ptr(),
                                                _ops._TYPES[values.dtype])
    args.d, args.type_d, args.ldd = d.data_ptr(), _ops._TYPES[dtype], max(1, rows.shape[1])
    _handles.call(c.hgemm_dot_rows, args, x.device, False)
    return d


for _key in ("CPU", "CUDA"):
    for _name, _kernel in (("route", _route), ("gather_rows", _gather), ("combine_rows", _combine), ("dot_rows", _dot)):
        _ops._library.impl(_name, _extension.untraced(_kernel), _key)
ROUTE, GATHER = torch.ops.hgemm.route.default, torch.ops.hgemm.gather_rows.default
COMBINE, DOT = torch.ops.hgemm.combine_rows.default, torch.ops.hgemm.dot_rows.default
torch.library.register_fake("hgemm::route")(_routed)


@torch.library.register_fake("hgemm::gather_rows")
def _fake_gather(x: Tensor, weights: Tensor | None, rows: Tensor, clear: bool = False,
                 ends: Tensor | None = None) -> Tensor:
    return x.new_empty(rows.numel(), x.shape[1])


@torch.library.register_fake("hgemm::combine_rows")
def _fake_combine(values: Tensor, weights: Tensor | None, rows: Tensor, ends: Tensor | None = None) -> Tensor:
    return values.new_empty(rows.shape[0], values.shape[1])


@torch.library.register_fake("hgemm::dot_rows")
def _fake_dot(x: Tensor, values: Tensor, rows: Tensor, dtype: torch.dtype) -> Tensor:
    return x.new_empty(rows.shape, dtype=dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])


def _gather_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    x, weights, rows = ctx.saved_tensors
    of_x = combine_rows(grad, weights, rows) if ctx.needs_input_grad[0] else None
    needs_weights = weights is not None and ctx.needs_input_grad[1]
    return of_x, dot_rows(x, grad, rows, weights.dtype) if needs_weights else None, None, None, None


def _save_combine(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _combine_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    values, weights, rows, ends = ctx.saved_tensors
    of_values = gather_rows(grad, weights, rows, True, ends) if ctx.needs_input_grad[0] else None
    needs_weights = weights is not None and ctx.needs_input_grad[1]
    return of_values, dot_rows(grad, values, rows, weights.dtype) if needs_weights else None, None, None


def _dot_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    x, values, rows = ctx.saved_tensors
    of_x = combine_rows(values, grad, rows).to(x.dtype) if ctx.needs_input_grad[0] else None
    of_values = gather_rows(x, grad, rows, True).to(values.dtype) if ctx.needs_input_grad[1] else None
    return of_x, of_values, None, None


_GATHER = Differentiable(GATHER, _gather, _save, _gather_backward)
_COMBINE = Differentiable(COMBINE, _combine, _save_combine, _combine_backward)
_DOT = Differentiable(DOT, _dot, _save, _dot_backward)


def gather_rows(x: Tensor, weights: Tensor | None, rows: Tensor, clear: bool = False,
                ends: Tensor | None = None) -> Tensor:
    """The operator hgemm::gather_rows."""
    return _GATHER.of(x, weights, rows, ends)(x, weights, rows, clear, ends)


def combine_rows(values: Tensor, weights: Tensor | None, rows: Tensor, ends: Tensor | None = None) -> Tensor:
    """The operator hgemm::combine_rows."""
    return _COMBINE.of(values, weights, rows, ends)(values, weights, rows, ends)


def dot_rows(x: Tensor, values: Tensor, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """The operator hgemm::dot_rows."""
    return _DOT.of(x, values, rows)(x, values, rows, dtype)


def _check(x: Tensor, weights: Tensor, indices: Tensor, w13: Tensor, w2: Tensor) -> None:
    require_dimensions(2, x=x, router_weights=weights, router_indices=indices)
    require_dimensions(3, w13=w13, w2=w2)
    _require(x.dtype in _ops.HALF, TypeError,
             lambda: f"x: is {x.dtype}, must be torch.float16 or torch.bfloat16{_ops._about_autocast(x.device)}")
    for name, weight in (("w13", w13), ("w2", w2)):
        _require(weight.dtype == x.dtype, TypeError, lambda: f"{name}: is {weight.dtype}, must be {x.dtype} as x")
    _require(weights.dtype in (*_ops.HALF, torch.float32), TypeError,
             lambda: f"router_weights: is {weights.dtype}, must be torch.float16, torch.bfloat16 or torch.float32")
    _require(indices.dtype in (torch.int32, torch.int64), TypeError,
             lambda: f"router_indices: is {indices.dtype}, must be torch.int32 or torch.int64")
    _require(indices.shape[0] == x.shape[0] and indices.shape[1] > 0, ValueError,
             lambda: f"router_indices: its shape is {tuple(indices.shape)}, must be ({x.shape[0]}, top_k)")
    _require(weights.shape == indices.shape, ValueError,
             lambda: f"router_weights: its shape is {tuple(weights.shape)}, must be {tuple(indices.shape)} as that of "
             "router_indices")
    _require(w13.shape[2] == x.shape[1], ValueError,
             lambda: f"w13: its shape {tuple(w13.shape)} does not fit that of x, {tuple(x.shape)}")
    wanted = (w13.shape[0], x.shape[1], w13.shape[1] // 2)
    _require(w2.shape == wanted, ValueError, lambda: f"w2: its shape is {tuple(w2.shape)}, must be {tuple(wanted)}")
    for name, other in (("router_weights", weights), ("router_indices", indices), ("w13", w13), ("w2", w2)):
        _require(other.device == x.device, ValueError,
                 lambda: f"{name}: is on {other.device}, must be on {x.device} as x")


def _check_bias(name: str, bias: Tensor, x: Tensor, shape: tuple[int, int]) -> None:
    require_dimensions(2, **{name: bias})
    _require(bias.dtype in (x.dtype, torch.float32), TypeError,
             lambda: f"{name}: is {bias.dtype}, must be {x.dtype} as x or torch.float32")
    _require(bias.shape == shape, ValueError,
             lambda: f"{name}: its shape is {tuple(bias.shape)}, must be {tuple(shape)}")
    _require(bias.device == x.device, ValueError, lambda: f"{name}: is on {bias.device}, must be on {x.device} as x")


def experts(x: Tensor, weights: Tensor, indices: Tensor, w13: Tensor, w2: Tensor, b13: Tensor | None,
            b2: Tensor | None, gate: _gates.Gate, batch_invariant: bool, out: Tensor | None = None) -> Tensor:
    """The operators of a layer whose arguments fit each other. out: where the result goes, without gradients."""
    rows, ends = (_route if is_plain(indices) else ROUTE)(indices, w13.shape[0])
    values = gather_rows(x, None, rows)
    values = _gates.by_rows(values, w13.transpose(1, 2), ends, gate, batch_invariant, b13)
    values = _groups.grouped_mm(values, w2.transpose(1, 2), ends, False, batch_invariant, None, b2)
    if out is not None:
        return _move(c.hgemm_combine_rows, values, out, weights, rows)
    return combine_rows(values, weights, rows, ends)


def moe(x: Tensor, router_weights: Tensor, router_indices: Tensor, w13: Tensor, w2: Tensor, *,
        b13: Optional[Tensor] = None, b2: Optional[Tensor] = None, activation: Optional[str] = "silu",
        gate_block: Optional[int] = None, limit: Optional[float] = None, slope: Optional[float] = None,
        offset: float = 0.0) -> Tensor:
    """A layer of experts: for each token the sum, over its ``top_k`` experts, of weight * ``w2[expert] @ gated``.

    ``x``: (T, H). ``router_indices``: int64 or int32, (T, top_k), the experts of each token; -1 is none.
    ``router_weights``: (T, top_k), of float32 or a half type. ``w13``: (E, 2 F, H), and ``w2``: (E, H, F), rows as of
    :func:`linear`.
    ``b13``: (E, 2 F), and ``b2``: (E, H), are biases of the two products, of float32 or of the type of ``x``.
    ``gated`` is :func:`gated_linear` of the token, ``w13[expert]`` and ``b13[expert]``, with the same ``activation``,
    ``gate_block``, ``limit``, ``slope`` and ``offset``. The result is (T, H).

    The same call gives the same bits, and so do its gradients. Under :func:`batch_invariant` a token's bits do not
    depend on the other tokens. Nothing waits for the device, so that CUDA graphs can have it. On a GPU other indices
    outside of 0 ... E - 1 count as -1; on the CPU they are refused.
    """
    _check(x, router_weights, router_indices, w13, w2)
    for name, bias, weight in (("b13", b13, w13), ("b2", b2, w2)):
        if bias is not None:
            _check_bias(name, bias, x, (weight.shape[0], weight.shape[1]))
    gate = _gates.gate_of(w13.shape[1], "w13", activation, gate_block, limit, slope, offset)
    return experts(x, router_weights, router_indices, w13, w2, b13, b2, gate, mode.batch_invariant)
