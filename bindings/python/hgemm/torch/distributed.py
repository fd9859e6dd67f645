"""Linear layers of which each rank of a group has a part: in the order of a tree, or overlapped with what ranks send.

In tree mode (hgemm_mode_t) the library adds up a product's K as a tree, of which each rank has a branch. A rank
computes its branch to float32. It then gets all ranks' sums for one block of the result's elements, adds them pairwise
as the tree does, adds the bias, and rounds once. The result has the bits of one rank that has all of K.

The other functions move rows and sums between ranks while they multiply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from . import _ops, _peers
from ._ops import Names, require_dimensions, require_tensors
from ._parallel import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter
from ._ranks import Group, compare, gather, known, place
from ._tree import TREE_MM
from ._tree_reduce import TREE_REDUCE

if TYPE_CHECKING:
    from ._styles import ColwiseParallel, RowwiseParallel

__all__ = ["ColumnParallelLinear", "ColwiseParallel", "RowParallelLinear", "RowwiseParallel", "all_gather_matmul",
           "matmul_all_reduce", "matmul_reduce_scatter", "row_parallel_linear", "transport"]

_WANTED = "a multiple of 64 that is at least 512"
_ORDERS = ("tree", "fast")


def __getattr__(name: str) -> Any:
    """The styles import torch.distributed.tensor, which takes time."""
    if name not in ("ColwiseParallel", "RowwiseParallel"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _styles
    return getattr(_styles, name)


def transport(device: torch.device | str, group: Group = None) -> str:
    """How tensors of a device travel in the functions that overlap: "peers", "collectives", or "none" for one rank.

    All ranks of the group call it together. The logger "hgemm.torch.distributed" says why, at the level DEBUG.
    """
    if place(group)[1] == 1:
        return "none"
    device = torch.empty(0, device=device).device  # with an index
    return "collectives" if _peers.find(known(group), device, 0) is None else "peers"


def _place(group: Group) -> tuple[int, int]:
    rank, size = place(group)
    _ops._require(size & (size - 1) == 0, ValueError, f"group: has {size} ranks, must be a power of two")
    return rank, size


def _is_subtree(part: int, size: int) -> bool:
    """Whether the tree of K = part * size is cut between the ranks' parts."""
    return size == 1 or (part % 64 == 0 and part >= 512)


class _RowParallel(torch.autograd.Function):
    """Of matrices. The result, or each rank's rows of it, is taken to be used alike in all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, group: Group,
                scatter: bool) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.bias_dtype, ctx.group, ctx.scatter = getattr(bias, "dtype", None), group, scatter
        name = "" if _place(group)[1] == 1 else known(group).group_name
        return TREE_REDUCE(x, weight.t(), bias, name, dtype, scatter)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        """Parts of K have parts of the gradients, which need no other rank."""
        x, weight = ctx.saved_tensors
        size = _place(ctx.group)[1]
        if ctx.scatter and size > 1:
            grad = gather(grad, ctx.group, size)
        half = grad.to(x.dtype)
        of_x = TREE_MM(half, weight, None, None) if ctx.needs_input_grad[0] else None
        of_weight = TREE_MM(half.t(), x, None, None) if ctx.needs_input_grad[1] else None
        of_bias = grad.sum(0, dtype=torch.float32).to(ctx.bias_dtype) if ctx.needs_input_grad[2] else None
        return of_x, of_weight, of_bias, None, None, None


def _check(input: Tensor, weight: Tensor, bias: Tensor | None, size: int, scatter: bool) -> None:
    require_tensors(input=input)
    require_dimensions(2, weight=weight)
    if bias is not None:
        require_tensors(bias=bias)
    least = 2 if scatter else 1
    _ops._require(input.dim() >= least, ValueError, f"input: {input.dim()} dimensions, must be {least} or more")
    _ops._require(input.shape[-1] == weight.shape[1], ValueError,
                  f"weight: its shape {tuple(weight.shape)} does not fit that of input, {tuple(input.shape)}")
    part = input.shape[-1]
    _ops._require(_is_subtree(part, size), ValueError,
                  f"input: its last dimension is {part} in each of {size} ranks, must be {_WANTED}")
    _ops._require(not scatter or input.shape[0] % size == 0, ValueError,
                  f"input: its first dimension is {input.shape[0]}, must be a multiple of the {size} ranks")


def row_parallel_linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, group: Group = None, *,
                        out_dtype: Optional[torch.dtype] = None, scatter: bool = False) -> Tensor:
    """As torch.nn.functional.linear(), of an ``input`` and a ``weight`` of which each rank of ``group`` has a part.

    Rank r of P has ``weight``, (N, K / P): columns r * K / P and on of the whole weight, and the same part of the last
    dimension of ``input``, (..., K / P). ``bias``: the whole, (N,), alike in all ranks. ``out_dtype`` may be
    torch.float32. Every rank gets the whole result, (..., N); with ``scatter`` rank r gets the r-th of P equal parts of
    its first dimension. The bits are the same for 1, 2, 4, ... ranks: those of ``hgemm.torch.tree_mm``.

    K / P must be a multiple of 64 and at least 512. Call it in all ranks, with the same shapes and types: it does not
    compare them. ``group``: None is torch's default group, or this process alone where there is none.
    """
    size = _place(group)[1]
    _check(input, weight, bias, size, scatter)
    rows = input.shape[:-1].numel()
    x, names = input.reshape(rows, input.shape[-1]), Names("input", "weight")
    shape = _ops.check(x, weight.t(), None, bias, out_dtype, names)
    result = _RowParallel.apply(x, weight, bias, out_dtype or x.dtype, group, scatter)
    first = (input.shape[0] // size, *input.shape[1:-1]) if scatter else input.shape[:-1]
    return result.reshape(*first, shape[1])


class RowParallelLinear(nn.Module):
    """A linear layer whose K is spread over ranks. ``weight``: this rank's part, (N, K / P). ``bias``: the whole, (N,).

    ``order``: of the sums of K. "tree" is ``row_parallel_linear``. "fast" is ``matmul_all_reduce``, and with
    ``scatter`` ``matmul_reduce_scatter``: for any number of ranks and any K, overlapped, and without a tree's bits.
    All ranks create it together. It compares their shapes and types once, and whether there is a bias.
    """

    bias: Optional[nn.Parameter]

    def __init__(self, weight: Tensor, bias: Optional[Tensor] = None, group: Group = None, *,
                 scatter: bool = False, order: str = "tree") -> None:
        super().__init__()
        require_dimensions(2, weight=weight)
        if bias is not None:
            require_dimensions(1, bias=bias)
        size = _place_for(order, group)[1]
        if size > 1:
            compare(_described(weight, bias), group, size)  # first: what follows is then refused by all ranks
        _ops._require(order == "fast" or _is_subtree(weight.shape[1], size), ValueError,
                      f"weight: has {weight.shape[1]} columns in each of {size} ranks, must have {_WANTED}")
        self.group, self.scatter, self.order = group, scatter, order
        self.weight = _parameter(weight)
        self.register_parameter("bias", None if bias is None else _parameter(bias))

    @classmethod
    def from_linear(cls, linear: nn.Linear, group: Group = None, *, scatter: bool = False,
                    order: str = "tree") -> RowParallelLinear:
        """With copies of this rank's columns of its weight, and of its bias. All ranks have the whole ``linear``."""
        rank, size = _place_for(order, group)
        part, rest = divmod(linear.in_features, size)
        _ops._require(rest == 0 and (order == "fast" or _is_subtree(part, size)), ValueError,
                      f"linear: in_features is {linear.in_features}, must be {size} times "
                      f"{'a whole number' if order == 'fast' else _WANTED}")
        weight = linear.weight.detach()[:, rank * part:(rank + 1) * part]
        bias = None if linear.bias is None else linear.bias.detach()
        return _as_in(linear, cls(_copy(weight), _copy(bias), group, scatter=scatter, order=order))

    def forward(self, input: Tensor) -> Tensor:
        if self.order == "tree":
            return row_parallel_linear(input, self.weight, self.bias, self.group, scatter=self.scatter)
        function = matmul_reduce_scatter if self.scatter else matmul_all_reduce
        return function(input, self.weight.t(), self.group, bias=self.bias)

    def extra_repr(self) -> str:
        return (f"out_features={self.weight.shape[0]}, in_features={self.weight.shape[1]} here, "
                f"bias={self.bias is not None}, scatter={self.scatter}, order={self.order}")


