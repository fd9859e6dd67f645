"""Products of which ranks gather the rows before, or add the results after, while they multiply."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.distributed_c10d import _resolve_process_group

from . import _extension, _ops, _peers
from ._peers import Peers
from ._ranks import Group, exchange, gather

#: Up to so many rows in all, there is one product: several would each read the matrix.
FEW = 512
#: Where all ranks get all rows, two read each other's sums of few rows, and more of them those of up to so many. Above,
#: each would read too much, and all exchange what each adds.
READ_BY_MANY = 64
#: So many rows of a rank's block are halved, so that one half is added, and gathered, beside the product of the other.
HALVED = 2048

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


def group_of(name: str) -> Group:
    return _resolve_process_group(name)  # type: ignore[arg-type]


def place_in(name: str) -> tuple[int, int]:
    """As place(), by the name that operators are given."""
    if not name:
        return 0, 1
    group: Any = group_of(name)
    return group.rank(), group.size()


def _multiply(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor, batch_invariant: bool,
              added: Tensor | None = None) -> None:
    if out.numel() > 0:
        beta = 0.0 if added is None else 1.0
        _ops.run(a, b, added, bias, 1.0, beta, "none", out.dtype, batch_invariant, out)


def _new(x: Tensor, rows: int, mat2: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x.new_empty((rows, mat2.shape[1]), dtype=dtype)


def _product(a: Tensor, b: Tensor, bias: Tensor | None, dtype: torch.dtype | None, batch_invariant: bool) -> Tensor:
    """In C++ where it can be, which takes less of the host's time."""
    return _ops.gemm(a, b, None, bias, 1.0, 0.0, "none", None if dtype == a.dtype else dtype, batch_invariant)


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
            out = _product(gathered, mat2, bias, dtype, batch_invariant)
        if left is not None and out_left is not None:
            _multiply(left, gathered, None, out_left, batch_invariant)
        return out
    x = x.contiguous()
    with peers.call():
        whole = peers.views((size * rows, length), x.dtype)[rank]
        if mat2 is None or size * rows <= FEW:
            _push(peers, x, rank, size)
            peers.barrier()
            if mat2 is not None:
                out = _product(whole, mat2, bias, dtype, batch_invariant)
        else:
            out = _multiply_as_rows_come(peers, x, mat2, bias, rank, size, dtype, left is not None, batch_invariant)
        if left is not None and out_left is not None:
            _multiply(left, whole, None, out_left, batch_invariant)
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
    _multiply(x, mat2, bias, out[rank], batch_invariant)
    for step in range(1, size):
        peers.wait(sent[step - 1])
        peers.barrier()
        other = (rank + step) % size
        rows = peers.views(tuple(x.shape), x.dtype, other * x.nbytes)[rank]
        _multiply(rows, mat2, bias, out[other], batch_invariant)
    peers.wait(sent[-1])
    return out.flatten(0, 1)


def _add(parts: list[Tensor], out: Tensor | None = None) -> Tensor:
    """In float32, one after the other. The last sum is rounded to the type of ``out``."""
    total = parts[0]
    for part in parts[1:-1]:
        total = total + part
    return total if len(parts) == 1 else torch.add(total, parts[-1], out=out)


