"""Sums over memory of several ranks, by one kernel that also waits for the ranks: hgemm_exchange()."""

from __future__ import annotations

from ctypes import addressof, c_void_p
from typing import Any

from torch import Tensor

from .. import c
from . import _handles, _ops

_FLAG = 16  # bytes


def _pointers(addresses: list[int]) -> Any:
    return (c_void_p * len(addresses))(*addresses)


class _Flags:
    """By which each rank waits for all others. Each rank's memory has a flag for each rank that raises it."""

    def __init__(self, addresses: list[int], rank: int) -> None:
        others = [other for other in range(len(addresses)) if other != rank]
        self.count = len(others)
        self._raise = _pointers([addresses[other] + _FLAG * rank for other in others])
        self._wait = _pointers([addresses[rank] + _FLAG * other for other in others])

    def raise_first(self, args: c.ExchangeArgs) -> None:
        args.raise_, args.raise_count = addressof(self._raise), self.count

    def wait(self, args: c.ExchangeArgs) -> None:
        args.wait, args.wait_count = addressof(self._wait), self.count

    def raise_last(self, args: c.ExchangeArgs) -> None:
        args.raise_after, args.raise_after_count = addressof(self._raise), self.count


def bytes_of_flags(ranks: int) -> int:
    return 2 * ranks * _FLAG


class Meeting:
    """The ranks of a group, each with flags of bytes_of_flags() at an address, at first 0, that all others reach."""

    def __init__(self, addresses: list[int], rank: int) -> None:
        self.rank = rank
        self._ready = _Flags(addresses, rank)
        self._stored = _Flags([address + _FLAG * len(addresses) for address in addresses], rank)

    def add(self, parts: list[Tensor], places: list[Tensor], bias: Tensor | None = None, mode: int = c.Mode.DEFAULT,
            for_all: bool = False) -> None:
        """When all ranks have come here: the sum of the parts, in their order and in float32, and the bias of the
        columns, to all places. In tree mode the parts are added pairwise.

        for_all: places are memory of other ranks as well, which then take()."""
        args, arrays = _sum(parts, places)
        self._ready.raise_first(args)
        self._ready.wait(args)
        if for_all:
            self._stored.raise_last(args)
        if bias is not None:
            args.bias, args.bias_type = bias.data_ptr(), _ops._TYPES[bias.dtype]
        _handles.call(c.hgemm_exchange, args, places[0].device, mode)

    def take(self, there: Tensor, here: Tensor) -> None:
        """A copy of this rank's memory, when all ranks have added for all."""
        args, arrays = _sum([there], [here])
        self._stored.wait(args)
        _handles.call(c.hgemm_exchange, args, here.device, c.Mode.DEFAULT)


def _sum(parts: list[Tensor], places: list[Tensor]) -> tuple[c.ExchangeArgs, Any]:
    """Of matrices whose rows are contiguous. The arguments point to the arrays."""
    args = c.ExchangeArgs()
    args.rows, args.columns = places[0].shape
    args.type_part, args.type_d = _ops._TYPES[parts[0].dtype], _ops._TYPES[places[0].dtype]
    args.ld_part, args.ldd = parts[0].stride(0), places[0].stride(0)
    arrays = _pointers([part.data_ptr() for part in parts]), _pointers([place.data_ptr() for place in places])
    args.parts, args.d = (addressof(array) for array in arrays)
    args.part_count, args.d_count = len(parts), len(places)
    return args, arrays
