"""A layer of experts of vLLM's own classes, on the CPU, for real.py."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

PACKAGE = "vllm.model_executor.layers.fused_moe"
NAME = "model.layers.3.mlp.experts"
EXPERTS, HIDDEN, INNER, TOP_K = 8, 64, 32, 3


def module(name: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.{name}")


def use_cpu() -> None:
    """Before vLLM's modules ask which platform there is. The class that it takes on CUDA devices is taken all the
    same, and calls nothing that is compiled."""
    importlib.import_module("vllm")
    platforms = importlib.import_module("vllm.platforms")
    platforms._current_platform = importlib.import_module("vllm.platforms.cpu").CpuPlatform()
    method = module("unquantized_fused_moe_method")
    method.select_unquantized_moe_backend = lambda moe_config: (
        method.UnquantizedMoeBackend.TRITON, module("experts.triton_moe").TritonExperts)


def layer(activation: str = "silu", expert_map: Tensor | None = None, on_input: bool = False,
          dtype: torch.dtype = torch.bfloat16, **others: Any) -> Any:
    """others: of vLLM's FusedMoEConfig."""
    config = module("config")
    moe = config.FusedMoEConfig(
        num_experts=EXPERTS, experts_per_token=TOP_K, hidden_dim=HIDDEN, intermediate_size=INNER,
        num_local_experts=EXPERTS, num_logical_experts=EXPERTS, device="cpu", in_dtype=dtype,
        activation=module("activation").MoEActivation.from_str(activation),
        routing_method=config.RoutingMethodType.Renormalize,
        moe_parallel_config=config.FusedMoEParallelConfig.make_no_parallel(), **others)
    experts = SimpleNamespace(local_num_experts=EXPERTS, placement_strategy="linear", expert_map=expert_map,
                              expert_mask=None, routing_tables=None)
    settings = importlib.import_module("vllm.config")
    with settings.set_current_vllm_config(settings.VllmConfig()):
        made = module("routed_experts").RoutedExperts(NAME, dtype, moe, None, experts,
                                                      apply_router_weight_on_input=on_input)
        generator = torch.Generator().manual_seed(1)
        for weight in (made.w13_weight, made.w2_weight):
            weight.data.copy_(torch.randn(weight.shape, generator=generator) / weight.shape[2] ** 0.5)
        made.quant_method.process_weights_after_loading(made)
    return made


def tokens(count: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    weights, ids = torch.randn(count, EXPERTS, generator=generator).softmax(1).topk(TOP_K)
    return torch.randn(count, HIDDEN, generator=generator).to(torch.bfloat16), weights, ids.int()


def exact(made: Any, x: Tensor, weights: Tensor, ids: Tensor) -> Tensor:
    """In float64, with silu."""
    total = torch.zeros(x.shape, dtype=torch.float64)
    for k in range(TOP_K):
        gate, up = torch.einsum("th,tfh->tf", x.double(), made.w13_weight[ids[:, k]].double()).chunk(2, 1)
        inner = torch.nn.functional.silu(gate) * up
        total += weights[:, k, None] * torch.einsum("tf,thf->th", inner, made.w2_weight[ids[:, k]].double())
    return total


def imported() -> bool:
    return f"{PACKAGE}.experts.triton_moe" in sys.modules
