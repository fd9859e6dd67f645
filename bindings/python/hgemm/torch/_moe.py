"""Mixtures of experts: tokens are sorted by expert, multiplied by groups, and summed in the order of their choice."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from . import _autograd, _extension, _gates, _groups, _ops
from ._autograd import _transformed
from ._extension import is_transformed, refuse_forward_mode
from ._ops import _require, require_dimensions
from ._overrides import mode

# indices (T, top_k): of the experts of each token. There is a row for each, sorted by expert, and then by token.
# order: where in indices the row's is; tokens: whose row it is; places: of the rows, in the order of indices; ends:
# where each expert's rows end.
_ops._library.define("route(Tensor indices, SymInt experts) -> "
                     "(Tensor order, Tensor tokens, Tensor places, Tensor ends)")
# x[tokens]. Torch's own gradient of that adds in any order.
_ops._library.define("spread_rows(Tensor x, Tensor tokens, Tensor places) -> Tensor")
# The sum of each token's rows, times weights (T, top_k) if there are any.
_ops._library.define("sum_rows(Tensor rows, Tensor? weights, Tensor order, Tensor tokens, Tensor places) -> Tensor")


def _narrowest(experts: int) -> torch.dtype:
    """Sorting takes time for each byte."""
    return torch.uint8 if experts <= 2**8 else torch.int16 if experts <= 2**15 else torch.int32


def _route(indices: Tensor, experts: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if indices.device.type == "cpu" and indices.numel() > 0:
        least, most = (x.item() for x in indices.aminmax())
        _require(0 <= least and most < experts, ValueError,
                 f"router_indices: has {least if least < 0 else most}, must be from 0 to {experts - 1}")
    keys, order = indices.reshape(-1).to(_narrowest(experts)).sort(stable=True)
    numbers = torch.arange(experts, dtype=keys.dtype, device=keys.device)
    ends = torch.searchsorted(keys, numbers, right=True, out_int32=True)
    places = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=order.device))
    return order, order // indices.shape[1], places, ends


def _spread(x: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    return x.index_select(0, tokens)


def _sum(rows: Tensor, weights: Tensor | None, order: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    """In the order of the token's choice, in float32, rounded once, whatever T is."""
    wide = rows if weights is None or weights.dtype == rows.dtype else rows.float()
    weights = None if weights is None else weights.to(wide.dtype)
    return functional.embedding_bag(places, wide, mode="sum", per_sample_weights=weights).to(rows.dtype)


for _key in ("CPU", "CUDA"):
    for _name, _kernel in (("route", _route), ("spread_rows", _spread), ("sum_rows", _sum)):
        _ops._library.impl(_name, _extension.untraced(_kernel), _key)
ROUTE, SPREAD = torch.ops.hgemm.route.default, torch.ops.hgemm.spread_rows.default
SUM = torch.ops.hgemm.sum_rows.default


