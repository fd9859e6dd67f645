"""Products of which ranks add the results: one whole product, or one for each rank's block of rows or of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .. import c
from . import _peers
from ._peers import Peers
from ._ranks import exchange, gather, group_of, multiply, new, place_in

#: Up to so many rows in all, there is one product: several would each read the matrix.
FEW = 512
#: Ranks that all get all rows wait once more for each other, and copy, where that spares each so many bytes of NVLink.
WORTH_A_MEETING = 2 << 20
#: Products of blocks of columns are at least so large, in multiplications: smaller ones do not fill a device. Ranks own
#: multiples of ALIGNED columns.
LEAST, ALIGNED = 12 << 30, 64
#: So many rows of a rank's block are halved, so that one half is added, and gathered, beside the product of the other.
HALVED = 2048


class _Sum(NamedTuple):
    """What a rank multiplies, and where the sums of all ranks go."""
    x: Tensor
    mat2: Tensor
    bias: Tensor | None  # of rank 0 alone
    rank: int
    size: int
    batch_invariant: bool
    out: Tensor
    sums: list[Tensor] | None  # in each rank's memory; None: a rank gets its own rows alone

    @property
    def block(self) -> int:
        """Rows that a rank owns."""
        return -(-len(self.x) // self.size)

    def rows_of(self, rank: int) -> slice:
        return slice(rank * self.block, (rank + 1) * self.block)

    @property
    def width(self) -> int:
        return width_of(self.mat2.shape[1], self.size)

    def columns_of(self, rank: int) -> slice:
        return slice(rank * self.width, (rank + 1) * self.width)

    def multiply(self, rows: Tensor, columns: slice, out: Tensor) -> None:
        bias = None if self.bias is None else self.bias[columns]
        multiply(rows, self.mat2[:, columns], bias, out, self.batch_invariant)


_ALL = slice(None)


def width_of(columns: int, size: int) -> int:
    """Columns that a rank owns, of all."""
    return -(-columns // (ALIGNED * size)) * ALIGNED


def behind(added: int) -> int:
    """The byte of a buffer where sums begin: behind so many float32 values that ranks add."""
    return -(-4 * added // 256) * 256


def add(parts: list[Tensor], out: Tensor | None = None) -> Tensor:
    """In float32, one after the other. The last sum is rounded to the type of ``out``."""
    total = parts[0]
    for part in parts[1:-1]:
        total = total + part
    return total if len(parts) == 1 else torch.add(total, parts[-1], out=out)


def multiply_and_add(x: Tensor, mat2: Tensor, bias: Tensor | None, name: str, out: Tensor, scatter: bool,
                     batch_invariant: bool) -> None:
    rank, size = place_in(name)
    rows, columns = len(x), mat2.shape[1]
    if size == 1 or rows * columns == 0 or x.numel() == 0:
        multiply(x[:len(out)], mat2, bias, out, batch_invariant)
        return
    s = _Sum(x, mat2, bias if rank == 0 else None, rank, size, batch_invariant, out, None)
    way = _way_of(s, scatter)
    added = size * (rows * s.width if way is _multiply_columns else s.block * columns)
    sums_at = behind(added)
    shape = (size * s.block, columns)
    peers = _peers.find(group_of(name), x.device, sums_at + (0 if scatter else shape[0] * columns * out.itemsize))
    if peers is None:
        partial = new(x, rows, mat2, torch.float32)
        multiply(x, mat2, s.bias, partial, batch_invariant)
        parts = exchange(partial, group_of(name), size)
        total = add([*parts], parts.new_empty(parts.shape[1:], dtype=out.dtype))
        out.copy_((total if scatter else gather(total, group_of(name), size)[:out.numel()]).view_as(out))
        return
    with peers.call():
        way(peers, s if scatter else s._replace(sums=peers.views(shape, out.dtype, sums_at)))


def _way_of(s: _Sum, scatter: bool) -> Callable[[Peers, _Sum], None]:
    if s.block >= HALVED:
        return _multiply_halves
    if scatter and len(s.x) > FEW:
        return _multiply_rows
    if not scatter and len(s.x) >= FEW and s.x.numel() * s.width >= LEAST:
        return _multiply_columns
    return _multiply_whole


def _multiply_whole(peers: Peers, s: _Sum) -> None:
    """Each rank reads from all others what it adds."""
    parts = peers.views((len(s.x), s.mat2.shape[1]), torch.float32)
    s.multiply(s.x, _ALL, parts[s.rank])
    if s.sums is None:
        peers.add([part[s.rows_of(s.rank)] for part in parts], [s.out])
    else:
        add_whole(peers, parts, s.rows_of(s.rank), s.sums, s.out)


def _spared(out: Tensor, size: int) -> int:
    """Bytes that need not reach a rank if it reads of its own rows alone what all others have, in float32, and gets the
    results of the others' rows."""
    return out.numel() * (size - 1) * (4 * size - 4 - out.itemsize) // size


