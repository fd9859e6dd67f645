"""What functions over several ranks share: which rank this process is, and collectives of torch."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor, distributed, nn
from torch.distributed.distributed_c10d import _resolve_process_group

from . import _ops

if not distributed.is_available():
    raise ImportError("hgemm.torch.distributed needs a PyTorch with torch.distributed, which this one has not")

Group = Optional["distributed.ProcessGroup"]


def place(group: Group) -> tuple[int, int]:
    """This process's rank, and how many there are. Without torch's process groups it is the only one."""
    if group is None and not distributed.is_initialized():
        return 0, 1
    rank = distributed.get_rank(group)
    _ops._require(rank >= 0, ValueError, "group: this process is none of its ranks")
    return rank, distributed.get_world_size(group)


def known(group: Group) -> Any:
    """None is torch's default group."""
    return distributed.group.WORLD if group is None else group


def exchange(partial: Tensor, group: Group, size: int) -> Tensor:
    """A row for each rank: its partial sums of this rank's block of all elements."""
    length, blocks = -(-partial.numel() // size), partial.flatten()
    if missing := length * size - partial.numel():
        blocks = nn.functional.pad(blocks, (0, missing))
    received = torch.empty_like(blocks)
    distributed.all_to_all_single(received, blocks, group=group)
    return received.view(size, length)


def gather(block: Tensor, group: Group, size: int) -> Tensor:
    """All ranks' blocks, along the first dimension."""
    whole = block.new_empty((len(block) * size, *block.shape[1:]))
    if block.numel() > 0:
        distributed.all_gather_into_tensor(whole, block.contiguous(), group=group)
    return whole


def compare(own: str, group: Group, size: int) -> None:
    """Refuses weights that the ranks do not have alike. Every rank sees what all have, so all refuse or none."""
    each = [own] * size
    distributed.all_gather_object(each, own, group=group)
    for rank, other in enumerate(each):
        _ops._require(other == each[0], ValueError,
                      f"weight: is {each[0]} in rank 0, and {other} in rank {rank}, must be alike")


def group_of(name: str) -> Group:
    return _resolve_process_group(name)  # type: ignore[arg-type]


def place_in(name: str) -> tuple[int, int]:
    """As place(), by the name that operators are given."""
    if not name:
        return 0, 1
    group: Any = group_of(name)
    return group.rank(), group.size()


def multiply(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor, batch_invariant: bool,
              added: Tensor | None = None) -> None:
    if out.numel() > 0:
        beta = 0.0 if added is None else 1.0
        _ops.run(a, b, added, bias, 1.0, beta, "none", out.dtype, batch_invariant, out)


def new(x: Tensor, rows: int, mat2: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x.new_empty((rows, mat2.shape[1]), dtype=dtype)


def product(a: Tensor, b: Tensor, bias: Tensor | None, dtype: torch.dtype | None, batch_invariant: bool) -> Tensor:
    """In C++ where it can be, which takes less of the host's time."""
    return _ops.gemm(a, b, None, bias, 1.0, 0.0, "none", None if dtype == a.dtype else dtype, batch_invariant)