class ColumnParallelLinear(nn.Module):
    """A linear layer whose N is spread over ranks: ``all_gather_matmul`` with parameters.

    ``weight``: this rank's part, (N / P, K). ``bias``: its part, (N / P,). From each rank's part of the first dimension
    of the input, (S / P, ..., K), it computes this rank's part of the last one, (S, ..., N / P).
    All ranks create it together. It compares their shapes and types once, and whether there is a bias.
    """

    bias: Optional[nn.Parameter]

    def __init__(self, weight: Tensor, bias: Optional[Tensor] = None, group: Group = None) -> None:
        super().__init__()
        require_dimensions(2, weight=weight)
        if bias is not None:
            require_dimensions(1, bias=bias)
        size = place(group)[1]
        if size > 1:
            compare(_described(weight, bias), group, size)
        self.group = group
        self.weight = _parameter(weight)
        self.register_parameter("bias", None if bias is None else _parameter(bias))

    @classmethod
    def from_linear(cls, linear: nn.Linear, group: Group = None) -> ColumnParallelLinear:
        """With copies of this rank's rows of its weight, and of its bias. All ranks have the whole ``linear``."""
        rank, size = place(group)
        part, rest = divmod(linear.out_features, size)
        _ops._require(rest == 0, ValueError,
                      f"linear: out_features is {linear.out_features}, must be {size} times a whole number")
        own = slice(rank * part, (rank + 1) * part)
        bias = None if linear.bias is None else linear.bias.detach()[own]
        return _as_in(linear, cls(_copy(linear.weight.detach()[own]), _copy(bias), group))

    def forward(self, input: Tensor) -> Tensor:
        return all_gather_matmul(input, self.weight.t(), self.group, bias=self.bias)

    def extra_repr(self) -> str:
        return (f"out_features={self.weight.shape[0]} here, in_features={self.weight.shape[1]}, "
                f"bias={self.bias is not None}")


def _place_for(order: str, group: Group) -> tuple[int, int]:
    _ops._require(order in _ORDERS, ValueError, f"order: {order!r}, must be one of {', '.join(_ORDERS)}")
    return place(group) if order == "fast" else _place(group)


def _parameter(tensor: Tensor) -> nn.Parameter:
    return tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor)


def _copy(part: Optional[Tensor]) -> Any:
    return None if part is None else part.clone(memory_format=torch.contiguous_format)


def _described(weight: Tensor, bias: Optional[Tensor]) -> str:
    biases = "without bias" if bias is None else f"with {len(bias)} biases"
    return f"{tuple(weight.shape)} of {weight.dtype} {biases}"


def _as_in(linear: nn.Linear, layer: Any) -> Any:
    """Trains what the whole layer trains."""
    layer.weight.requires_grad_(linear.weight.requires_grad)
    if layer.bias is not None:
        layer.bias.requires_grad_(linear.bias.requires_grad)
    return layer.train(linear.training)
