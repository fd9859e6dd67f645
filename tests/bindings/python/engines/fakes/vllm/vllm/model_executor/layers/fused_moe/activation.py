from dataclasses import dataclass
from enum import Enum

import torch
from torch.nn import functional


class MoEActivation(Enum):
    SILU = "silu"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    SWIGLUOAI = "swigluoai"
    SWIGLUOAI_UNINTERLEAVE = "swigluoai_uninterleave"
    SWIGLUSTEP = "swiglustep"
    RELU2_NO_MUL = "relu2_no_mul"


@dataclass(frozen=True)
class ApplyMoEActivationConfig:
    clamp_limit: float | None = None
    alpha: float = 1.0
    beta: float = 0.0


def apply_moe_activation(activation, config, x):
    """As vLLM's kernels compute it, in the type of x."""
    if activation is MoEActivation.RELU2_NO_MUL:
        return functional.relu(x).square()
    gate, up = (x[..., ::2], x[..., 1::2]) if activation is MoEActivation.SWIGLUOAI else x.chunk(2, -1)
    limit, alpha, beta = config.clamp_limit, config.alpha, config.beta
    if activation is MoEActivation.SWIGLUOAI:
        limit, alpha, beta = 7.0, 1.702, 1.0
    elif activation is MoEActivation.SILU:
        alpha, beta = 1.0, 0.0
    elif activation in (MoEActivation.GELU, MoEActivation.GELU_TANH):
        approximate = "none" if activation is MoEActivation.GELU else "tanh"
        return functional.gelu(gate, approximate=approximate) * up
    elif activation is MoEActivation.SWIGLUSTEP:
        return functional.silu(gate).clamp(max=7.0) * up.clamp(-7.0, 7.0)
    if limit is not None:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * torch.sigmoid(alpha * gate) * (up + beta)
