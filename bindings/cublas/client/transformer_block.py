#!/usr/bin/env python3
"""Transformer blocks of real layer sizes with random weights, timed with and without the shim in one process.

    python3 transformer_block.py --shim /path/to/libhgemm_cublas.so

Both ways alternate in the order A B B A, so that clocks and temperature touch both alike. A ratio is time
with cuBLAS over time with libhgemm: above 1 is a gain. The exit status is 0 if no ratio is below --lowest."""

import argparse
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F

from shim_control import Shim, start_again_under

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Weights:
    """Named random matrices, scaled so that activations keep their size."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.generator = torch.Generator("cuda").manual_seed(1)

    def __call__(self, *shape):
        values = torch.randn(*shape, generator=self.generator, device="cuda", dtype=torch.float32)
        return (values / math.sqrt(shape[-1])).to(self.dtype)


class GatedBlock:
    """As in Llama 3 8B: grouped queries, gated feed-forward, no bias."""

    hidden, heads, kv_heads, feed_forward = 4096, 32, 8, 14336

    def __init__(self, dtype):
        w, size = Weights(dtype), self.hidden // self.heads
        self.qkv = w(self.hidden + 2 * self.kv_heads * size, self.hidden)
        self.out = w(self.hidden, self.hidden)
        self.gate_up = w(2 * self.feed_forward, self.hidden)
        self.down = w(self.hidden, self.feed_forward)

    def split(self, x):
        size = self.hidden // self.heads
        q, k, v = F.linear(x, self.qkv).split([self.hidden, self.kv_heads * size, self.kv_heads * size], -1)
        repeat = self.heads // self.kv_heads
        return (heads_of(q, self.heads), heads_of(k, self.kv_heads).repeat_interleave(repeat, 1),
                heads_of(v, self.kv_heads).repeat_interleave(repeat, 1))

    def __call__(self, x, cache):
        x = x + F.linear(attention(*self.split(F.rms_norm(x, x.shape[-1:])), cache), self.out)
        gate, up = F.linear(F.rms_norm(x, x.shape[-1:]), self.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, self.down)


class BiasedBlock:
    """As in GPT-2 XL and its kin, wider: biases everywhere, GELU."""

    hidden, heads, kv_heads, feed_forward = 5120, 40, 40, 20480

    def __init__(self, dtype):
        w = Weights(dtype)
        self.qkv, self.qkv_bias = w(3 * self.hidden, self.hidden), w(3 * self.hidden)
        self.out, self.out_bias = w(self.hidden, self.hidden), w(self.hidden)
        self.up, self.up_bias = w(self.feed_forward, self.hidden), w(self.feed_forward)
        self.down, self.down_bias = w(self.hidden, self.feed_forward), w(self.hidden)

    def __call__(self, x, cache):
        normal = F.layer_norm(x, x.shape[-1:])
        q, k, v = (heads_of(part, self.heads) for part in F.linear(normal, self.qkv, self.qkv_bias).chunk(3, -1))
        x = x + F.linear(attention(q, k, v, cache), self.out, self.out_bias)
        inner = F.linear(F.layer_norm(x, x.shape[-1:]), self.up, self.up_bias)
        return x + F.linear(F.gelu(inner, approximate="tanh"), self.down, self.down_bias)


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attention(q, k, v, cache):
    """Over the cache where there is one (decode), else causal over the tokens themselves (prefill)."""
    if cache is not None:
        result = F.scaled_dot_product_attention(q, cache[0], cache[1])
    else:
        result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return result.transpose(1, 2).flatten(2)


# Name, sequences, tokens of each that are new; decode looks back on a cache.
LOADS = [("decode", 1, 1), ("decode", 8, 1), ("decode", 32, 1), ("decode", 128, 1),
         ("prefill", 1, 128), ("prefill", 1, 512), ("prefill", 1, 2048), ("prefill", 4, 2048)]
CACHED = 1024


def make_work(block, dtype, sequences, tokens, decode):
    x = torch.randn(sequences, tokens, block.hidden, device="cuda", dtype=torch.float32).to(dtype)
    cache = None
    if decode:
        cache = torch.randn(2, sequences, block.heads, CACHED, block.hidden // block.heads, device="cuda",
                            dtype=torch.float32).to(dtype)
    return lambda: block(x, cache)


def graph_of(work):
    """The work as a recorded graph, its result beside it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return graph, result


def milliseconds(run, repeats):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / repeats


