"""Products of which ranks gather the rows before, or add the results after, while they multiply."""

from __future__ import annotations

import torch
from torch import Tensor

from . import _extension, _ops, _peers, _reduce
from ._peers import Peers
from ._ranks import gather, group_of, multiply, new, place_in, product

# bias: (N,). group: its name; "" is this process alone.
_ops._library.define("all_gather_matmul(Tensor x, Tensor mat2, Tensor? bias, str group, ScalarType? out_dtype, "
                     "bool batch_invariant) -> Tensor")
# gather(x) @ mat2, unless there is none, and left @ gather(x), of which columns are contiguous if they are to be.
_ops._library.define("all_gather_gradients(Tensor x, Tensor? mat2, Tensor left, str group, bool by_columns, "
                     "bool batch_invariant) -> (Tensor, Tensor)")
_ops._library.define("matmul_reduce(Tensor x, Tensor mat2, Tensor? bias, str group, ScalarType? out_dtype, "
                     "bool scatter, bool batch_invariant) -> Tensor")
# float32 values of several ranks, in their order.
_ops._library.define("sum_of_ranks(Tensor values, str group) -> Tensor")


def _gather_and_multiply(x: Tensor, mat2: Tensor | None, bias: Tensor | None, left: Tensor | None, name: str,
                         dtype: torch.dtype | None, out_left: Tensor | None,
                         batch_invariant: bool) -> Tensor | None:
    """gather(x) @ mat2, and to out_left: left @ gather(x)."""
    rank, size = place_in(name)
    rows, length = x.shape
    out = peers = None
    if size > 1 and x.numel() > 0:
        peers = _peers.find(group_of(name), x.device, size * x.nbytes)
    if peers is None:
        gathered = x if size == 1 else gather(x, group_of(name), size)
        if mat2 is not None:
            out = product(gathered, mat2, bias, dtype, batch_invariant)
        if left is not None and out_left is not None:
            multiply(left, gathered, None, out_left, batch_invariant)
        return out
    x = x.contiguous()
    with peers.call():
        whole = peers.views((size * rows, length), x.dtype)[rank]
        if mat2 is None or size * rows <= _reduce.FEW:
            _push(peers, x, rank, size)
            peers.barrier()
            if mat2 is not None:
                out = product(whole, mat2, bias, dtype, batch_invariant)
        else:
            out = _multiply_as_rows_come(peers, x, mat2, bias, rank, size, dtype, left is not None, batch_invariant)
        if left is not None and out_left is not None:
            multiply(left, whole, None, out_left, batch_invariant)
    return out


def _push(peers: Peers, x: Tensor, rank: int, size: int) -> None:
    """One kernel, in less time than copy engines take to begin. It gives each tensor of few elements to one SM, so few
    rows are cut: into no more tensors than a launch takes."""
    pieces = max(1, 1 << (32 // size).bit_length() >> 1)
    if x.numel() > 1 << 19 or x.numel() % pieces:
        pieces = 1
    there = peers.views((pieces, x.numel() // pieces), x.dtype, rank * x.nbytes, True)
    torch._foreach_copy_(there, x.view(pieces, -1).unbind() * size)


def _multiply_as_rows_come(peers: Peers, x: Tensor, mat2: Tensor, bias: Tensor | None, rank: int, size: int,
                           dtype: torch.dtype | None, keep: bool, batch_invariant: bool) -> Tensor:
    """Copy engines send this rank's rows to all others, the first to the rank that multiplies them first."""
    out = x.new_empty((size, len(x), mat2.shape[1]), dtype=dtype)
    places = peers.views(tuple(x.shape), x.dtype, rank * x.nbytes)
    copies = [(places[(rank - step) % size], x) for step in range(1, size)]
    if keep:
        copies.append((places[rank], x))
    sent = peers.send(copies)
    multiply(x, mat2, bias, out[rank], batch_invariant)
    for step in range(1, size):
        peers.wait(sent[step - 1])
        peers.barrier()
        other = (rank + step) % size
        rows = peers.views(tuple(x.shape), x.dtype, other * x.nbytes)[rank]
        multiply(rows, mat2, bias, out[other], batch_invariant)
    peers.wait(sent[-1])
    return out.flatten(0, 1)


def all_gather_matmul(x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype | None,
                      batch_invariant: bool) -> Tensor:
    out = _gather_and_multiply(x, mat2, bias, None, group, out_dtype, None, batch_invariant)
    assert out is not None
    return out


def all_gather_gradients(x: Tensor, mat2: Tensor | None, left: Tensor, group: str, by_columns: bool,
                         batch_invariant: bool) -> tuple[Tensor, Tensor]:
    shape = (left.shape[0], x.shape[1])
    out_left = x.new_empty(shape[::-1]).t() if by_columns else x.new_empty(shape)
    out = _gather_and_multiply(x, mat2, None, left, group, None, out_left, batch_invariant)
    return x.new_empty((0,)) if out is None else out, out_left


def matmul_reduce(x: Tensor, mat2: Tensor, bias: Tensor | None, group: str, out_dtype: torch.dtype | None,
                  scatter: bool, batch_invariant: bool) -> Tensor:
    out = new(x, len(x) // place_in(group)[1] if scatter else len(x), mat2, out_dtype)
    _reduce.multiply_and_add(x, mat2, bias, group, out, scatter, batch_invariant)
    return out


def sum_of_ranks(values: Tensor, group: str) -> Tensor:
    return _reduce.add([*gather(values[None], group_of(group), place_in(group)[1])])


for _key in ("CPU", "CUDA"):
    for _kernel in (all_gather_matmul, all_gather_gradients, matmul_reduce, sum_of_ranks):
        _ops._library.impl(_kernel.__name__, _extension.untraced(_kernel), _key)
