#!/usr/bin/env python3
"""Layers of experts by the plug-in for vLLM and by vLLM's own kernel, on a GPU without vLLM: errors, times.

    device_engine_experts.py SOURCES [--csv FILE] [--layers-only NAME,...] [--seconds S] [--dry-run]

SOURCES as for device_engines.py. Tokens are routed already: all arms get the same random experts, as int32, and
float32 router weights. bf16; CUDA graphs over two sets of operands in turn, so that experts' weights are not in a
cache; all arms take turns. A ratio is the median over rounds of an arm's time divided by hgemm's. Errors are relative,
of up to 256 tokens beside float64; the program fails if one is 0.02 or more. Arms:

hgemm           the plug-in's TritonExperts.apply: batch-invariant, with its sorting; it writes to vLLM's output
hgemm_default   the same, but hgemm.torch's default mode
vllm            vLLM's own TritonExperts.apply in its default mode, with the tile that vLLM measured for this layer on
                this GPU (from_json), or else with the one that it takes otherwise
vllm_invariant  the same in vLLM's batch-invariant mode, which has one tile for all

vLLM's Python code and its Triton kernel fused_moe_kernel are its own. Four operators that vLLM has in CUDA are replaced
here. moe_align_block_size, which sorts, runs before the graph: it costs vLLM nothing here, while hgemm's sorting is in
the time. For few tokens vLLM does not sort, but fills in one number, and that runs before the graph too. silu_and_mul
and swigluoai_and_mul are one Triton kernel, moe_sum is another; they read and write as much as the compiled ones, with
16 bytes a thread. vLLM's workspaces are there before the graph, as in vLLM.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

if "--dry-run" in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"  # which Triton reads when it is imported
sys.path.insert(0, str(Path(__file__).parent / "engines"))
import torch  # noqa: E402
from device_engines import COMPILERS, Timer, geometric_mean, median, progress, write  # noqa: E402
from in_process import CPU_IS_INVARIANT  # noqa: E402
from shapes import EXPERTS, TOKENS  # noqa: E402
from torch import Tensor  # noqa: E402
from triton.runtime.errors import OutOfResources  # noqa: E402
from vllm_experts import Experts  # noqa: E402

from hgemm.engines import _vllm_experts  # noqa: E402
from hgemm.torch import _gates, _moe  # noqa: E402

SMALL = {"small": (8, 2, 32, 48, False), "small-alternating": (4, 3, 48, 32, True)}, (1, 5)
LARGEST_ERROR = 0.02  # as gated.py in tests/bench; a wrong row has more than 1
ROUNDS = 16


@dataclass
class Operands:
    """Of one call: TritonExperts.apply's, and the number of experts that TritonExperts has."""
    layer: Any
    output: Tensor
    x: Tensor
    w13: Tensor
    w2: Tensor
    weights: Tensor
    ids: Tensor
    activation: Any
    workspaces: tuple[Tensor, Tensor]

    def arguments(self) -> tuple[Any, ...]:
        return (self.layer, self.output, self.x, self.w13, self.w2, self.weights, self.ids, self.activation,
                self.w13.shape[0], None, None, None, *self.workspaces, None, False)


def random(options: argparse.Namespace, *shape: int, scale: float = 1.0) -> Tensor:
    return torch.randn(shape, device=options.device, dtype=options.dtype).mul_(scale)


def layers_of(options: argparse.Namespace, loaded: Experts, name: str) -> list[tuple[Any, Tensor, Tensor]]:
    """Two sets: vLLM's object, and the weights."""
    count, _, hidden, inner, alternate = options.layers[name]
    return [(loaded.layer(*(random(options, count, n) if alternate else None for n in (2 * inner, hidden))),
             random(options, count, 2 * inner, hidden, scale=hidden ** -0.5),
             random(options, count, hidden, inner, scale=inner ** -0.5)) for _ in range(2)]


def operands_of(options: argparse.Namespace, loaded: Experts, name: str, tokens: int,
                layers: list[tuple[Any, Tensor, Tensor]]) -> list[Operands]:
    count, top_k, hidden, inner, alternate = options.layers[name]
    activation = loaded.activation_of(alternate)
    # The sizes by TritonExperts.workspace_shapes.
    workspaces = [torch.empty(tokens, top_k, max(width, hidden), device=options.device, dtype=options.dtype)
                  for width in (inner, 2 * inner)]
    made = []
    for layer, w13, w2 in layers:
        weights, ids = torch.randn(tokens, count, device=options.device).softmax(1).topk(top_k)
        x = random(options, tokens, hidden)
        made.append(Operands(layer, torch.empty_like(x), x, w13, w2, weights / weights.sum(1, keepdim=True), ids.int(),
                             activation, tuple(workspaces)))
    return made


