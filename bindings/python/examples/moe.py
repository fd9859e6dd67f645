#!/usr/bin/env python3
"""Layers of experts of transformers' models, computed by hgemm.torch.moe().

    moe.py [--tokens 64] [--device cuda]

Needs transformers 5, and downloads nothing: the layers are small, with random weights. Models ask transformers for a
function that computes their experts; register() adds one. After it

    AutoModelForCausalLM.from_pretrained(name, experts_implementation="hgemm")

uses it, also for gpt-oss, whose experts have biases and a gate of their own. For each layer the program prints how far
transformers' own functions and hgemm.torch.moe() are from float64, as norms of differences over those of the results.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from torch import Tensor
from transformers import GptOssConfig, MixtralConfig, PreTrainedConfig, Qwen3MoeConfig
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts, GptOssMLP
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

import hgemm.torch

WIDTHS = {"hidden_size": 128, "hidden_act": "silu"}
LAYERS = {"Mixtral": (MixtralSparseMoeBlock, MixtralConfig(
              **WIDTHS, intermediate_size=256, num_local_experts=8, num_experts_per_tok=2)),
          "Qwen3 MoE": (Qwen3MoeSparseMoeBlock, Qwen3MoeConfig(
              **WIDTHS, moe_intermediate_size=64, num_experts=32, num_experts_per_tok=8, norm_topk_prob=True)),
          "gpt-oss": (GptOssMLP, GptOssConfig(
              **WIDTHS, intermediate_size=128, num_local_experts=32, num_experts_per_tok=4))}


def gate_of(module: Any) -> dict[str, Any]:
    """How the module's experts gate, as arguments of moe()."""
    if isinstance(module, GptOssExperts):
        return {"gate_block": 1, "slope": module.alpha, "limit": module.limit, "offset": 1.0}
    if not module.is_concatenated:
        raise ValueError(f"{type(module).__name__}: its gates are not known here")
    return {"activation": module.config.hidden_act}


def experts(module: Any, hidden_states: Tensor, indices: Tensor, weights: Tensor) -> Tensor:
    w13, w2 = module.gate_up_proj, module.down_proj
    if module.is_transposed:  # views, of which nothing is copied
        w13, w2 = w13.transpose(1, 2), w2.transpose(1, 2)
    b13, b2 = (module.gate_up_proj_bias, module.down_proj_bias) if module.has_bias else (None, None)
    return hgemm.torch.moe(hidden_states, weights, indices, w13, w2, b13=b13, b2=b2, **gate_of(module))


def register() -> None:
    ALL_EXPERTS_FUNCTIONS.register("hgemm", experts)


def layer(kind: type[torch.nn.Module], config: PreTrainedConfig) -> torch.nn.Module:
    result = kind(config)
    for parameter in result.parameters():
        torch.nn.init.normal_(parameter, std=parameter.shape[-1]**-0.5)
    return result


def compare(kind: type[torch.nn.Module], config: PreTrainedConfig, tokens: int, device: str) -> dict[str, float]:
    """For each way the norm of its difference from float64, over that of the result."""
    torch.manual_seed(1)
    module, x = layer(kind, config).bfloat16().to(device), torch.randn(1, tokens, config.hidden_size)
    x = x.bfloat16().to(device)
    # The router is the same for all, so that all choose the same experts.
    router = module.router if kind is GptOssMLP else module.gate
    logits, weights, indices = router(x[0])
    router.forward = lambda rows: (logits, weights.to(rows.dtype), indices)

    def run(way: str, rows: Tensor) -> Tensor:
        config._experts_implementation = way
        result = module(rows)
        return (result[0] if isinstance(result, tuple) else result).double()

    results = {way: run(way, x) for way in ("eager", "grouped_mm", "hgemm")}
    module.double()
    right = run("eager", x.double())
    return {way: ((result - right).norm() / right.norm()).item() for way, result in results.items()}


@torch.no_grad()
def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args(arguments)
    register()
    print(f"{'layer':12s} {'eager':>10s} {'grouped_mm':>10s} {'hgemm':>10s}")
    for name, (kind, config) in LAYERS.items():
        errors = compare(kind, config, options.tokens, options.device)
        print(f"{name:12s} {errors['eager']:10.2e} {errors['grouped_mm']:10.2e} {errors['hgemm']:10.2e}")


if __name__ == "__main__":
    main()
