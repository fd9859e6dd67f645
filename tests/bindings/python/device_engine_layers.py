#!/usr/bin/env python3
"""Layers of language models by the plug-in for vLLM, by vLLM's own kernels and by cuBLAS without split-K: bits, times.

    device_engine_layers.py SOURCES [--csv FILE] [--layers N] [--dry-run]

SOURCES as for device_engines.py. The plug-in is loaded as vLLM loads it, and vLLM's batch-invariant mode is started by
vLLM's code. A layer has a model's products and norms; its attention is left out, and gives back its queries. Decode
and prefill are CUDA graphs over several layers, so that weights are not in a cache. One graph by torch.compile serves
any number of rows. Fails if bits depend on other rows, or differ from those by vLLM's kernels.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ |= {"HGEMM_ENGINE": "batch-invariant", "VLLM_BATCH_INVARIANT": "1"}
sys.path.insert(0, str(Path(__file__).parent / "engines"))
import torch  # noqa: E402
from device_engines import Timer, median, progress, write  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from vllm_kernels import Kernels  # noqa: E402

MODELS = {  # hidden width, rows of the weights for queries and for keys and values, inner width
    "qwen3-1.7b": (2048, 2048, 2048, 6144), "qwen3-8b": (4096, 4096, 2048, 12288),
    "llama-8b": (4096, 4096, 2048, 14336),
}
ROWS = (1, 2, 4, 8, 16, 32, 128, 512, 2048)
# torch.compile makes another graph for one row, and for as many rows as a model has columns.
COMPILED_ROWS = (8, 2000, 3, 300)
NORMED = 1e-6


class Layer(nn.Module):
    def __init__(self, kernels: Kernels, way: Any, sizes: tuple[int, ...], weight: Any) -> None:
        super().__init__()
        hidden, queries, keys, inner = sizes
        self.way, self.norm, self.queries, self.inner = way, kernels.module.rms_norm_batch_invariant, queries, inner
        shapes = {"qkv": (queries + keys, hidden), "o": (hidden, queries), "up": (2 * inner, hidden),
                  "down": (hidden, inner)}
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(weight(name, *shape), requires_grad=False))
        self.scale = nn.Parameter(weight("scale", hidden), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        attended = self.way(self.norm(x, self.scale, NORMED), self.qkv)[:, :self.queries]
        x = x + self.way(attended.contiguous(), self.o)
        gate, up = self.way(self.norm(x, self.scale, NORMED), self.up).split(self.inner, 1)
        return x + self.way(nn.functional.silu(gate) * up, self.down)


class Ways:
    """By name: a product as vLLM's layers call it. The plug-in is loaded on the way."""

    def __init__(self, kernels: Kernels) -> None:
        own = kernels.module.linear_batch_invariant  # calls matmul_persistent of its module
        own_matmul = kernels.module.matmul_persistent
        from hgemm.engines import vllm as plugin
        plugin.load()
        if kernels.module.linear_batch_invariant is own:
            raise RuntimeError("the plug-in has not replaced linear_batch_invariant")
        if torch.cuda.is_available():
            kernels.module.init_batch_invariance()
        served = kernels.module.linear_batch_invariant

        def by_vllm(x: Tensor, weight: Tensor) -> Tensor:
            return own_matmul(x, weight.t())

        def by_vllm_frozen(x: Tensor, weight: Tensor) -> Tensor:
            with kernels.compiled():
                return own_matmul(x, weight.t())
        self.ways = {"hgemm": served, "vllm": by_vllm, "vllm_frozen": by_vllm_frozen,
                     "cublas_unsplit": nn.functional.linear}


def weights_of(sizes: tuple[int, ...], device: str, dtype: torch.dtype, seed: int) -> Any:
    """The same for all ways."""
    kept: dict[str, Tensor] = {}
    generator = torch.Generator(device).manual_seed(seed)

    def weight(name: str, *shape: int) -> Tensor:
        if name not in kept:
            values = torch.randn(shape, generator=generator, device=device)
            kept[name] = (values / shape[-1] ** 0.5 if len(shape) == 2 else 1 + values / 16).to(dtype)
        return kept[name]
    return weight


def models(options: argparse.Namespace, kernels: Kernels, ways: Ways, sizes: tuple[int, ...], device: str,
           dtype: torch.dtype) -> dict[str, nn.Module]:
    weights = [weights_of(sizes, device, dtype, seed) for seed in range(options.layers)]
    return {name: nn.Sequential(*(Layer(kernels, way, sizes, weight) for weight in weights))
            for name, way in ways.ways.items()}


def differ(x: Tensor, y: Tensor) -> int:
    return int((x.view(torch.int16) != y.view(torch.int16)).sum())