def add_whole(peers: Peers, parts: list[Tensor], own: slice, sums: list[Tensor], out: Tensor,
              bias: Tensor | None = None, mode: int = c.Mode.DEFAULT) -> None:
    """All ranks get all rows. own: those that this rank adds for all, where there are many."""
    if _spared(out, len(parts)) <= WORTH_A_MEETING:
        peers.add(parts, [out], bias, mode)
    else:
        peers.add([part[own] for part in parts], [each[own][:len(parts[0][own])] for each in sums], bias, mode,
                  for_all=True)
        peers.take(sums[peers.rank][:len(out)], out)


def _send_products(peers: Peers, s: _Sum, parts: list[Tensor], rows: slice, by_rows: bool,
                   alive: list[Tensor]) -> torch.cuda.Event:
    """Of the other ranks' blocks, from ``rows`` of each, to their owners. alive: what must live until they are sent."""
    for step in range(1, s.size):
        owner = (s.rank + step) % s.size
        taken, columns = (s.x[s.rows_of(owner)][rows], _ALL) if by_rows else (s.x, s.columns_of(owner))
        there = parts[owner][s.rank, rows, :s.mat2[:, columns].shape[1]][:len(taken)]
        alive.append(there.new_empty(there.shape))
        s.multiply(taken, columns, alive[-1])
        sent = peers.send([(there, alive[-1])])[-1]
    return sent


def _multiply_rows(peers: Peers, s: _Sum) -> None:
    """Each rank owns a block of rows. It multiplies the others' first, and copy engines send each to its owner."""
    parts, alive = peers.views((s.size, s.block, s.mat2.shape[1]), torch.float32), []
    sent = _send_products(peers, s, parts, _ALL, True, alive)
    own = parts[s.rank]
    s.multiply(s.x[s.rows_of(s.rank)], _ALL, own[s.rank])
    peers.wait(sent)
    peers.add([*own], [s.out])


def _multiply_columns(peers: Peers, s: _Sum) -> None:
    """Each rank owns a block of columns, which it adds for all. So each product reads its part of the matrix alone."""
    assert s.sums is not None
    parts, alive = peers.views((s.size, len(s.x), s.width), torch.float32), []
    sent = _send_products(peers, s, parts, _ALL, False, alive)
    columns = s.columns_of(s.rank)
    places = [each[:len(s.x), columns] for each in s.sums]
    own = parts[s.rank][:, :, :places[0].shape[1]]
    s.multiply(s.x, columns, own[s.rank])
    peers.wait(sent)
    peers.add([*own], places, for_all=True)
    peers.take(s.sums[s.rank][:len(s.x)], s.out)


def _multiply_halves(peers: Peers, s: _Sum) -> None:
    """As _multiply_rows(), and the product of each half of the own rows adds what others have sent. The first half is
    gathered beside the product of the second."""
    parts, alive = peers.views((s.size, s.block, s.mat2.shape[1]), torch.float32), []
    halves = [slice(0, s.block // 2), slice(s.block // 2, s.block)]
    sent = [_send_products(peers, s, parts, half, True, alive) for half in halves]
    own = s.x[s.rows_of(s.rank)]
    each_sums = None if s.sums is None else [each[:s.block] for each in s.sums]
    for i, half in enumerate(halves):
        peers.wait(sent[i])
        peers.barrier()
        if each_sums is not None and i > 0:
            _gather_sums(peers, s.out, each_sums, halves[i - 1])
        rows = own[half]
        others = [part[half][:len(rows)] for each, part in enumerate(parts[s.rank]) if each != s.rank]
        place = (s.out if each_sums is None else each_sums[s.rank])[half][:len(rows)]
        multiply(rows, s.mat2, s.bias, place, s.batch_invariant, add(others))
    if each_sums is not None:
        peers.barrier()
        peers.wait(_gather_sums(peers, s.out, each_sums, halves[-1]))


def _gather_sums(peers: Peers, out: Tensor, each_sums: list[Tensor], rows: slice) -> torch.cuda.Event:
    """These rows of all ranks' blocks, to the result."""
    blocks = [part[rows] for part in out.split(len(each_sums[0]))]
    return peers.send([(part, sums[rows][:len(part)]) for part, sums in zip(blocks, each_sums)])[-1]