def arms_of(options: argparse.Namespace, loaded: Experts) -> dict[str, Callable[[Operands], None]]:
    def left(name: str, why: str) -> None:
        raise RuntimeError(f"the plug-in left {name} to vLLM: {why}")
    plugin = _vllm_experts.EXPERTS.replacements(SimpleNamespace(left=left), {_vllm_experts.METHOD: loaded.apply})

    def by_plugin(operands: Operands) -> None:
        plugin[_vllm_experts.METHOD](*operands.arguments())

    def by_default(operands: Operands) -> None:
        layer = operands.layer
        gate = _gates.gate_of(operands.w13.shape[1], "w13", **{
            "block": None, "limit": None, "slope": None, "offset": 0.0,
            **_vllm_experts.GATES[operands.activation.value](layer.activation_config)})
        _moe.experts(operands.x, operands.weights, operands.ids, operands.w13, operands.w2, layer.w1_bias, layer.w2_bias,
                     gate, False, out=operands.output)

    def by_vllm(operands: Operands) -> None:
        loaded.apply(*operands.arguments())

    def by_vllm_invariant(operands: Operands) -> None:
        with loaded.invariant():
            loaded.apply(*operands.arguments())
    invariant = CPU_IS_INVARIANT or not options.dry_run
    return {"hgemm": by_plugin if invariant else by_default, "hgemm_default": by_default, "vllm": by_vllm,
            "vllm_invariant": by_vllm_invariant}


def right(operands: Operands, chosen: Tensor, alternate: bool) -> Tensor:
    """In float64, for some of the tokens."""
    layer, x, ids = operands.layer, operands.x[chosen].double(), operands.ids[chosen]
    result = torch.zeros_like(x)
    for expert in ids.unique().tolist():
        token, choice = (ids == expert).nonzero(as_tuple=True)
        product = x[token] @ operands.w13[expert].double().t()
        if alternate:
            product += layer.w1_bias[expert].double()
            gate, up = product[:, ::2].clamp(max=7.0), product[:, 1::2].clamp(-7.0, 7.0)
            gated = gate * torch.sigmoid(1.702 * gate) * (up + 1)
        else:
            gate, up = product.chunk(2, 1)
            gated = torch.nn.functional.silu(gate) * up
        product = gated @ operands.w2[expert].double().t()
        if alternate:
            product += layer.w2_bias[expert].double()
        result.index_add_(0, token, product * operands.weights[chosen][token, choice, None].double())
    return result


