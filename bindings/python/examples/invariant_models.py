"""Models of transformers with random weights, in which all but the products is batch-invariant.

A row of such a model is a token. Its bits depend on the other rows only if those of a product do:

- Attention: the cache of each sequence has one fixed length, and masked keys have the probability 0. So both products
  sum over a fixed K, and softmax over a fixed number of keys, however many tokens there are.
- RMSNorm, softmax: torch's kernels reduce each row by itself, in an order that depends on its length.
  ``check_parts()`` compares them, since other versions of torch may do something else.
- Routing of experts: a stable sort, so that equal probabilities have one order. Each token's experts are added in the
  order of their probabilities, one after the other.
- All else (rotary embedding, SiLU, sums of two tensors) is elementwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

MODELS = ("llama", "qwen3-moe")


@dataclass
class Step:
    """What the attention of all layers shares: the cache and where the tokens of this step stand."""
    length: int                                      # of each sequence's cache, at most 1024: see check_parts()
    positions: Tensor = field(default_factory=lambda: torch.empty(0))  # (batch, tokens), int64
    caches: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def cache(self, layer: int, key: Tensor, batch: int) -> tuple[Tensor, Tensor]:
        """Of a layer's keys and values: (batch, heads, length, width). It starts as 0, as probabilities times NaN would
        be NaN."""
        if layer not in self.caches or self.caches[layer][0].shape[0] != batch:
            shape = (batch, key.shape[1], self.length, key.shape[3])
            self.caches[layer] = key.new_zeros(shape), key.new_zeros(shape)
        return self.caches[layer]


def attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
           scaling: float, **_: Any) -> tuple[Tensor, None]:
    """Grouped-query attention over the whole cache. query: (batch, heads, tokens, width), key and value with fewer
    heads; the result is (batch, tokens, heads, width)."""
    step: Step = module.step  # type: ignore[assignment]
    batch, heads, tokens, width = query.shape
    key_heads = key.shape[1]
    keys, values = step.cache(module.layer_idx, key, batch)  # type: ignore[arg-type]
    sequence = torch.arange(batch, device=query.device)[:, None]
    keys[sequence, :, step.positions] = key.transpose(1, 2)
    values[sequence, :, step.positions] = value.transpose(1, 2)

    rows = query.reshape(batch * key_heads, heads // key_heads * tokens, width)
    scores = torch.bmm(rows, keys.flatten(0, 1).transpose(1, 2)).float() * scaling
    scores = scores.view(batch, heads, tokens, step.length)
    future = torch.arange(step.length, device=query.device) > step.positions[..., None]
    scores = scores.masked_fill(future[:, None], float("-inf"))
    probabilities = functional.softmax(scores, dim=-1).to(query.dtype)
    result = torch.bmm(probabilities.view(*rows.shape[:2], step.length), values.flatten(0, 1))
    return result.view(batch, heads, tokens, width).transpose(1, 2).contiguous(), None


AttentionInterface.register("static_cache", attend)


def route(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` most probable experts of each token, and their weights: (tokens, count)."""
    probabilities, experts = torch.sort(functional.softmax(logits.float(), dim=-1), dim=-1, descending=True, stable=True)
    probabilities = probabilities[:, :count]
    total = probabilities[:, 0]
    for i in range(1, count):
        total = total + probabilities[:, i]
    return experts[:, :count], probabilities / total[:, None]