def compiled(name: str, models: dict[str, nn.Module], x: Tensor, rows: tuple[int, ...]) -> list[dict[str, Any]]:
    """One graph for all numbers of rows, with the library's operators in it."""
    kept: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        kept.append(graph)
        if x.device.type == "cpu":
            return graph.forward
        from torch._inductor.compile_fx import compile_fx
        return compile_fx(graph, inputs)
    first = models["hgemm"][0]
    function = torch.compile(lambda value: first(value), backend=backend, fullgraph=True, dynamic=True)
    whole, result = None, []
    for m in sorted(rows, reverse=True):
        y = function(x[:m].clone())
        whole = y if whole is None else whole
        result.append({"model": name, "what": "compiled", "m": m, "elements": y.numel(), "rows": differ(y, whole[:m]),
                       "graphs": len(kept)})
    # The norms are Triton's, and elementwise operations may be fused: they are compared among graphs alone.
    operators = sum("hgemm.gemm" in str(node.target) for graph in kept for node in graph.graph.nodes)
    for row in result:
        row["operators"] = operators // len(kept)
    return result


def measure(name: str, models: dict[str, nn.Module], x: Tensor, m: int, whole: Tensor,
            products: Any) -> dict[str, Any]:
    part = x[:m].clone()
    results = {way: model(part) for way, model in models.items()}
    timers = {way: Timer(products, lambda a, model: model(a), part, [model], 1) for way, model in models.items()}
    rounds = [{way: timer.microseconds() for way, timer in timers.items()}
              for _ in range(3 if x.device.type == "cpu" else 20)][1:]
    row: dict[str, Any] = {"model": name, "what": "graph", "m": m, "elements": results["hgemm"].numel(),
                           "rows": differ(results["hgemm"], whole[:m]),
                           "vllm": differ(results["hgemm"], results["vllm"]),
                           "vllm_frozen": differ(results["hgemm"], results["vllm_frozen"])}
    row |= {f"{way}_us": round(median([one[way] for one in rounds]), 2) for way in models}
    return row | {f"hgemm_over_{way}": round(median([one[way] / one["hgemm"] for one in rounds]), 4)
                  for way in models if way != "hgemm"}


def parse() -> argparse.Namespace:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("sources", type=Path)
    top.add_argument("--csv", default="engine-layers.csv", metavar="FILE")
    top.add_argument("--layers", type=int, default=4)
    top.add_argument("--seconds", type=float, default=120, help="no new number of rows is begun after them (120)")
    top.add_argument("--dry-run", action="store_true", help="small CPU tensors by Triton's interpreter and by the "
                     "library's default mode, to try the program itself")
    return top.parse_args()


def products_of(options: argparse.Namespace) -> Any:
    return argparse.Namespace(torch=torch, device="cpu" if options.dry_run else "cuda")


def main() -> int:
    options = parse()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    device, dtype = ("cpu", torch.float16) if options.dry_run else ("cuda", torch.bfloat16)
    kernels = Kernels(options.sources)
    ways = Ways(kernels)
    if options.dry_run:  # the CPU has no batch-invariant mode
        ways.ways["hgemm"] = lambda x, weight: torch.ops.hgemm.gemm(x, weight.t(), None, None, 1.0, 0.0, "none", None,
                                                                    False)
    chosen = {"small": (32, 32, 16, 48)} if options.dry_run else MODELS
    rows, compiled_rows = ((1, 3), (3, 1)) if options.dry_run else (ROWS, COMPILED_ROWS)
    end, found = time.time() + options.seconds, []
    with torch.inference_mode():
        for name, sizes in chosen.items():
            there = models(options, kernels, ways, sizes, device, dtype)
            generator = torch.Generator(device).manual_seed(9)
            x = torch.randn(max(rows), sizes[0], generator=generator, device=device).to(dtype)
            whole = there["hgemm"](x)
            if not bool(whole.isfinite().all()):
                raise RuntimeError("the layers' results are no numbers")
            for m in rows:
                if time.time() < end:
                    found.append(measure(name, there, x, m, whole, products_of(options)))
                    progress(", ".join(f"{key} {value}" for key, value in found[-1].items()))
            write(options.csv, options, found)
            if not options.dry_run:
                found += compiled(name, there, x, compiled_rows)
                progress(f"{name}, compiled: {found[-len(compiled_rows):]}")
    write(options.csv, options, found)
    wrong = [row for row in found if row["rows"] or row.get("vllm") or row.get("vllm_frozen")
             or row.get("graphs", 1) != 1 or row.get("operators", 4) != 4]
    print(f"{len(found) - len(wrong)} of {len(found)} rows have equal bits")
    return 1 if wrong and not options.dry_run else 0


if __name__ == "__main__":
    sys.exit(main())
