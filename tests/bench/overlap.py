#!/usr/bin/env python3
"""Times products that overlap with what ranks send (hgemm.torch.distributed), beside a collective and then a product.

    torchrun --nproc-per-node 2 overlap.py [--csv FILE] [--revision NAME] [--rounds R] [--tokens N,...]

Needs PyTorch with CUDA and NCCL, and a GPU for each rank. bf16. Layers of K x N over P ranks: the rows are gathered for
N / P columns in each rank (gather), the sums of K / P are scattered (scatter) or all are given to all (all), also with
the bits of one GPU (tree).
Medians of CUDA graphs that take turns, of the slower rank. The columns, in microseconds:

    ours        all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce, row_parallel_linear
    cublas      NCCL's collective and torch.mm, one after the other;  hgemm: with hgemm.torch.mm
    product     the product alone, by the faster of both;  transfer: NCCL's collective alone
    fused       torch.ops.symm_mem.fused_all_gather_matmul, fused_matmul_reduce_scatter

ratio: the faster sequence by ours, median over rounds. limit: that sequence by the longer of product and transfer.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import distributed
from torch.distributed import _symmetric_memory  # noqa: F401  defines torch.ops.symm_mem.fused_*

import hgemm.torch as ht
import hgemm.torch.distributed as htd

LAYERS = ((8192, 28672), (4096, 14336))  # K, N of gather; N, K of the others, as of one feed-forward block
TOKENS = (8, 64, 256, 512, 1024, 2048, 4096, 8192)
SEQUENCES = ("cublas", "hgemm")


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def gather_arms(tokens, k, n, size, name):
    x, weight = random(tokens // size, k), random(n // size, k) / k**0.5
    whole = random(tokens, k)

    def sequence(mm):
        gathered = torch.empty_like(whole)
        distributed.all_gather_into_tensor(gathered, x)
        return mm(gathered, weight.t())

    return {"ours": lambda: htd.all_gather_matmul(x, weight.t()),
            "cublas": lambda: sequence(torch.mm), "hgemm": lambda: sequence(ht.mm),
            "product_cublas": lambda: torch.mm(whole, weight.t()), "product_hgemm": lambda: ht.mm(whole, weight.t()),
            "transfer": lambda: distributed.all_gather_into_tensor(whole, x),
            "fused": lambda: torch.ops.symm_mem.fused_all_gather_matmul(x, [weight.t()], 0, name, return_A=False)[1][0]}


def reduce_arms(tokens, k, n, size, name, what):
    scatter = what == "scatter"
    x, weight = random(tokens, k // size), random(n, k // size) / k**0.5
    whole, part = torch.zeros_like(random(tokens, n)), random(tokens // size, n)

    def reduce(partial, block):
        if not scatter:
            distributed.all_reduce(partial)
            return partial
        distributed.reduce_scatter_tensor(block, partial)
        return block

    ours = {"scatter": htd.matmul_reduce_scatter, "all": htd.matmul_all_reduce,
            "tree": lambda x, mat2: htd.row_parallel_linear(x, mat2.t())}[what]
    arms = {"ours": lambda: ours(x, weight.t()),
            "cublas": lambda: reduce(torch.mm(x, weight.t()), torch.empty_like(part)),
            "hgemm": lambda: reduce(ht.mm(x, weight.t()), torch.empty_like(part)),
            "product_cublas": lambda: torch.mm(x, weight.t()), "product_hgemm": lambda: ht.mm(x, weight.t()),
            "transfer": lambda: reduce(whole, part)}
    if scatter:
        arms["fused"] = lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(x, weight.t(), "sum", 0, name)
    return arms


def cases(size, name):
    for what in ("gather", "scatter", "all", "tree"):
        for wide, long in LAYERS:
            k, n = (wide, long) if what == "gather" else (long, wide)
            for tokens in TOKENS:
                make = gather_arms if what == "gather" else reduce_arms
                more = () if what == "gather" else (what,)
                yield what, tokens, k, n, lambda: make(tokens, k, n, size, name, *more)


def graph_of(run, launches):
    """Captured while NCCL's own thread may query events."""
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(launches):
            run()
    return graph


def time_us(graph, launches):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / launches


def check(arms):
    expected = arms["cublas"]().float()
    for name in ("ours", "hgemm", "fused"):
        if name in arms:
            error = ((arms[name]().float() - expected).norm() / expected.norm()).item()
            if not error < 0.006:  # two roundings to bf16 or one, here and there
                raise AssertionError(f"{name} differs by {error:.3g} from a collective and torch.mm")


def measure(arms, launches, rounds):
    """Medians of the slower rank, and of rounds' ratios by ours."""
    check(arms)
    graphs = {arm: graph_of(run, launches) for arm, run in arms.items()}
    times = torch.empty(rounds, len(arms), dtype=torch.float64, device="cuda")
    for i in range(-1, rounds):  # the first does not count
        distributed.barrier()
        order = [*enumerate(graphs.values())]
        for j, graph in (order if i % 2 == 0 else reversed(order)):
            us = time_us(graph, launches)
            if i >= 0:
                times[i, j] = us
    distributed.all_reduce(times, op=distributed.ReduceOp.MAX)
    columns = dict(zip(arms, times.t().tolist()))
    return {arm: statistics.median(t) for arm, t in columns.items()}, {
        arm: statistics.median(x / y for x, y in zip(t, columns["ours"])) for arm, t in columns.items()}


def describe(revision):
    device = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True).stdout.strip()
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    return (f"# {distributed.get_world_size()} x {device}, CUDA {torch.version.cuda}, PyTorch {torch.__version__}, "
            f"NCCL {nccl}, {time.strftime('%Y-%m-%d')}, revision {revision}; bf16, CUDA graphs\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", default="/dev/null")
    parser.add_argument("--revision", default="unknown")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", default=",".join(map(str, TOKENS)))
    arguments = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    rank, size = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(rank)
    first = rank == 0
    out = open(arguments.csv if first else os.devnull, "w")
    out.write(describe(arguments.revision))
    out.write("op,tokens,k,n,ranks,ours,cublas,hgemm,product,transfer,fused,ratio,limit\n")
    wanted = {int(tokens) for tokens in arguments.tokens.split(",")}
    for what, tokens, k, n, make in cases(size, distributed.group.WORLD.group_name):
        if tokens not in wanted:
            continue
        launches = max(2, min(20, int(2e3 / (60 + 2e-6 * tokens * k * n / size / 600))))
        us, ratios = measure(make(), launches, arguments.rounds)
        sequence = min(SEQUENCES, key=us.get)
        product = min(us["product_cublas"], us["product_hgemm"])
        limit = us[sequence] / max(product, us["transfer"])
        fused = f"{us['fused']:.1f}" if "fused" in us else ""
        line = (f"{what},{tokens},{k},{n},{size},{us['ours']:.1f},{us['cublas']:.1f},{us['hgemm']:.1f},{product:.1f},"
                f"{us['transfer']:.1f},{fused},{ratios[sequence]:.3f},{limit:.3f}\n")
        out.write(line)
        out.flush()
        if first:
            print(f"{what:8s}{tokens:5d} of {k}x{n}: ours {us['ours']:8.1f} us, sequence {us[sequence]:8.1f} "
                  f"({sequence}), product {product:8.1f}, transfer {us['transfer']:7.1f}, fused {fused or '-':>8s}; "
                  f"ratio {ratios[sequence]:.3f} of {limit:.3f}", flush=True)
    distributed.barrier()
    distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
