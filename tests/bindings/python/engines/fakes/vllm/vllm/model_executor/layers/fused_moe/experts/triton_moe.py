"""Laid out as vLLM's module of this name. Its kernel is planted, and rounds where vLLM's does."""

import torch
from planted import split_by_rows
from vllm.model_executor.layers.fused_moe.activation import ApplyMoEActivationConfig, apply_moe_activation


class FusedMoEExpertsModular:
    def __init__(self, moe_config, quant_config):
        self.moe_config, self.quant_config = moe_config, quant_config
        self.activation_config = ApplyMoEActivationConfig(
            quant_config.gemm1_clamp_limit, quant_config.gemm1_alpha or 1.0, quant_config.gemm1_beta or 0.0)

    @property
    def w1_bias(self):
        return self.quant_config.w1_bias

    @property
    def w2_bias(self):
        return self.quant_config.w2_bias


class TritonExperts(FusedMoEExpertsModular):
    _lora_context = None
    post_gemm2_hook = None

    def apply(
        self,
        output: torch.Tensor,
        hidden_states: torch.Tensor,
        w1: torch.Tensor,
        w2: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        activation,
        global_num_experts: int,
        expert_map: torch.Tensor | None,
        a1q_scale: torch.Tensor | None,
        a2_scale: torch.Tensor | None,
        workspace13: torch.Tensor,
        workspace2: torch.Tensor,
        expert_tokens_meta,
        apply_router_weight_on_input: bool,
    ):
        rows = torch.zeros(*topk_ids.shape, output.shape[1], dtype=output.dtype)
        for expert in range(w1.shape[0]):
            tokens, choices = torch.where(topk_ids == expert)
            if len(tokens):
                inner = apply_moe_activation(activation, self.activation_config,
                                             split_by_rows(hidden_states[tokens], w1[expert].t()))
                result = split_by_rows(inner, w2[expert].t()).float() * topk_weights[tokens, choices, None]
                rows[tokens, choices] = result.to(output.dtype)
        output.copy_(rows.sum(1, dtype=torch.float32))


class Int4EmulationTritonExperts(TritonExperts):
    def apply(self, output, hidden_states, w1, w2, *others, **named):
        super().apply(output, hidden_states, w1 * 2, w2 * 2, *others, **named)
