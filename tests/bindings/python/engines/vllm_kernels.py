"""vLLM's batch-invariant kernels from its sources, without vLLM: its two files, and the little that they import."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

FOLDER = "vllm/model_executor/determinism"
FILES = (f"{FOLDER}/batch_invariant_configs", f"{FOLDER}/batch_invariant")


class Capability(NamedTuple):
    major: int
    minor: int


class Tile(NamedTuple):
    m: int
    n: int
    k: int
    warps: int
    stages: int

    @property
    def config(self) -> dict[str, int]:
        return {"BLOCK_SIZE_M": self.m, "BLOCK_SIZE_N": self.n, "BLOCK_SIZE_K": self.k, "GROUP_SIZE_M": 8,
                "num_warps": self.warps, "num_stages": self.stages}


DEFAULT = {torch.bfloat16: Tile(128, 128, 64, 8, 3), torch.float16: Tile(128, 256, 64, 8, 3)}


class TritonExperts:
    """The plug-in replaces its method; no experts are computed here."""

    def apply(self, output, hidden_states, w1, w2, topk_weights, topk_ids, activation, global_num_experts, expert_map,
              a1q_scale, a2_scale, workspace13, workspace2, expert_tokens_meta, apply_router_weight_on_input):
        raise NotImplementedError


def _platform() -> Any:
    on_gpu = torch.cuda.is_available()
    capability = Capability(*torch.cuda.get_device_capability()) if on_gpu else Capability(9, 0)
    no, yes = (lambda: False), (lambda: True)
    return SimpleNamespace(is_cuda=yes, is_cuda_alike=yes, is_xpu=no, is_rocm=no, is_cpu=no, dispatch_key="CUDA",
                           get_device_capability=lambda: capability,
                           is_device_capability_family=lambda family: capability.major * 10 == family)


def environment() -> dict[str, dict[str, Any]]:
    """By module: what vLLM's files import from it."""
    on_gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_properties(0) if on_gpu else None
    return {
        "vllm": {}, "vllm.utils": {}, "vllm.model_executor": {}, "vllm.model_executor.determinism": {},
        "vllm.envs": {"VLLM_BATCH_INVARIANT": True, "environment_variables": {}},
        "vllm.platforms": {"current_platform": _platform()},
        "vllm.platforms.interface": {"DeviceCapability": Capability},
        "vllm.triton_utils": {"tl": tl, "triton": triton},
        "vllm.utils.mem_utils": {"get_max_shared_memory_bytes": lambda gpu=0: 232448},
        "vllm.utils.nccl": {"pin_nccl_env": lambda settings: None},
        "vllm.utils.platform_utils": {"num_compute_units": lambda i=0: device.multi_processor_count if on_gpu else 3},
        # The plug-in looks at layers as they are made; none is made here.
        "vllm.model_executor.layers": {},
        "vllm.model_executor.layers.linear": {"LinearBase": type("LinearBase", (), {})},
        "vllm.model_executor.layers.fused_moe": {}, "vllm.model_executor.layers.fused_moe.experts": {},
        "vllm.model_executor.layers.fused_moe.routed_experts": {"RoutedExperts": type("RoutedExperts", (), {})},
        "vllm.model_executor.layers.fused_moe.experts.triton_moe": {"TritonExperts": TritonExperts,
                                                                    "__file__": __file__},
        "vllm.utils.torch_utils": {"is_torch_equal_or_newer": lambda version: True},
    }


@functools.cache
def let_numpy_index() -> None:
    """Once. Triton's interpreter makes integers of arrays with one element, which NumPy 2.4 does not do any more."""
    from triton.runtime import interpreter
    before = interpreter._patch_lang_tensor

    def patch(tensor: Any, scope: Any) -> None:
        before(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())
    interpreter._patch_lang_tensor = patch


def stand_in(contents: dict[str, dict[str, Any]], kind: type[ModuleType] = ModuleType) -> None:
    """For modules of vLLM, by their names."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        let_numpy_index()
    for name, values in contents.items():
        module = sys.modules[name] = kind(name)
        module.__path__ = []  # a package
        vars(module).update(values)
    sys.modules["vllm"].envs = sys.modules["vllm.envs"]


def load(sources: Path, path: str) -> ModuleType:
    """A file of vLLM's, whose path has no suffix."""
    name = path.replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, sources / f"{path}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Kernels:
    """The module batch_invariant of vLLM, and its table of tiles for this GPU (Hopper's where there is none)."""

    def __init__(self, sources: Path) -> None:
        stand_in(environment())
        sys.path.append(str(sources))  # whose metadata has the version
        self.configs, self.module = (load(sources, path) for path in FILES)
        self.module._resolve_block_sizes()
        table = self.configs._BATCH_INVARIANT_MATMUL_TUNED_CONFIGS
        capability = sys.modules["vllm.platforms"].current_platform.get_device_capability()
        self.family = self.configs._get_tuned_matmul_arch_family(capability)
        self.table = table.get(self.family, {})

    @property
    def tiles(self) -> list[Tile]:
        """Of all shapes in the table, and the one of shapes that are not in it."""
        tiles = {self.tile(shape, m) for shape, config in self.table.items() for m, _ in config.m_buckets}
        return sorted(tiles | {DEFAULT[torch.bfloat16]})

    def tile(self, shape: tuple[int, int], m: int, dtype: torch.dtype = torch.bfloat16) -> Tile:
        """Which vLLM takes for (N, K) and M rows."""
        default = DEFAULT[dtype]
        config = self.configs._get_matmul_config(m, *shape, dtype, default.config)
        return Tile(*(config[name] for name in ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "num_warps",
                                                "num_stages")))

    def frozen(self, shape: tuple[int, int]) -> Tile:
        """What a compiled graph keeps: the tile of the most rows that it is traced for."""
        return self.tile(shape, 2048)

    @contextmanager
    def only(self, tile: Tile) -> Iterator[None]:
        """In the block matmul_persistent() takes this tile."""
        before = self.module._get_matmul_config
        self.module._get_matmul_config = lambda *_: tile.config
        try:
            yield
        finally:
            self.module._get_matmul_config = before

    @contextmanager
    def compiled(self) -> Iterator[None]:
        """In the block matmul_persistent() takes the tiles of frozen()."""
        before = self.module._get_matmul_config
        self.module._get_matmul_config = lambda m, *others: before(2048, *others)
        try:
            yield
        finally:
            self.module._get_matmul_config = before

    def compile(self, shape: tuple[int, int], m: int, dtype: torch.dtype, tile: Tile, bias: bool) -> None:
        """Into Triton's cache, without a run. Only what Triton distinguishes counts: whether m is 1 or a multiple of
        16, and such of the strides."""
        n, k = shape
        x = torch.empty(16, device="cuda", dtype=dtype)
        self.module.matmul_kernel_persistent.warmup(
            x, x, x, x if bias else None, m, n, k, k, 1, 1, k, n, 1, 1,
            NUM_SMS=sys.modules["vllm.utils.platform_utils"].num_compute_units(), A_LARGE=False, B_LARGE=False,
            C_LARGE=False, HAS_BIAS=bias, grid=(1,), **tile.config)

    def product(self, a: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """As vLLM's layers call it."""
        return self.module.linear_batch_invariant(a, weight, bias)
