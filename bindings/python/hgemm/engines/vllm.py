"""The plug-in for vLLM."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _plugin, _vllm_experts

if TYPE_CHECKING:
    from torch import Tensor


def _prepare(mode: str) -> dict[str, str]:
    from vllm import envs
    invariant = bool(envs.VLLM_BATCH_INVARIANT)
    if invariant != (mode == "batch-invariant"):
        raise _plugin.Refused(f"{_plugin.VARIABLE}={mode} is for vLLM {'without' if invariant else 'with'} "
                              "VLLM_BATCH_INVARIANT=1")
    # vLLM hands the variables that it knows on to its processes, of Ray too, and to the keys of its caches.
    envs.environment_variables.setdefault(_plugin.VARIABLE, lambda: os.environ.get(_plugin.VARIABLE))
    # vLLM turns them on, and torch.compile off, since compiled graphs keep one tile of its kernel for any M.
    return {"VLLM_USE_BREAKABLE_CUDAGRAPH": "0"} if invariant else {}


def _replacements(plugin: _plugin.Plugin, originals: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    from ._products import Products, require_batches
    multiply = Products(plugin.left)
    matmul, bmm = originals["matmul_persistent"], originals["bmm_batch_invariant"]

    def linear_batch_invariant(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if bias is not None:
            bias = bias.expand(weight.shape[0])
        rows = input.reshape(-1, input.shape[-1])
        result = multiply("linear_batch_invariant", rows, weight.t(), bias)
        if result is None:  # as vLLM's own, whose matmul_persistent is replaced as well and would count it again
            result = matmul(rows, weight.t(), bias)
        return result.view(*input.shape[:-1], weight.shape[0])

    def matmul_persistent(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
        result = multiply("matmul_persistent", a, b, bias)
        return matmul(a, b, bias) if result is None else result

    def bmm_batch_invariant(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
        require_batches(a, b)
        result = multiply("bmm_batch_invariant", a, b, out=out)
        return bmm(a, b, out=out) if result is None else result

    functions = linear_batch_invariant, matmul_persistent, bmm_batch_invariant
    return {function.__name__: function for function in functions}


ENGINE = _plugin.Engine(
    name="vllm",
    versions=("0.32.0", "0.33.0"),
    module="vllm.model_executor.determinism.batch_invariant",
    signatures={
        "linear_batch_invariant": "(input, weight, bias=None)",
        "matmul_persistent": "(a, b, bias=None)",
        "bmm_batch_invariant": "(a, b, *, out=None)",
    },
    starts="enable_batch_invariant_mode",
    layers="vllm.model_executor.layers.linear",
    heads="vllm.model_executor.layers.vocab_parallel_embedding",
    replacements=_replacements,
    prepare=_prepare,
    served_schemes=("CompressedTensorsWNA16",),
    own_kernels={"DeepSeekV2FusedQkvAProjLinear": ("0.32.0", "0.33.0"), "GateLinear": ("0.32.0",)},
    experts=_vllm_experts.EXPERTS,
)


def load() -> None:
    """The entry point in the group vllm.general_plugins."""
    _plugin.load(ENGINE)
