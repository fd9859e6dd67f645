import torch
from vllm.model_executor.layers.fused_moe.experts.triton_moe import TritonExperts


class UnquantizedFusedMoEMethod:
    def __init__(self, experts):
        self.experts = experts

    def apply(self, layer, x, topk_weights, topk_ids):
        """As vLLM's FusedMoEKernel calls its experts."""
        output = torch.empty_like(x)
        self.experts.apply(
            output=output,
            hidden_states=x,
            w1=layer.w13_weight,
            w2=layer.w2_weight,
            topk_weights=topk_weights,
            topk_ids=topk_ids,
            activation=layer.activation,
            global_num_experts=layer.w13_weight.shape[0],
            expert_map=layer.expert_map,
            a1q_scale=None,
            a2_scale=None,
            workspace13=x.new_empty(0),
            workspace2=x.new_empty(0),
            expert_tokens_meta=None,
            apply_router_weight_on_input=layer.apply_router_weight_on_input,
        )
        return output


class RoutedExperts(torch.nn.Module):
    def __init__(self, layer_name, params_dtype, moe_config, quant_config, expert_map=None,
                 apply_router_weight_on_input=False, experts_cls=TritonExperts, method=UnquantizedFusedMoEMethod):
        super().__init__()
        self.layer_name, self.params_dtype, self.moe_config = layer_name, params_dtype, moe_config
        self.activation, self.expert_map = moe_config.activation, expert_map
        self.apply_router_weight_on_input = apply_router_weight_on_input
        self.quant_method = method(experts_cls(moe_config, quant_config))
        generator = torch.Generator().manual_seed(5)
        experts, hidden, inner = moe_config.num_experts, moe_config.hidden_dim, moe_config.intermediate_size
        columns = inner if self.activation.value.endswith("_no_mul") else 2 * inner
        for name, shape in (("w13_weight", (experts, columns, hidden)), ("w2_weight", (experts, hidden, inner))):
            weight = torch.randn(shape, generator=generator) / shape[2] ** 0.5
            setattr(self, name, torch.nn.Parameter(weight.to(params_dtype), requires_grad=False))

    def forward(self, x, topk_weights, topk_ids):
        return self.quant_method.apply(self, x, topk_weights, topk_ids)
