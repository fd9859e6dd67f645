"""One model over several processes, a GPU each: every product has a part of N or of K in each of them.

A process has some heads of the attention (columns of q, k and v, rows of o). It has a part of the inner width of the
MLP, or of all experts (columns of gate and up, rows of down). One all-reduce behind o and one behind the MLP add the
parts. All else is the same in all processes: the embedding, norms, routing and the last product.

The all-reduce adds in bfloat16 or float16, as inference does. Two addends have one order. With more, NCCL chooses the
order, and may choose another for another message size, that is, for another batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn


def rank() -> int:
    return int(os.environ.get("RANK", 0))


@contextmanager
def group(processes: int, device: str) -> Iterator[None]:
    """This process is one of them, as launch.py or torchrun starts them, and ``cuda`` is its own GPU."""
    if processes == 1:
        yield
        return
    place = None
    if device == "cuda":
        place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(place)
    # launch.py says where they meet; torchrun does not, but has the default in its environment.
    distributed.init_process_group("nccl" if place else "gloo", init_method=os.environ.get("INIT_METHOD"), rank=rank(),
                                   world_size=processes, device_id=place, timeout=timedelta(minutes=3))
    yield
    distributed.barrier()  # one that leaves closes connections which another may still read
    distributed.destroy_process_group()  # neither after an error: they might wait for the others


def agree(number: int) -> int:
    """The largest of what the processes give."""
    if not distributed.is_initialized():
        return number
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    largest = torch.tensor(number, device=device)
    distributed.all_reduce(largest, distributed.ReduceOp.MAX)
    return int(largest)


def _part(weight: Tensor, dim: int, blocks: int = 1) -> nn.Parameter:
    """This process's of a dimension; of each of its blocks, where it has several."""
    count = distributed.get_world_size()
    blocked = weight.unflatten(dim, (blocks, weight.shape[dim] // blocks))
    part = blocked.tensor_split(count, dim + 1)[distributed.get_rank()].flatten(dim, dim + 1)
    return nn.Parameter(part.clone(memory_format=torch.contiguous_format))


def _add_parts(module: nn.Module, _: Any, result: Tensor) -> Tensor:
    distributed.all_reduce(result)
    return result


def split(model: Any) -> None:
    """Leaves this process its part of a model of transformers, whose experts are those of invariant_models.py."""
    count, config = distributed.get_world_size(), model.config
    if config.num_key_value_heads % count:
        raise ValueError(f"{config.num_key_value_heads} key heads do not go into {count} processes")
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj):
            linear.weight = _part(linear.weight, 0)
        attention.o_proj.weight = _part(attention.o_proj.weight, 1)
        if hasattr(mlp, "gate_proj"):
            mlp.gate_proj.weight, mlp.up_proj.weight = _part(mlp.gate_proj.weight, 0), _part(mlp.up_proj.weight, 0)
            mlp.down_proj.weight = _part(mlp.down_proj.weight, 1)
        else:
            mlp.up, mlp.down = _part(mlp.up, 1, blocks=2), _part(mlp.down, 2)  # up holds gate and up
        attention.o_proj.register_forward_hook(_add_parts)
        mlp.register_forward_hook(_add_parts)