class Ways:
    """The same work through cuBLAS ("off") and through libhgemm ("on")."""

    def __init__(self, shim, work, graphs):
        self.shim, self.work = shim, work
        self.graphs, self.results = {}, {}
        for mode in ("off", "on"):
            shim.set("HGEMM_SHIM", mode)
            if graphs:
                self.graphs[mode], self.results[mode] = graph_of(work)
                self.graphs[mode].replay()
            else:
                self.results[mode] = [work() for _ in range(3)][-1]
        torch.cuda.synchronize()

    def difference(self):
        ours, theirs = self.results["on"].double(), self.results["off"].double()
        return ((ours - theirs).abs().max() / theirs.abs().max()).item()

    def time(self, mode, repeats):
        self.shim.set("HGEMM_SHIM", mode)
        return milliseconds(self.graphs[mode].replay if self.graphs else self.work, repeats)


def ratios(ways, rounds, milliseconds_each):
    """Paired ratios, two in each round of A B B A, and the median times."""
    one = max(ways.time("off", 3), 1e-3)
    repeats = max(3, round(milliseconds_each / one))
    found, times = [], {"off": [], "on": []}
    for _ in range(rounds):
        a, b, c, d = (ways.time(mode, repeats) for mode in ("off", "on", "on", "off"))
        found += [a / b, d / c]
        times["off"] += [a, d]
        times["on"] += [b, c]
    return sorted(found), {mode: statistics.median(values) for mode, values in times.items()}


def measure(shim, block_type, dtype_name, load, graphs, options):
    kind, sequences, tokens = load
    dtype = DTYPES[dtype_name]
    work = make_work(block_type(dtype), dtype, sequences, tokens, kind == "decode")
    before = shim.counts()
    ways = Ways(shim, work, graphs)
    shim.set("HGEMM_SHIM", "on")
    served = shim.counts()[0] - before[0]
    found, times = ratios(ways, options.rounds, options.milliseconds)
    return {"block": block_type.__name__, "dtype": dtype_name, "load": kind, "sequences": sequences, "tokens": tokens,
            "launch": "graph" if graphs else "eager", "served": served, "difference": ways.difference(),
            "cublas_ms": times["off"], "hgemm_ms": times["on"], "ratio": statistics.median(found),
            "lower": found[len(found) // 4], "upper": found[-1 - len(found) // 4]}


def print_row(row):
    name = f"{row['block']} {row['dtype']} {row['load']} {row['sequences']} x {row['tokens']} {row['launch']}"
    print(f"{name:<46}{row['cublas_ms']:>10.4f}{row['hgemm_ms']:>10.4f}{row['ratio']:>8.3f}"
          f"  [{row['lower']:.3f} {row['upper']:.3f}]{row['difference']:>11.1e}{row['served']:>6}", flush=True)


def is_right(row):
    """The block's products were ours, and the results are those of half-precision rounding."""
    return row["served"] >= 12 and row["difference"] <= 32 * torch.finfo(DTYPES[row["dtype"]]).eps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shim", required=True, help="libhgemm_cublas.so")
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "fp16"], choices=list(DTYPES))
    parser.add_argument("--rounds", type=int, default=10, help="of A B B A")
    parser.add_argument("--milliseconds", type=float, default=20, help="of each A and each B, about")
    parser.add_argument("--lowest", type=float, default=0.98, help="ratio that is still good")
    parser.add_argument("--json", metavar="FILE", help="write all rows")
    options = parser.parse_args()
    start_again_under(options.shim)

    shim, rows = Shim(), []
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}; a ratio is cuBLAS's time over libhgemm's")
    print(f"{'':<46}{'cuBLAS ms':>10}{'ours ms':>10}{'ratio':>8}  [quartiles]{'difference':>13}{'served':>7}")
    with torch.inference_mode():
        for block_type in (GatedBlock, BiasedBlock):
            for dtype_name in options.dtypes:
                for load in LOADS:
                    for graphs in (True, False):
                        rows.append(measure(shim, block_type, dtype_name, load, graphs, options))
                        print_row(rows[-1])
                        torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    slow = [row for row in rows if row["ratio"] < options.lowest]
    wrong = [row for row in rows if not is_right(row)]
    print(f"{len(rows)} ratios, lowest {min(row['ratio'] for row in rows):.3f}, "
          f"geometric mean {statistics.geometric_mean(row['ratio'] for row in rows):.3f}; "
          f"{len(slow)} below {options.lowest}, {len(wrong)} wrong")
    print(shim.summary())
    sys.exit(1 if slow or wrong else 0)


if __name__ == "__main__":
    main()