def _multiply_and_add(x: Tensor, mat2: Tensor, bias: Tensor | None, name: str, out: Tensor, scatter: bool,
                      batch_invariant: bool) -> None:
    rank, size = place_in(name)
    rows, columns = len(x), mat2.shape[1]
    if size == 1 or rows * columns == 0 or x.numel() == 0:
        _multiply(x[:len(out)], mat2, bias, out, batch_invariant)
        return
    added = bias if rank == 0 else None
    block = -(-rows // size)
    sums_at = -(-4 * size * block * columns // 256) * 256  # behind what ranks add
    peers = _peers.find(group_of(name), x.device, sums_at + block * columns * out.itemsize)
    if peers is None or (size > 2 and not scatter and READ_BY_MANY < rows <= FEW):
        partial = _new(x, rows, mat2, torch.float32)
        _multiply(x, mat2, added, partial, batch_invariant)
        parts = exchange(partial, group_of(name), size)
        sums = _add([*parts], parts.new_empty(parts.shape[1:], dtype=out.dtype))
        out.copy_((sums if scatter else gather(sums, group_of(name), size)[:out.numel()]).view_as(out))
        return
    with peers.call():
        if rows <= FEW:
            _multiply_whole(peers, x, mat2, added, rank, size, out, scatter, batch_invariant)
            return
        each_sums = None if scatter else peers.views((block, columns), out.dtype, sums_at)
        _multiply_blocks(peers, x, mat2, added, rank, size, out, each_sums, batch_invariant)


def _multiply_whole(peers: Peers, x: Tensor, mat2: Tensor, bias: Tensor | None, rank: int, size: int, out: Tensor,
                    scatter: bool, batch_invariant: bool) -> None:
    """Each rank reads from all others what it adds."""
    columns = mat2.shape[1]
    _multiply(x, mat2, bias, peers.views((len(x), columns), torch.float32)[rank], batch_invariant)
    peers.barrier()
    first = rank * len(out) if scatter else 0
    _add(peers.views((len(out), columns), torch.float32, 4 * first * columns), out)


def _send_sums(peers: Peers, out: Tensor, each_sums: list[Tensor], rows: slice) -> torch.cuda.Event:
    """These rows of all ranks' blocks, to the result."""
    blocks = [part[rows] for part in out.split(len(each_sums[0]))]
    return peers.send([(part, sums[rows][:len(part)]) for part, sums in zip(blocks, each_sums)])[-1]


def _gather_sums(out: Tensor, each_sums: list[Tensor]) -> None:
    """At once, by one kernel: copy engines take as long to begin."""
    blocks = out.split(len(each_sums[0]))
    torch.cat([sums[:len(part)] for part, sums in zip(blocks, each_sums)], out=out)


def _multiply_blocks(peers: Peers, x: Tensor, mat2: Tensor, bias: Tensor | None, rank: int, size: int, out: Tensor,
                     each_sums: list[Tensor] | None, batch_invariant: bool) -> None:
    """Each rank owns a block of rows. It multiplies the others' first, and copy engines send each to its owner."""
    block, columns = -(-len(x) // size), mat2.shape[1]
    half = block // 2
    pieces = [slice(0, half), slice(half, block)] if block >= HALVED else [slice(0, block)]
    parts = peers.views((size, block, columns), torch.float32)
    sent, alive = [], []  # for each piece; what is being sent
    for piece in pieces:
        for step in range(1, size):
            owner = (rank + step) % size
            rows = x[owner * block:(owner + 1) * block][piece]
            alive.append(rows.new_empty((len(rows), columns), dtype=torch.float32))
            _multiply(rows, mat2, bias, alive[-1], batch_invariant)
            last = peers.send([(parts[owner][rank, piece][:len(rows)], alive[-1])])[-1]
        sent.append(last)
    own = x[rank * block:(rank + 1) * block]
    sums = out if each_sums is None else each_sums[rank]
    if len(pieces) == 1:
        _multiply(own, mat2, bias, parts[rank][rank, :len(own)], batch_invariant)
    for i, piece in enumerate(pieces):
        peers.wait(sent[i])
        peers.barrier()
        if each_sums is not None and i > 0:
            _send_sums(peers, out, each_sums, pieces[i - 1])
        rows = own[piece]
        to_add = [parts[rank][each, piece][:len(rows)] for each in range(size) if each != rank or len(pieces) == 1]
        if len(pieces) == 1:
            _add(to_add, sums[:len(rows)])
        else:
            _multiply(rows, mat2, bias, sums[piece][:len(rows)], batch_invariant, _add(to_add))
    if each_sums is not None:
        peers.barrier()
        if len(pieces) == 1:
            _gather_sums(out, each_sums)
        else:
            peers.wait(_send_sums(peers, out, each_sums, pieces[-1]))


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
    out = _new(x, len(x) // place_in(group)[1] if scatter else len(x), mat2, out_dtype)
    _multiply_and_add(x, mat2, bias, group, out, scatter, batch_invariant)
    return out


def sum_of_ranks(values: Tensor, group: str) -> Tensor:
    return _add([*gather(values[None], group_of(group), place_in(group)[1])])


for _key in ("CPU", "CUDA"):
    for _kernel in (all_gather_matmul, all_gather_gradients, matmul_reduce, sum_of_ranks):
        _ops._library.impl(_kernel.__name__, _extension.untraced(_kernel), _key)