def errors_of(arms: dict[str, Callable[[Operands], None]], sets: list[Operands], alternate: bool) -> dict[str, float]:
    """Of arms that run, which all sets try, so that nothing is compiled or sorted in a graph."""
    tokens = sets[0].x.shape[0]
    chosen = torch.arange(0, tokens, max(1, tokens // 256), device=sets[0].x.device)
    expected, errors = right(sets[0], chosen, alternate), {}
    for name, arm in arms.items():
        try:
            for operands in reversed(sets):
                operands.output.fill_(float("nan"))
                arm(operands)
        except OutOfResources as error:
            progress(f"{name} does not run: {error}")
            continue
        errors[name] = float((sets[0].output[chosen].double() - expected).norm() / expected.norm())
    return errors


def measure(options: argparse.Namespace, loaded: Experts, arms: dict[str, Callable[[Operands], None]], name: str,
            tokens: int, sets: list[Operands]) -> list[dict[str, Any]]:
    count, top_k, hidden, inner, alternate = options.layers[name]
    errors = errors_of(arms, sets, alternate)
    # About 0.4 ms by the memory's and by the tensor cores' speed, so that a graph's start does not count.
    ideal = max(6 * min(count, tokens * top_k) * hidden * inner / 4e6, 6 * tokens * top_k * hidden * inner / 7e8)
    calls = 2 if options.dry_run else 2 * max(1, min(16, round(200 / ideal)))
    timers = {arm: Timer(options, lambda _, operands, run=arms[arm]: run(operands), None, sets, calls)
              for arm in errors}
    rounds: list[dict[str, float]] = []
    for i in range(2 if options.dry_run else ROUNDS + 1):
        order = list(timers) if i % 2 == 0 else list(reversed(timers))
        rounds.append({arm: timers[arm].microseconds() for arm in order})
    rows = []
    for arm in errors:
        row = {"layer": name, "experts": count, "top_k": top_k, "hidden": hidden, "inner": inner, "tokens": tokens,
               "dtype": str(options.dtype).split(".")[1], "arm": arm,
               "us": round(median([one[arm] for one in rounds[1:]]), 2),
               "ratio": round(median([one[arm] / one["hgemm"] for one in rounds[1:]]), 4),
               "error": f"{errors[arm]:.2e}", "calls": calls}
        rows.append(row | tile_of(loaded, arm, sets[0]))
    return rows


def tile_of(loaded: Experts, arm: str, operands: Operands) -> dict[str, Any]:
    if not arm.startswith("vllm"):
        return {}
    if arm == "vllm":
        return loaded.tile(operands.w13, operands.w2, operands.ids)
    with loaded.invariant():
        return loaded.tile(operands.w13, operands.w2, operands.ids)


def compile_part(options: argparse.Namespace, loaded: Experts) -> None:
    """vLLM's kernels, by calls on tensors that have no memory."""
    loaded.only_compile()
    options.device = "meta"
    arms = arms_of(options, loaded)
    work = [(name, tokens, arm) for arm in ("vllm", "vllm_invariant") for tokens in options.tokens
            for name in options.layers]
    for name, tokens, arm in work[options.part::COMPILERS]:
        arms[arm](operands_of(options, loaded, name, tokens, layers_of(options, loaded, name)[:1])[0])


def compile_all() -> None:
    progress("compiling")
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--part"]
    parts = [subprocess.Popen([*command, str(part)]) for part in range(COMPILERS)]
    failed = [part for part, process in enumerate(parts) if process.wait()]
    progress(f"compiled by {COMPILERS} processes" + (f", of which {failed} failed: what is missing is compiled when it "
                                                     "is used" if failed else ""))


def parse() -> argparse.Namespace:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("sources", type=Path)
    top.add_argument("--csv", default="engine-experts.csv", metavar="FILE", help="written after each layer")
    top.add_argument("--layers-only", metavar="NAME,...", help=", ".join(EXPERTS))
    top.add_argument("--seconds", type=float, default=140, help="no new number of tokens is begun after them (140)")
    top.add_argument("--dry-run", action="store_true", help="small float16 tensors on the CPU, by Triton's "
                     "interpreter, to try the program itself; where the CPU has no batch-invariant mode, hgemm is "
                     "hgemm_default")
    top.add_argument("--part", type=int, help=argparse.SUPPRESS)
    options = top.parse_args()
    options.torch, options.device = torch, "cpu" if options.dry_run else "cuda"
    options.dtype = torch.float16 if options.dry_run else torch.bfloat16
    layers, options.tokens = SMALL if options.dry_run else (EXPERTS, TOKENS)
    names = options.layers_only.split(",") if options.layers_only else list(layers)
    if unknown := [name for name in names if name not in layers]:
        top.error(f"no layer {', '.join(unknown)}; there are {', '.join(layers)}")
    options.layers = {name: layers[name] for name in names}
    return options


def run(options: argparse.Namespace, loaded: Experts, found: list[dict[str, Any]], end: float) -> None:
    arms = arms_of(options, loaded)
    for name in options.layers:
        layers = layers_of(options, loaded, name)
        for tokens in options.tokens:
            if time.time() > end:
                progress(f"the time is over before {name} with {tokens} tokens: the rest is left out")
                return
            sets = operands_of(options, loaded, name, tokens, layers)
            found += (rows := measure(options, loaded, arms, name, tokens, sets))
            progress(f"{name} {tokens}: " + ", ".join(f"{row['arm']} {row['us']} x{row['ratio']} ({row['error']})"
                                                      for row in rows))
            del sets
            loaded.forget()
            if not options.dry_run:
                torch.cuda.empty_cache()  # torch keeps the memory of graphs that are gone, libhgemm needs some
        del layers
        write(options.csv, options, found)


def main() -> int:
    options = parse()
    end, found = time.time() + options.seconds, []
    loaded = Experts(options.sources)
    torch.manual_seed(1)
    with torch.inference_mode():
        if options.part is not None:
            compile_part(options, loaded)
            return 0
        if not options.dry_run:
            compile_all()
        run(options, loaded, found, end)
    write(options.csv, options, found)
    for arm in ("hgemm_default", "vllm", "vllm_invariant"):
        ratios = [row["ratio"] for row in found if row["arm"] == arm]
        if ratios:
            print(f"{arm:14} takes {geometric_mean(ratios):.3f} of hgemm's time over {len(ratios)} problems, from "
                  f"{min(ratios):.3f} to {max(ratios):.3f}")
    wrong = [row for row in found if not float(row["error"]) < LARGEST_ERROR]
    print(f"{len(found) - len(wrong)} of {len(found)} results have errors below {LARGEST_ERROR}")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