@torch.library.register_fake("hgemm::route")
def _fake(indices: Tensor, experts: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    order, tokens, places = (indices.new_empty(indices.numel(), dtype=torch.int64) for _ in range(3))
    return order, tokens, places, indices.new_empty(experts, dtype=torch.int32)


@torch.library.register_fake("hgemm::spread_rows")
def _fake_spread(x: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    return x.new_empty(tokens.shape[0], x.shape[1])


@torch.library.register_fake("hgemm::sum_rows")
def _fake_sum(rows: Tensor, weights: Tensor | None, order: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    return rows.new_empty(places.shape[0], rows.shape[1])


def _save_spread(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:])


def _spread_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    tokens, places = ctx.saved_tensors
    return sum_rows(grad, None, tokens, tokens, places), None, None


def _save_sum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)
    ctx.batch_invariant = mode.batch_invariant


def _sum_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    rows, weights, order, tokens, places = ctx.saved_tensors
    of_rows = of_weights = None
    if ctx.needs_input_grad[0]:
        of_rows = spread_rows(grad, tokens, places)
        if weights is not None:
            of_rows = (of_rows * weights.reshape(-1).index_select(0, order).unsqueeze(1)).to(rows.dtype)
    if weights is not None and ctx.needs_input_grad[1]:
        chosen = rows.index_select(0, places.reshape(-1)).unflatten(0, places.shape)
        wide = torch.float32 if weights.dtype == torch.float32 else None
        of_weights = _autograd.gemm(chosen, grad.unsqueeze(2), None, None, 1.0, 0.0, "none", wide,
                                    ctx.batch_invariant).squeeze(2).to(weights.dtype)
    return of_rows, of_weights, None, None, None


torch.library.register_autograd("hgemm::spread_rows", _spread_backward, setup_context=_save_spread)
torch.library.register_autograd("hgemm::sum_rows", _sum_backward, setup_context=_save_sum)
_transformed_spread = _transformed(SPREAD, _save_spread, _spread_backward)
_transformed_sum = _transformed(SUM, _save_sum, _sum_backward)


def spread_rows(*arguments: Any) -> Tensor:
    """The operator hgemm::spread_rows."""
    return (_transformed_spread if is_transformed() else SPREAD)(*arguments)


def sum_rows(*arguments: Any) -> Tensor:
    """The operator hgemm::sum_rows."""
    return (_transformed_sum if is_transformed() else SUM)(*arguments)


def _check(x: Tensor, weights: Tensor, indices: Tensor, w13: Tensor, w2: Tensor) -> None:
    require_dimensions(2, x=x, router_weights=weights, router_indices=indices)
    require_dimensions(3, w13=w13, w2=w2)
    _require(x.dtype in _ops.HALF, TypeError,
             f"x: is {x.dtype}, must be torch.float16 or torch.bfloat16{_ops._about_autocast(x.device)}")
    for name, weight in (("w13", w13), ("w2", w2)):
        _require(weight.dtype == x.dtype, TypeError, f"{name}: is {weight.dtype}, must be {x.dtype} as x")
    _require(weights.dtype in (*_ops.HALF, torch.float32), TypeError,
             f"router_weights: is {weights.dtype}, must be torch.float16, torch.bfloat16 or torch.float32")
    _require(indices.dtype in (torch.int32, torch.int64), TypeError,
             f"router_indices: is {indices.dtype}, must be torch.int32 or torch.int64")
    _require(indices.shape[0] == x.shape[0] and indices.shape[1] > 0, ValueError,
             f"router_indices: its shape is {tuple(indices.shape)}, must be ({x.shape[0]}, top_k)")
    _require(weights.shape == indices.shape, ValueError,
             f"router_weights: its shape is {tuple(weights.shape)}, must be {tuple(indices.shape)} as that of "
             "router_indices")
    _require(w13.shape[2] == x.shape[1], ValueError,
             f"w13: its shape {tuple(w13.shape)} does not fit that of x, {tuple(x.shape)}")
    wanted = (w13.shape[0], x.shape[1], w13.shape[1] // 2)
    _require(w2.shape == wanted, ValueError, f"w2: its shape is {tuple(w2.shape)}, must be {tuple(wanted)}")
    for name, other in (("router_weights", weights), ("router_indices", indices), ("w13", w13), ("w2", w2)):
        _require(other.device == x.device, ValueError, f"{name}: is on {other.device}, must be on {x.device} as x")


def _check_bias(name: str, bias: Tensor, x: Tensor, shape: tuple[int, int]) -> None:
    require_dimensions(2, **{name: bias})
    _require(bias.dtype in (x.dtype, torch.float32), TypeError,
             f"{name}: is {bias.dtype}, must be {x.dtype} as x or torch.float32")
    _require(bias.shape == shape, ValueError, f"{name}: its shape is {tuple(bias.shape)}, must be {tuple(shape)}")
    _require(bias.device == x.device, ValueError, f"{name}: is on {bias.device}, must be on {x.device} as x")


def experts(x: Tensor, weights: Tensor, indices: Tensor, w13: Tensor, w2: Tensor, b13: Tensor | None,
            b2: Tensor | None, gate: _gates.Gate, batch_invariant: bool) -> Tensor:
    """The operators of a layer whose arguments fit each other."""
    order, tokens, places, ends = ROUTE(indices, w13.shape[0])
    places = places.view(indices.shape)
    rows = _gates.by_rows(spread_rows(x, tokens, places), w13.transpose(1, 2), ends, gate, batch_invariant, b13)
    rows = _groups.grouped_mm(rows, w2.transpose(1, 2), ends, False, batch_invariant, None, b2)
    return sum_rows(rows, weights, order, tokens, places)


def moe(x: Tensor, router_weights: Tensor, router_indices: Tensor, w13: Tensor, w2: Tensor, *,
        b13: Optional[Tensor] = None, b2: Optional[Tensor] = None, activation: Optional[str] = "silu",
        gate_block: Optional[int] = None, limit: Optional[float] = None, slope: Optional[float] = None,
        offset: float = 0.0) -> Tensor:
    """A layer of experts: for each token the sum, over its ``top_k`` experts, of weight * ``w2[expert] @ gated``.

    ``x``: (T, H). ``router_indices``: int64 or int32, (T, top_k), the experts of each token. ``router_weights``:
    (T, top_k), of float32 or a half type. ``w13``: (E, 2 F, H), and ``w2``: (E, H, F), rows as of :func:`linear`.
    ``b13``: (E, 2 F), and ``b2``: (E, H), are biases of the two products, of float32 or of the type of ``x``.
    ``gated`` is :func:`gated_linear` of the token, ``w13[expert]`` and ``b13[expert]``, with the same ``activation``,
    ``gate_block``, ``limit``, ``slope`` and ``offset``. The result is (T, H).

    The same call gives the same bits, and so do its gradients. Under :func:`batch_invariant` a token's bits do not
    depend on the other tokens. Nothing waits for the device, so that CUDA graphs can have it. There indices outside of
    0 ... E - 1 give undefined values; on CPU tensors they are refused.
    """
    _check(x, router_weights, router_indices, w13, w2)
    for name, bias, weight in (("b13", b13, w13), ("b2", b2, w2)):
        if bias is not None:
            _check_bias(name, bias, x, (weight.shape[0], weight.shape[1]))
    gate = _gates.gate_of(w13.shape[1], "w13", activation, gate_block, limit, slope, offset)
    refuse_forward_mode(x, router_weights, w13, w2, b13, b2)
    return experts(x, router_weights, router_indices, w13, w2, b13, b2, gate, mode.batch_invariant)
