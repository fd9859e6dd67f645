"""vLLM's layers of experts from its sources, without vLLM: TritonExperts.apply, what it calls, and the little that
they import. Its compiled operators are replaced: gates and sums by Triton, the alignment by PyTorch."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
import triton.language as tl
import vllm_kernels
from torch import Tensor

FOLDER = "vllm/model_executor/layers/fused_moe"
FILES = ("activation", "moe_align_block_size", "fused_moe", "experts/triton_moe")
PACKAGE, QUANTIZATION = FOLDER.replace("/", "."), "vllm.model_executor.layers.quantization"
# Modules of which the files want names, but call nothing for layers that are not quantized.
NAMES_ONLY = (f"{PACKAGE}.config", f"{PACKAGE}.moe_output", f"{PACKAGE}.topk_weight_and_reduce",
              f"{PACKAGE}.experts.lora_experts_mixin", QUANTIZATION, f"{QUANTIZATION}.utils",
              f"{QUANTIZATION}.utils.fp8_utils", f"{QUANTIZATION}.utils.quant_utils", "vllm.triton_utils.allocation",
              "vllm.utils.multi_stream_utils")
WIDTH = 1024  # elements of a program: 16 bytes a thread


@triton.jit
def gate_kernel(product, result, columns, alternate: tl.constexpr, width: tl.constexpr):
    """swigluoai_and_mul where gates alternate with up elements, else silu_and_mul, which rounds silu(gate) as well."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * width + tl.arange(0, width)
    inside = column < columns
    line = product + row * 2 * columns
    if alternate:
        pair = tl.program_id(1) * 2 * width + tl.arange(0, 2 * width)
        both = tl.load(line + pair, mask=pair < 2 * columns, other=0.0).to(tl.float32)
        gate, up = tl.split(tl.reshape(both, (width, 2)))
        gate = tl.minimum(gate, 7.0)
        gated = gate * tl.sigmoid(1.702 * gate) * (tl.minimum(tl.maximum(up, -7.0), 7.0) + 1.0)
    else:
        gate = tl.load(line + column, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(line + columns + column, mask=inside, other=0.0).to(tl.float32)
        gated = (gate * tl.sigmoid(gate)).to(result.dtype.element_ty).to(tl.float32) * up
    tl.store(result + row * columns + column, gated.to(result.dtype.element_ty), mask=inside)


@triton.jit
def sum_kernel(values, result, columns, top_k: tl.constexpr, width: tl.constexpr):
    """moe_sum: over a token's rows, in float32."""
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * width + tl.arange(0, width)
    inside = column < columns
    total = tl.zeros((width,), tl.float32)
    for k in tl.static_range(top_k):
        total += tl.load(values + (token * top_k + k) * columns + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(result + token * columns + column, total.to(result.dtype.element_ty), mask=inside)


def _gate(result: Tensor, product: Tensor, alternate: bool) -> None:
    rows, columns = result.shape
    gate_kernel[(rows, triton.cdiv(columns, WIDTH))](product, result, columns, alternate, WIDTH, num_warps=4)


def _sum(values: Tensor, result: Tensor) -> None:
    tokens, top_k, columns = values.shape
    sum_kernel[(tokens, triton.cdiv(columns, WIDTH))](values, result, columns, top_k, WIDTH, num_warps=4)


def _align(ids: Tensor, experts: int, block: int, sorted_ids: Tensor, expert_ids: Tensor, padded: Tensor,
           expert_map: None = None, scatter: None = None) -> None:
    """moe_align_block_size: choices sorted by expert, each expert's padded to whole blocks; the blocks' experts."""
    if ids.is_meta:
        return
    flat = ids.flatten().long()
    counts = torch.bincount(flat, minlength=experts)
    blocks = (counts + block - 1) // block * block
    ends, order = blocks.cumsum(0), flat.argsort(stable=True)
    sorted_experts = flat[order]
    shifts = (ends - blocks) - (counts.cumsum(0) - counts)
    places = torch.arange(flat.numel(), device=ids.device) + shifts[sorted_experts]
    sorted_ids.fill_(flat.numel())
    sorted_ids[places] = order.int()
    starts = torch.arange(expert_ids.numel(), device=ids.device) * block
    found = torch.searchsorted(ends, starts, right=True)
    expert_ids.copy_(torch.where(starts < ends[-1], found, -1))
    padded.copy_(ends[-1:])


class Base:
    """What TritonExperts.apply asks of its base class, for a layer that is not quantized, on one rank."""

    _lora_context = quant_dtype = block_shape = a1_scale = w1_scale = w2_scale = None
    quantization_emulation = per_act_token_quant = False
    quant_config = SimpleNamespace(
        use_fp8_w8a8=False, use_int8_w8a8=False, use_int8_w8a16=False, use_int4_w4a16=False, quant_dtype=None,
        weight_quant_dtype=None, config_name=lambda dtype: None)

    def __init__(self, b13: Tensor | None, b2: Tensor | None) -> None:
        activation = sys.modules[f"{PACKAGE}.activation"]
        self.w1_bias, self.w2_bias = b13, b2
        self.activation_config, self._activate = activation.ApplyMoEActivationConfig(), activation.apply_moe_activation

    def moe_problem_size(self, x: Tensor, w1: Tensor, w2: Tensor, ids: Tensor) -> tuple[int, int, int, int, int]:
        return w1.shape[0], x.shape[0], w1.shape[1], x.shape[1], ids.shape[1]

    def adjust_N_for_activation(self, columns: int, activation: Any) -> int:
        return columns // 2

    def _uses_post_gemm2_hook(self, tokens: int) -> bool:
        return False

    def activation(self, activation: Any, output: Tensor, input: Tensor) -> None:
        self._activate(activation, output, input, activation_config=self.activation_config)


class Names(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _environment() -> dict[str, dict[str, Any]]:
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "NVIDIA H200"
    log = SimpleNamespace(info_once=lambda *_, **__: None, warning_once=lambda *_, **__: None)
    return vllm_kernels.environment() | {
        "vllm.envs": {"VLLM_BATCH_INVARIANT": False, "VLLM_TUNED_CONFIG_FOLDER": None},
        "vllm._custom_ops": {"moe_align_block_size": _align, "moe_sum": _sum},
        "vllm.logger": {"init_logger": lambda name: log},
        "vllm.utils.math_utils": {"next_power_of_2": triton.next_power_of_2,
                                  "round_up": lambda x, y: triton.cdiv(x, y) * y},
        "vllm.utils.platform_utils": {"get_device_name_as_file_name": lambda: re.sub(r"[\s/]+", "_", name)},
        "vllm.utils.torch_utils": {"direct_register_custom_op": lambda **_: None},
        PACKAGE: {"get_config": lambda: None},  # no tile is forced
        f"{PACKAGE}.utils": {
            "enable_swap_ab": None, "swiglu_limit_func": None,
            "resolve_moe_use_td": lambda: False,  # vLLM's default on GPUs of NVIDIA
            "warn_if_moe_use_td_ineffective": lambda *_, **__: None,
            "moe_kernel_quantize_input": lambda x, scale, *_, **__: (x, scale),
            "_resize_cache": lambda x, shape: x.flatten()[:prod(shape)].view(*shape)},
    }


class OnlyCompiled:
    """In a kernel's place: a call brings it into Triton's cache, and runs nothing."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.kernel.warmup, grid=(1,))


class Experts:
    """apply: the method TritonExperts.apply. Each alignment is computed once, and kept until it is forgotten."""

    def __init__(self, sources: Path) -> None:
        vllm_kernels.stand_in(_environment())
        vllm_kernels.stand_in(dict.fromkeys((*NAMES_ONLY, f"{PACKAGE}.modular_kernel"), {}), Names)
        sys.modules[f"{PACKAGE}.modular_kernel"].FusedMoEExpertsModular = Base
        self._operators = torch.library.Library("_C", "FRAGMENT")
        for name, alternate in (("silu_and_mul", False), ("swigluoai_and_mul", True)):
            self._operators.define(f"{name}(Tensor! result, Tensor input) -> ()")
            self._operators.impl(name, functools.partial(_gate, alternate=alternate), "CompositeExplicitAutograd")
        self.activation, _, self.fused_moe, self.module = (vllm_kernels.load(sources, f"{FOLDER}/{name}")
                                                           for name in FILES)
        self.apply = self.module.TritonExperts.apply
        self._align, self._aligned = self.module._prepare_expert_assignment, {}
        self.module._prepare_expert_assignment = self._kept

    def _kept(self, ids: Tensor, config: dict[str, int], *others: Any, **named: Any) -> tuple[Tensor | None, ...]:
        key = id(ids), config["BLOCK_SIZE_M"]
        if key not in self._aligned:
            self._aligned[key] = ids, self._align(ids, config, *others, **named)  # whose address nobody else gets
        return self._aligned[key][1]

    def forget(self) -> None:
        self._aligned.clear()

    def layer(self, b13: Tensor | None, b2: Tensor | None) -> Any:
        """A TritonExperts with these biases."""
        layer = self.module.TritonExperts.__new__(self.module.TritonExperts)
        Base.__init__(layer, b13, b2)
        return layer

    def activation_of(self, alternate: bool) -> Any:
        return self.activation.MoEActivation.from_str("swigluoai" if alternate else "silu")

    @contextmanager
    def invariant(self) -> Iterator[None]:
        """In the block vLLM takes the tile of its batch-invariant mode."""
        self._set_mode(True)
        try:
            yield
        finally:
            self._set_mode(False)

    def _set_mode(self, invariant: bool) -> None:
        self.fused_moe.envs.VLLM_BATCH_INVARIANT = invariant
        self.fused_moe.get_moe_configs.cache_clear()  # it does not look at the mode again

    def tile(self, w13: Tensor, w2: Tensor, ids: Tensor) -> dict[str, Any]:
        """What vLLM chooses in the mode that it is in: the tile, and how rows come to blocks."""
        config = self.fused_moe.try_get_optimal_moe_config(w13.shape, w2.shape, ids.shape[1], None, ids.shape[0])
        measured = self.fused_moe.get_moe_configs(w13.shape[0], w2.shape[2], None, 0, 0) is not None
        sorted_ids, *_ = self._kept(ids, config, *ids.shape, w13.shape[0], None)
        return {"tile": "x".join(str(config[f"BLOCK_SIZE_{side}"]) for side in "MNK"),
                "group": config["GROUP_SIZE_M"], "warps": config.get("num_warps", "Triton's"),
                "stages": config.get("num_stages", "Triton's"), "from_json": int(measured),
                "blocks": "a row each" if sorted_ids is None else "sorted rows"}

    def only_compile(self) -> None:
        """From now on calls, also those on tensors of the device meta, bring kernels into Triton's cache."""
        self.fused_moe.fused_moe_kernel = OnlyCompiled(self.fused_moe.fused_moe_kernel)
        for name in ("gate_kernel", "sum_kernel"):
            globals()[name] = OnlyCompiled(globals()[name])
