#!/usr/bin/env python3
"""libhgemm's batch-invariant products beside the kernel of vLLM's batch-invariant mode and cuBLAS: bits and times.

    device_engines.py SOURCES [--csv FILE] [--seconds S] [--only bits,times] [--dry-run]

SOURCES: a folder that engines/fetch.py has filled with vLLM's Python files. Needs a GPU, PyTorch, Triton and the
package hgemm. Writes FILE-bits.csv and FILE-times.csv, and fails if bits differ from vLLM's kernel or among batches.

bits: of hgemm, of vLLM's kernel with the tile that vLLM takes and with that of a compiled graph, and of torch without
split-K, over the layers of engines/shapes.py. "rows" are elements of hgemm's rows that differ where there are other
rows beside them. times: CUDA graphs of several products over weights that are not in a cache; all ways take turns.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "engines"))
from shapes import COMPARED_ROWS, FEW_ROWS, LAYERS, TIMED_ROWS  # noqa: E402

COMPILERS = 14  # processes
# Of cuBLAS: without a workspace it does not split K. Only the process that compares bits has these.
UNSPLIT = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "1"}


def progress(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("sources", type=Path)
    top.add_argument("--csv", default="engines.csv", metavar="FILE")
    top.add_argument("--seconds", type=float, default=200, help="no new layer is begun after them (200)")
    top.add_argument("--only", default="bits,times")
    top.add_argument("--dry-run", action="store_true", help="small CPU tensors by Triton's interpreter, to try the "
                     "program itself: libhgemm computes in its default mode, and bits may differ")
    top.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    top.add_argument("--worker", choices=("bits", "times", "compile"), help=argparse.SUPPRESS)
    top.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    return top.parse_args()


# ---- In a process of its own: compile, compare, or measure


def shapes_of(options: argparse.Namespace) -> tuple[dict[str, tuple[int, int]], tuple[int, ...], tuple[int, ...]]:
    """Layers, rows to compare, rows to measure."""
    if options.dry_run:
        return {"small": (64, 48), "odd": (36, 32)}, (1, 3, 16), (1, 16)
    return LAYERS, COMPARED_ROWS, TIMED_ROWS


def candidates(kernels: Any, m: int) -> list[Any]:
    """Tiles that may be the best for m rows: not much more than it, nor much less."""
    fitting = [tile for tile in kernels.tiles if tile.m <= max(32, 2 * m) and tile.m >= min(64, m // 8)]
    return fitting[:2] if m == 0 else fitting


def to_compile(kernels: Any, layers: dict[str, tuple[int, int]]) -> list[tuple[Any, ...]]:
    """One of each that Triton tells apart."""
    import torch
    kinds: dict[Any, tuple[Any, ...]] = {}

    def add(shape: tuple[int, int], m: int, dtype: Any, tile: Any, bias: bool = False) -> None:
        classes = tuple("1" if x == 1 else "16" if x % 16 == 0 else "any" for x in (m, *shape))
        kinds.setdefault((classes, dtype, tile, bias), (shape, m, dtype, tile, bias))
    for shape in layers.values():
        for m in COMPARED_ROWS:
            for tile in (kernels.tile(shape, m), kernels.frozen(shape)):
                add(shape, m, torch.bfloat16, tile)
        for m in FEW_ROWS:
            add(shape, m, torch.float16, kernels.tile(shape, m, torch.float16))
            add(shape, m, torch.bfloat16, kernels.tile(shape, m), True)
    for m in TIMED_ROWS:
        for tile in candidates(kernels, m):
            add((4096, 4096), m, torch.bfloat16, tile)
    return list(kinds.values())


def compile_part(options: argparse.Namespace, kernels: Any) -> None:
    work = to_compile(kernels, LAYERS)
    for shape, m, dtype, tile, bias in work[options.part::COMPILERS]:
        kernels.compile(shape, m, dtype, tile, bias)
    if options.part == 0:
        progress(f"compiled {len(work)} kernels in {COMPILERS} processes")


class Products:
    """The ways to multiply a (M, K) by weight (N, K), transposed."""

    def __init__(self, options: argparse.Namespace, kernels: Any) -> None:
        import torch

        import hgemm.torch  # noqa: F401  defines torch.ops.hgemm
        self.torch, self.kernels = torch, kernels
        self.device = "cpu" if options.dry_run else "cuda"
        self.dtype = torch.float16 if options.dry_run else torch.bfloat16
        self.invariant = not options.dry_run
        self.generator = torch.Generator(self.device).manual_seed(1)

    def random(self, *shape: int, dtype: Any = None) -> Any:
        x = self.torch.randn(shape, generator=self.generator, device=self.device, dtype=self.torch.float32)
        return (x / shape[-1] ** 0.25).to(dtype or self.dtype)

    def hgemm(self, a: Any, weight: Any, bias: Any = None) -> Any:
        return self.torch.ops.hgemm.gemm(a, weight.t(), None, bias, 1.0, 0.0, "none", None, self.invariant)

    def cublas(self, a: Any, weight: Any, bias: Any = None) -> Any:
        return self.torch.nn.functional.linear(a, weight, bias)

    def vllm(self, a: Any, weight: Any, bias: Any = None) -> Any:
        return self.kernels.product(a, weight, bias)

    def vllm_by(self, tile: Any) -> Any:
        def product(a: Any, weight: Any, bias: Any = None) -> Any:
            with self.kernels.only(tile):
                return self.kernels.product(a, weight, bias)
        return product

    def differ(self, x: Any, y: Any) -> int:
        return int((x.view(self.torch.int16) != y.view(self.torch.int16)).sum())


def compare(products: Products, name: str, shape: tuple[int, int], rows: tuple[int, ...], dtype: Any,
            with_bias: bool) -> list[dict[str, Any]]:
    n, k = shape
    a, weight = products.random(max(rows), k, dtype=dtype), products.random(n, k, dtype=dtype)
    bias = products.random(n, dtype=dtype) if with_bias else None
    whole = products.hgemm(a, weight, bias)
    result = []
    for m in rows:
        part = a[:m]
        ours, theirs = products.hgemm(part, weight, bias), products.vllm(part, weight, bias)
        tile = products.kernels.tile(shape, m, dtype)
        frozen = products.kernels.tile(shape, 2048, dtype)
        row = {"layer": name, "n": n, "k": k, "m": m, "dtype": str(dtype).split(".")[1], "bias": int(with_bias),
               "elements": ours.numel(), "vllm": products.differ(ours, theirs),
               "rows": products.differ(ours, whole[:m]), "tile": "x".join(map(str, tile)),
               "torch_unsplit": products.differ(ours, products.cublas(part, weight, bias)), "vllm_frozen": ""}
        if frozen != tile:
            row["vllm_frozen"] = products.differ(ours, products.vllm_by(frozen)(part, weight, bias))
        result.append(row)
    return result


def work_bits(options: argparse.Namespace, products: Products, result: list[dict[str, Any]]) -> None:
    torch = products.torch
    torch.backends.cuda.preferred_blas_library("cublaslt")
    neither: Any = (False, False)  # sums in half precision, split-K
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = neither
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = neither
    layers, rows, _ = shapes_of(options)
    few = (1, 3) if options.dry_run else FEW_ROWS
    for name, shape in layers.items():
        if late(options, name):
            break
        found = compare(products, name, shape, rows, products.dtype, False)
        found += compare(products, name, shape, few, products.dtype, True)
        found += compare(products, name, shape, few, torch.float16, False)
        differing = {way: sum(row[way] for row in found if row[way] != "") for way in
                     ("vllm", "vllm_frozen", "torch_unsplit", "rows")}
        progress(f"bits of {name} {shape}: {sum(row['elements'] for row in found)} elements, differ: {differing}")
        result += found


def late(options: argparse.Namespace, name: str) -> bool:
    if time.time() < options.deadline:
        return False
    progress(f"the time is over before {name}: the rest is left out")
    return True


class Timer:
    """Of one way: a CUDA graph of products over weights in turn, and microseconds a product for each replay."""

    def __init__(self, products: Products, way: Any, a: Any, weights: list[Any], calls: int) -> None:
        self.torch, self.calls = products.torch, calls

        def run() -> None:
            for i in range(calls):
                way(a, weights[i % len(weights)])
        if products.device == "cpu":
            self.replay = run
            return
        torch = products.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            way(a, weights[0])
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            run()
        self.replay = self.graph.replay
        self.ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def microseconds(self, replays: int = 1) -> float:
        if not hasattr(self, "ends"):
            start = time.perf_counter()
            self.replay()
            return (time.perf_counter() - start) * 1e6 / self.calls
        self.ends[0].record()
        for _ in range(replays):
            self.replay()
        self.ends[1].record()
        self.ends[1].synchronize()
        return self.ends[0].elapsed_time(self.ends[1]) * 1e3 / replays / self.calls


def median(values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def best_tile(products: Products, m: int, a: Any, weights: list[Any], calls: int) -> Any:
    def time_of(tile: Any) -> float:
        timer = Timer(products, products.vllm_by(tile), a, weights, calls)
        return min(timer.microseconds() for _ in range(3))
    return min(candidates(products.kernels, m)[:2 if products.device == "cpu" else None], key=time_of)


def measure(products: Products, name: str, shape: tuple[int, int], m: int, weights: list[Any]) -> dict[str, Any]:
    n, k = shape
    a = products.random(m, k)
    # About 0.4 ms by the memory's and by the tensor cores' speed, so that a graph's start does not count.
    ideal = max(2 * n * k / 4e6, 2 * m * n * k / 7e8)
    calls = 2 if products.device == "cpu" else max(1, min(64, round(400 / ideal)))
    tile, frozen = products.kernels.tile(shape, m, products.dtype), products.kernels.tile(shape, 2048, products.dtype)
    best = best_tile(products, m, a, weights, calls)
    ways = {"hgemm": products.hgemm, "cublas": products.cublas, "vllm": products.vllm_by(tile),
            "vllm_frozen": products.vllm_by(frozen), "vllm_best": products.vllm_by(best)}
    timers = {way: Timer(products, product, a, weights, calls) for way, product in ways.items()}
    rounds = [{way: timer.microseconds() for way, timer in timers.items()}
              for _ in range(3 if products.device == "cpu" else 16)][1:]
    row: dict[str, Any] = {"layer": name, "n": n, "k": k, "m": m, "dtype": str(products.dtype).split(".")[1],
                           "calls": calls, "weights": len(weights)}
    row |= {f"{way}_us": round(median([one[way] for one in rounds]), 3) for way in ways}
    row |= {f"hgemm_over_{way}": round(median([one[way] / one["hgemm"] for one in rounds]), 4)
            for way in ways if way != "hgemm"}
    tiles = {"vllm": tile, "vllm_frozen": frozen, "vllm_best": best}
    return row | {f"{way}_tile": "x".join(map(str, value)) for way, value in tiles.items()}


def work_times(options: argparse.Namespace, products: Products, result: list[dict[str, Any]]) -> None:
    layers, _, rows = shapes_of(options)
    for name, (n, k) in layers.items():
        if late(options, name):
            break
        count = 2 if products.device == "cpu" else max(1, min(64, -(-(256 << 20) // (2 * n * k))))
        weights = [products.random(n, k) for _ in range(count)]
        found = []
        for m in rows:
            found.append(measure(products, name, (n, k), m, weights))
            if products.device != "cpu":
                products.torch.cuda.empty_cache()  # torch keeps the memory of graphs that are gone, libhgemm needs some
        progress(f"{name} ({n}, {k}): speed over vllm_frozen " +
                 " ".join(f"{row['m']}:{row['hgemm_over_vllm_frozen']:.2f}" for row in found))
        result += found
        del weights


def work(options: argparse.Namespace) -> int:
    from vllm_kernels import Kernels
    import torch
    with torch.no_grad():
        kernels = Kernels(options.sources)
        if options.worker == "compile":
            compile_part(options, kernels)
            return 0
        found: list[dict[str, Any]] = []
        try:
            (work_bits if options.worker == "bits" else work_times)(options, Products(options, kernels), found)
        finally:  # what is there is kept
            write(output(options, options.worker), options, found)
            summarise(options.worker, found)
    differ = options.worker == "bits" and any(row["vllm"] or row["vllm_frozen"] or row["rows"] for row in found)
    return 1 if differ and not options.dry_run else 0


def origin(options: argparse.Namespace) -> dict[str, str]:
    """Columns that say where rows come from."""
    import torch
    import triton

    import hgemm
    driver = "none"
    if not options.dry_run:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, stdout=subprocess.PIPE, text=True).stdout.split("\n")[0]
    version = options.sources / "VERSION"
    return {"device": "CPU, dry run" if options.dry_run else torch.cuda.get_device_name(), "driver": driver,
            "cuda": torch.version.cuda or "none", "torch": torch.__version__, "triton": triton.__version__,
            "engine": version.read_text().strip() if version.exists() else "unknown",
            "date": datetime.date.today().isoformat(), "revision": hgemm.build_info().split(",")[0]}


def write(path: str, options: argparse.Namespace, found: list[dict[str, Any]]) -> None:
    about = origin(options)
    columns = list(dict.fromkeys(key for row in found for key in row)) + [*about]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | about for row in found)


def geometric_mean(values: list[float]) -> float:
    product = 1.0
    for value in values:
        product *= value ** (1 / len(values))
    return product


def summarise(worker: str, found: list[dict[str, Any]]) -> None:
    if worker == "bits":
        for way in ("vllm", "vllm_frozen", "torch_unsplit", "rows"):
            compared = [row for row in found if row[way] != ""]
            differing = [row for row in compared if row[way]]
            print(f"bits beside {way}: {len(compared) - len(differing)} of {len(compared)} products equal; differ: " +
                  ("; ".join(f"{row['m']}x{row['n']}x{row['k']} {row['dtype']} bias={row['bias']} {row[way]}"
                             for row in differing[:8]) or "none"))
        return
    for text, chosen in (("M <= 64", [row for row in found if row["m"] <= 64]),
                         ("64 < M <= 256", [row for row in found if 64 < row["m"] <= 256]),
                         ("M > 256", [row for row in found if row["m"] > 256])):
        for way in ("vllm_frozen", "vllm", "vllm_best", "cublas"):
            ratios = [row[f"hgemm_over_{way}"] for row in chosen]
            if ratios:
                print(f"{text:14} speed over {way:12} mean {geometric_mean(ratios):.3f} min {min(ratios):.3f} "
                      f"max {max(ratios):.3f} of {len(ratios)}")


# ---- All of them


def output(options: argparse.Namespace, worker: str) -> str:
    return f"{options.csv.removesuffix('.csv')}-{worker}.csv"


def main() -> int:
    options = parse()
    if options.worker:
        return work(options)
    deadline = time.time() + options.seconds
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--worker"]
    environment = dict(os.environ) | ({"TRITON_INTERPRET": "1"} if options.dry_run else {})
    if not options.dry_run:
        progress("compiling")
        parts = [subprocess.Popen([*command, "compile", "--part", str(part)]) for part in range(COMPILERS)]
        failed = [part for part, process in enumerate(parts) if process.wait()]
        if failed:
            progress(f"compiling failed in processes {failed}; what is missing is compiled when it is used")
    worst = 0
    for worker in options.only.split(","):
        before = time.time()
        until = min(deadline, before + (deadline - before) / 2.5) if worker == "bits" else deadline
        extra = UNSPLIT if worker == "bits" else {}
        status = subprocess.run([*command, worker, "--deadline", str(until)], env=environment | extra).returncode
        progress(f"{worker}: {time.time() - before:.0f} s, status {status}")
        worst = max(worst, abs(status))
    return worst


if __name__ == "__main__":
    sys.exit(main())
