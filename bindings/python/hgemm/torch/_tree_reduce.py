"""The sums of ranks that each have a branch of a tree's K: torch.ops.hgemm.tree_reduce."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import c
from . import _extension, _ops, _peers
from ._peers import Peers
from ._ranks import exchange, gather, group_of, place_in
from ._reduce import add_whole, behind

# x @ mat2, summed over the ranks, and the bias, which each rank has whole. group: its name; "" is this process alone.
_ops._library.define("tree_reduce(Tensor x, Tensor mat2, Tensor? bias, str group, ScalarType out_dtype, bool scatter)"
                     " -> Tensor")


def _multiply(x: Tensor, mat2: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    return _ops.run(x, mat2, None, bias, 1.0, 0.0, "none", out.dtype, c.Mode.TREE, out)[0]


def add_pairwise(parts: Tensor) -> Tensor:
    """As the upper levels of the tree: neighbours first, each sum rounded to float32."""
    while len(parts) > 1:
        parts = parts[0::2] + parts[1::2]
    return parts[0]


def _add_bias(block: Tensor, bias: Tensor, start: int) -> None:
    """``start``: of the block, among all elements."""
    width = len(bias)
    shifted = bias.float().roll(-start % width)  # that of the block's first element first
    rows, rest = divmod(len(block), width)
    block[:rows * width].view(rows, width).add_(shifted)
    block[rows * width:].add_(shifted[:rest])


def _by_collectives(partial: Tensor, bias: Tensor | None, name: str, out: Tensor, scatter: bool) -> None:
    rank, size = place_in(name)
    block = add_pairwise(exchange(partial, group_of(name), size))
    if bias is not None:
        _add_bias(block, bias, rank * len(block))
    block = block.to(out.dtype)
    out.copy_((block if scatter else gather(block, group_of(name), size)[:out.numel()]).view_as(out))


def _by_peers(peers: Peers, x: Tensor, mat2: Tensor, bias: Tensor | None, name: str, sums_at: int, out: Tensor,
              scatter: bool) -> None:
    rank, size = place_in(name)
    parts = peers.views((len(x), mat2.shape[1]), torch.float32)
    _multiply(x, mat2, None, parts[rank])
    block = -(-len(x) // size)
    own = slice(rank * block, (rank + 1) * block)
    if scatter:
        peers.add([part[own] for part in parts], [out], bias, c.Mode.TREE)
    else:
        add_whole(peers, parts, own, peers.views((size * block, mat2.shape[1]), out.dtype, sums_at), out, bias,
                  c.Mode.TREE)


def tree_reduce(x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype,
                scatter: bool) -> Tensor:
    size, columns = place_in(group)[1], mat2.shape[1]
    out = x.new_empty((len(x) // size if scatter else len(x), columns), dtype=out_dtype)
    if size == 1:
        return _multiply(x, mat2, bias, out)
    if out.numel() == 0:
        return out
    if bias is not None:
        bias = bias.contiguous()
    sums_at = behind(len(x) * columns)
    sums = 0 if scatter else -(-len(x) // size) * size * columns * out.itemsize
    peers = _peers.find(group_of(group), x.device, sums_at + sums)
    if peers is None:
        _by_collectives(_multiply(x, mat2, None, x.new_empty((len(x), columns), dtype=torch.float32)), bias, group, out,
                        scatter)
        return out
    with peers.call():
        _by_peers(peers, x, mat2, bias, group, sums_at, out, scatter)
    return out


for _key in ("CPU", "CUDA"):
    _ops._library.impl("tree_reduce", _extension.untraced(tree_reduce), _key)
TREE_REDUCE = torch.ops.hgemm.tree_reduce.default


@torch.library.register_fake("hgemm::tree_reduce")
def _fake(x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype, scatter: bool) -> Tensor:
    return x.new_empty((len(x) // place_in(group)[1] if scatter else len(x), mat2.shape[1]), dtype=out_dtype)