class Experts(nn.Module):
    """In place of the model's own mixture: what depends on the number of tokens is its products alone."""

    def __init__(self, config: Qwen3MoeConfig, grouped: bool) -> None:
        super().__init__()
        hidden, inner, experts = config.hidden_size, config.moe_intermediate_size, config.num_experts
        self.count, self.grouped = config.num_experts_per_tok, grouped
        self.gate = nn.Parameter(torch.randn(experts, hidden) * hidden**-0.5)
        self.up = nn.Parameter(torch.randn(experts, 2 * inner, hidden) * hidden**-0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, inner) * inner**-0.5)

    def product(self, rows: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
        if self.grouped:
            return functional.grouped_mm(rows, weights.transpose(1, 2), offs=ends)
        result, start = rows.new_empty(rows.shape[0], weights.shape[1]), 0
        for expert, end in enumerate(ends.tolist()):
            if end > start:
                result[start:end] = functional.linear(rows[start:end], weights[expert])
            start = end
        return result

    def forward(self, hidden: Tensor) -> Tensor:
        tokens = hidden.reshape(-1, hidden.shape[-1])
        experts, shares = route(functional.linear(tokens, self.gate), self.count)
        order = torch.argsort(experts.flatten(), stable=True)
        numbers = torch.arange(self.gate.shape[0], device=hidden.device)
        ends = torch.searchsorted(experts.flatten()[order], numbers, right=True, out_int32=True)

        gate, up = self.product(tokens[order // self.count], self.up, ends).chunk(2, dim=-1)
        products = self.product(functional.silu(gate) * up, self.down, ends)
        scattered = torch.empty_like(products)
        scattered[order] = products
        scattered = scattered.view(-1, self.count, hidden.shape[-1])
        result = scattered[:, 0].float() * shares[:, :1]
        for i in range(1, self.count):
            result = result + scattered[:, i].float() * shares[:, i:i + 1]
        return result.to(hidden.dtype).view(hidden.shape)


def configuration(name: str, layers: int, small: bool) -> LlamaConfig:
    """Real widths: those of Llama 3.1 8B and Qwen3 30B A3B, but for a vocabulary of 32768."""
    common = {"num_hidden_layers": layers, "vocab_size": 512 if small else 32768, "tie_word_embeddings": False}
    if name == "llama":
        if small:
            return LlamaConfig(hidden_size=64, intermediate_size=160, num_attention_heads=4, num_key_value_heads=2,
                               head_dim=16, **common)
        return LlamaConfig(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
                           head_dim=128, **common)
    if small:
        return Qwen3MoeConfig(hidden_size=64, moe_intermediate_size=32, num_attention_heads=4, num_key_value_heads=2,
                              head_dim=16, num_experts=8, num_experts_per_tok=2, intermediate_size=160, **common)
    return Qwen3MoeConfig(hidden_size=2048, moe_intermediate_size=768, num_attention_heads=32, num_key_value_heads=4,
                          head_dim=128, num_experts=128, num_experts_per_tok=8, intermediate_size=6144, **common)


class Model:
    """A model with one cache. ``grouped``: experts by torch's grouped product instead of one after the other."""

    def __init__(self, name: str, *, layers: int, small: bool, length: int, grouped: bool, device: str,
                 dtype: torch.dtype) -> None:
        config = configuration(name, layers, small)
        config._attn_implementation = "static_cache"
        self.vocabulary: int = config.vocab_size
        self.device, self.step = device, Step(length)
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            torch.manual_seed(1)
            with torch.device(device):
                self.model = (LlamaForCausalLM if name == "llama" else Qwen3MoeForCausalLM)(config).eval()
                for layer in self.model.model.layers:
                    layer.self_attn.step = self.step
                    if name != "llama":
                        layer.mlp = Experts(config, grouped)
        finally:
            torch.set_default_dtype(before)
        for module in self.model.modules():
            if type(module).__name__.endswith("RMSNorm"):
                module.forward = _norm(module)  # type: ignore[method-assign]

    def __call__(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The logits of tokens at these positions of their sequences. All three: (batch, tokens, ...)."""
        self.step.positions = positions
        result: Tensor = self.model(input_ids=tokens, position_ids=positions, use_cache=False).logits
        return result


def _norm(module: nn.Module) -> Callable[[Tensor], Tensor]:
    weight: Tensor = module.weight  # type: ignore[assignment]
    epsilon: float = module.variance_epsilon  # type: ignore[assignment]
    return lambda x: functional.rms_norm(x, weight.shape, weight, epsilon)


def check_parts(model: Model, rows: int, dtype: torch.dtype) -> list[str]:
    """The parts that reduce or sort, each of them for all rows and for some: names of those whose bits differ."""
    config = model.model.config
    experts = getattr(config, "num_experts", 0)
    parts: dict[str, tuple[int, torch.dtype, Callable[[Tensor], Tensor]]] = {
        "RMSNorm": (config.hidden_size, dtype, lambda x: functional.rms_norm(x, x.shape[-1:], None, 1e-6)),
        "RMSNorm of heads": (config.head_dim, dtype, lambda x: functional.rms_norm(x, x.shape[-1:], None, 1e-6)),
        "softmax": (model.step.length, torch.float32, lambda x: functional.softmax(x, dim=-1)),
    }
    if experts:
        parts["routing"] = (experts, dtype, lambda x: torch.cat(route(x, config.num_experts_per_tok), dim=1))
    differ = []
    for name, (width, kind, function) in parts.items():
        generator = torch.Generator().manual_seed(2)
        values = torch.randn(rows, width, generator=generator).to(kind).to(model.device)
        whole = function(values)
        # At their places, and a row of the end alone.
        ranges = [(0, n) for n in (1, 2, 7, 64, 1000) if n < rows] + [(rows - 1, rows), (rows // 3, rows // 2 + 1)]
        if not all(torch.equal(function(values[a:b].clone()), whole[a:b]) for a, b in ranges):
            differ.append(name)
    return differ
