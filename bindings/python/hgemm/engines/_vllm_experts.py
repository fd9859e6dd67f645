"""vLLM's layers of experts, by the operators of hgemm.torch.moe.

In its batch-invariant mode vLLM computes all that are not quantized by TritonExperts.apply, on each rank. What comes
before and after, such as routing, other ranks' tokens and sums over ranks, remains vLLM's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _plugin

if TYPE_CHECKING:
    from torch import Tensor

METHOD = "TritonExperts.apply"
# By vLLM's MoEActivation: arguments of hgemm.torch.moe, from vLLM's ApplyMoEActivationConfig.
GATES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "silu": lambda config: {"activation": "silu", "limit": config.clamp_limit},
    "gelu": lambda config: {"activation": "gelu_erf"},
    "gelu_tanh": lambda config: {"activation": "gelu_tanh"},
    # Whatever the configuration says: vLLM's kernel has these numbers. Gates and up elements alternate.
    "swigluoai": lambda config: {"activation": "silu", "block": 1, "limit": 7.0, "slope": 1.702, "offset": 1.0},
    "swigluoai_uninterleave": lambda config: {"activation": "silu", "limit": config.clamp_limit,
                                              "slope": config.alpha, "offset": config.beta},
}
ON_INPUT = "router weights are applied to the input"
LORA = "the experts may have LoRA adapters"


def _no_gate(activation: Any) -> str:
    return f"the activation is {activation.value}, which is none of {', '.join(GATES)}"


def why_not_layer(layer: Any) -> str | None:
    """Of class RoutedExperts, when it has been made."""
    import torch
    method, config = type(layer.quant_method).__name__, layer.moe_config
    if method != "UnquantizedFusedMoEMethod":
        return f"the experts are quantized, or a kind of their own, by {method}"
    for found, why in (
            (layer.params_dtype not in (torch.float16, torch.bfloat16), f"the experts are {layer.params_dtype}"),
            (layer.apply_router_weight_on_input, ON_INPUT),
            (config.is_lora_enabled, LORA),
            (config.activation.value not in GATES, _no_gate(config.activation))):
        if found:
            return why
    return None


def _why_not(experts: Any, x: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, ids: Tensor, activation: Any,
             scale: Tensor | None, on_input: bool) -> str:
    """"": the library has this layer. experts: of class TritonExperts."""
    import torch

    from ..torch._ops import HALF
    config, biases = experts.quant_config, [bias for bias in (experts.w1_bias, experts.w2_bias) if bias is not None]
    for found, why in (
            (type(experts).__name__ != "TritonExperts", f"{type(experts).__name__} prepare the weights first"),
            (config.quant_dtype is not None or config.weight_quant_dtype is not None or scale is not None,
             "the experts are quantized"),
            (x.dtype not in HALF, f"the product is of {x.dtype}"),
            (w1.dtype != x.dtype or w2.dtype != x.dtype, f"the product is of {x.dtype} by {w1.dtype} and {w2.dtype}"),
            (any(bias.dtype not in (x.dtype, torch.float32) for bias in biases),
             f"the product is of {x.dtype} and biases of {' and '.join(str(bias.dtype) for bias in biases)}"),
            (weights.dtype not in (*HALF, torch.float32), f"the router weights are {weights.dtype}"),
            (ids.dtype not in (torch.int32, torch.int64), f"the experts' numbers are {ids.dtype}"),
            (on_input, ON_INPUT),
            (getattr(experts, "_lora_context", None) is not None, LORA),
            (getattr(experts, "post_gemm2_hook", None) is not None, "the model adds up the experts' results itself"),
            (activation.value not in GATES, _no_gate(activation))):
        if found:
            return why
    return ""


def _replacements(plugin: _plugin.Plugin, originals: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    import torch

    from .. import c
    from ..torch._extension import is_plain
    from ..torch._gates import gate_of
    from ..torch._moe import experts as compute
    from ._products import teller
    tell, original = teller(plugin.left), originals[METHOD]

    def of_this_rank(ids: Tensor, expert_map: Tensor | None) -> Tensor:
        """Numbers of this rank's experts, -1 of all others."""
        if expert_map is None:
            return ids
        return torch.where(ids < 0, -1, expert_map[ids.clamp(min=0)]).to(ids.dtype)

    def write(output: Tensor, experts: Any, x: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, ids: Tensor,
              activation: Any) -> str:
        options = {"block": None, "limit": None, "slope": None, "offset": 0.0,
                   **GATES[activation.value](experts.activation_config)}
        gate = gate_of(w1.shape[1], "w1", **options)
        layer = x, weights, ids, w1, w2, experts.w1_bias, experts.w2_bias, gate, True
        if output.shape == x.shape and output.dtype == x.dtype and output.is_contiguous() and is_plain(output, x, ids):
            compute(*layer, out=output)
        else:
            output.copy_(compute(*layer))
        return ""

    def at_once(*arguments: Any) -> str:
        try:
            return write(*arguments)
        except c.Error as error:
            return str(error)

    def apply(self: Any, output: Tensor, hidden_states: Tensor, w1: Tensor, w2: Tensor, topk_weights: Tensor,
              topk_ids: Tensor, activation: Any, global_num_experts: int, expert_map: Tensor | None,
              a1q_scale: Tensor | None, a2_scale: Tensor | None, workspace13: Tensor, workspace2: Tensor,
              expert_tokens_meta: Any, apply_router_weight_on_input: bool) -> Any:
        operands = hidden_states, w1, w2, topk_weights, topk_ids, activation
        why = _why_not(self, *operands, a2_scale if a1q_scale is None else a1q_scale, apply_router_weight_on_input)
        if not why:
            run = write if torch.compiler.is_compiling() else at_once
            why = run(output, self, hidden_states, w1, w2, topk_weights, of_this_rank(topk_ids, expert_map), activation)
        if not why:
            return None
        tell(METHOD, why)
        return original(self, output, *operands, global_num_experts, expert_map, a1q_scale, a2_scale, workspace13,
                        workspace2, expert_tokens_meta, apply_router_weight_on_input)

    return {METHOD: apply}


EXPERTS = _plugin.Experts(
    module="vllm.model_executor.layers.fused_moe.experts.triton_moe",
    signatures={METHOD: "(self, output, hidden_states, w1, w2, topk_weights, topk_ids, activation, "
                        "global_num_experts, expert_map, a1q_scale, a2_scale, workspace13, workspace2, "
                        "expert_tokens_meta, apply_router_weight_on_input)"},
    layers=("vllm.model_executor.layers.fused_moe.routed_experts", "RoutedExperts"),
    why_not=why_not_layer,
    replacements=_replacements,
)
