#!/usr/bin/env python3
"""Times hgemm_grouped_ex beside PyTorch's grouped product, cublasGemmGroupedBatchedEx and a product a group.

    grouped.py libhgemm.so.1 [--csv FILE] [--kernels NAME,...] [--layer NAME] [--rows N,...]

Layers of mixtures of experts, bf16, with tokens that choose their experts at random: `rows` rows in all, groups of
as many as happen to come. Medians of CUDA graphs over operands that are not in a cache; all take turns. cuBLAS
and the product a group are told the groups' sizes on the host, the others read them on the device. Needs PyTorch.
"""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import time

import torch

# Name: experts, n, k.
LAYERS = {
    "mixtral-up": (8, 28672, 4096),
    "mixtral-down": (8, 4096, 14336),
    "qwen3-up": (128, 1536, 2048),
    "qwen3-down": (128, 2048, 768),
    "deepseek-up": (32, 4096, 7168),
    "deepseek-down": (32, 7168, 2048),
}
ROWS = (16, 64, 256, 1024, 4096, 16384, 65536)
BF16, TRANS, NO_TRANS, CONTIGUOUS, MASKED = 2, 112, 111, 1, 2


class GroupedArgs(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("grouping", ctypes.c_int), ("transb", ctypes.c_int),
                ("type_ab", ctypes.c_int), ("type_d", ctypes.c_int), ("group_count", ctypes.c_int64),
                ("m", ctypes.c_int64), ("n", ctypes.c_int64), ("k", ctypes.c_int64),
                ("alpha", ctypes.c_float), ("beta", ctypes.c_float),
                ("a", ctypes.c_void_p), ("lda", ctypes.c_int64), ("stride_a", ctypes.c_int64),
                ("b", ctypes.c_void_p), ("ldb", ctypes.c_int64), ("stride_b", ctypes.c_int64),
                ("d", ctypes.c_void_p), ("ldd", ctypes.c_int64), ("stride_d", ctypes.c_int64),
                ("offsets", ctypes.c_void_p), ("counts", ctypes.c_void_p), ("problems", ctypes.c_void_p),
                ("ends", ctypes.c_void_p), ("ends_i32", ctypes.c_void_p), ("offsets_i32", ctypes.c_void_p),
                ("counts_i32", ctypes.c_void_p)]


class Hgemm:
    def __init__(self, path, kernel=""):
        self.lib = ctypes.CDLL(path)
        self.lib.hgemm_last_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        os.environ["HGEMM_KERNEL"] = kernel
        if not kernel:
            del os.environ["HGEMM_KERNEL"]
        self.require(self.lib.hgemm_create(ctypes.byref(self.handle)))

    def require(self, status):
        if status != 0:
            raise RuntimeError(self.lib.hgemm_last_error().decode())

    def multiply(self, grouping, a, b, d, sizes, transb):
        """a: rows x k or groups x rows x k; b: groups x n x k, or groups x k x n."""
        args = GroupedArgs()
        args.size = ctypes.sizeof(args)
        args.grouping, args.transb, args.type_ab, args.type_d = grouping, transb, BF16, BF16
        args.group_count, args.m, args.n, args.k = b.shape[0], a.shape[-2], d.shape[-1], a.shape[-1]
        args.alpha, args.beta = 1.0, 0.0
        args.a, args.lda = a.data_ptr(), a.stride(-2)
        args.b, args.ldb, args.stride_b = b.data_ptr(), b.stride(-2), b.stride(0)
        args.d, args.ldd = d.data_ptr(), d.stride(-2)
        if grouping == MASKED:
            args.stride_a, args.stride_d, args.counts = a.stride(0), d.stride(0), sizes.data_ptr()
        else:
            args.offsets = sizes.data_ptr()
        self.require(self.lib.hgemm_set_stream(self.handle,
                                               ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))
        self.require(self.lib.hgemm_grouped_ex(self.handle, ctypes.byref(args)))


class CublasGrouped:
    """cublasGemmGroupedBatchedEx: each group of one product."""

    def __init__(self):
        names = ["libcublas.so.13", "libcublas.so.12"]
        self.lib = next(ctypes.CDLL(n) for n in names if self.loads(n))
        self.handle = ctypes.c_void_p()
        assert self.lib.cublasCreate_v2(ctypes.byref(self.handle)) == 0

    @staticmethod
    def loads(name):
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            return False

    def prepare(self, a, b, d, rows):
        """Column-major: transpose(D) = B * transpose(A)."""
        groups = [g for g, r in enumerate(rows) if r > 0]
        count, (_, n, k) = len(groups), b.shape
        ints = lambda values: (ctypes.c_int * count)(*values)
        starts = [sum(rows[:g]) for g in range(len(rows))]

        def pointers(t, at):
            return torch.tensor([t.data_ptr() + 2 * at(g) for g in groups], dtype=torch.int64, device="cuda")

        one, zero = (ctypes.c_float * count)(*[1.0] * count), (ctypes.c_float * count)(*[0.0] * count)
        b_ptr, a_ptr = pointers(b, lambda g: g * n * k), pointers(a, lambda g: starts[g] * k)
        d_ptr = pointers(d, lambda g: starts[g] * n)
        args = [ints([1] * count), ints([0] * count), ints([n] * count), ints([rows[g] for g in groups]),
                ints([k] * count), one, ctypes.c_void_p(b_ptr.data_ptr()), 14, ints([k] * count),
                ctypes.c_void_p(a_ptr.data_ptr()), 14, ints([k] * count), zero, ctypes.c_void_p(d_ptr.data_ptr()),
                14, ints([n] * count), count, ints([1] * count), 68]
        keep = (b_ptr, a_ptr, d_ptr)

        def run():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            assert self.lib.cublasSetStream_v2(self.handle, stream) == 0
            status = self.lib.cublasGemmGroupedBatchedEx(self.handle, *args)
            assert status == 0 and keep, status
        return run


def graph_of(run, launches):
    run(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            run(i)
    return graph.replay


def time_us(replay, launches):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / launches


def in_turn(arms, launches, rounds):
    """Microseconds of each arm in each round. Who is first changes from round to round."""
    replays = {arm: graph_of(run, launches) for arm, run in arms.items()}
    times = {arm: [] for arm in arms}
    for i in range(rounds):
        for arm, replay in (replays.items() if i % 2 == 0 else reversed(replays.items())):
            times[arm].append(time_us(replay, launches))
    return times


class Operands:
    """So many sets of one layer that none is in L2 when its turn comes."""

    def __init__(self, groups, n, k, rows, transposed, seed):
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.randint(groups, (rows,), generator=generator)
        self.rows = torch.bincount(chosen, minlength=groups).tolist()
        self.capacity = max(64, -(-2 * max(self.rows) // 64) * 64)
        bytes_of_set = 2 * (groups * n * k + rows * (n + k))
        self.sets = max(1, min(8, int(3e8 / bytes_of_set)))
        ends = torch.tensor(self.rows).cumsum(0)
        self.offsets = torch.cat([torch.zeros(1, dtype=torch.int64), ends]).cuda()
        self.ends = ends.to(torch.int32).cuda()
        self.counts = torch.tensor(self.rows, dtype=torch.int64).cuda()
        random = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        self.a = [random(rows, k) for _ in range(self.sets)]
        self.b = [random(groups, n, k) if transposed else random(groups, k, n) for _ in range(self.sets)]
        self.d = [torch.empty(rows, n, device="cuda", dtype=torch.bfloat16) for _ in range(self.sets)]
        self.masked = None
        if groups * self.capacity * (n + k) * 2 < 8e9:
            self.masked = [(random(groups, self.capacity, k),
                            torch.empty(groups, self.capacity, n, device="cuda", dtype=torch.bfloat16))
                           for _ in range(self.sets)]

    def error(self):
        """The largest difference from fp32 products, of what bf16 can show."""
        worst, first = 0.0, 0
        for g, count in enumerate(self.rows):
            if count > 0:
                b = self.b[0][g].float()
                right = self.a[0][first:first + count].float() @ (b.T if self.transposed else b)
                worst = max(worst, ((self.d[0][first:first + count].float() - right).abs()
                                    / (right.abs() + 1)).max().item())
            first += count
        return worst


def measure(args, name, rows, transposed, out):
    groups, n, k = LAYERS[name]
    x = Operands(groups, n, k, rows, transposed, rows)
    x.transposed = transposed
    transb = TRANS if transposed else NO_TRANS
    arms = {}

    def contiguous(library):
        return lambda i: library.multiply(CONTIGUOUS, x.a[i % x.sets], x.b[i % x.sets], x.d[i % x.sets],
                                          x.offsets, transb)

    for kernel, library in args.libraries.items():
        arms[kernel] = contiguous(library)
    if x.masked:
        arms["masked"] = lambda i: args.libraries["ours"].multiply(
            MASKED, x.masked[i % x.sets][0], x.b[i % x.sets], x.masked[i % x.sets][1], x.counts, transb)
    if not args.alone:
        arms["torch"] = lambda i: torch._grouped_mm(
            x.a[i % x.sets], x.b[i % x.sets].transpose(1, 2) if transposed else x.b[i % x.sets], offs=x.ends)
        parts = [(g, sum(x.rows[:g]), r) for g, r in enumerate(x.rows) if r > 0]

        def loop(i):
            a, b, d = x.a[i % x.sets], x.b[i % x.sets], x.d[i % x.sets]
            for g, first, r in parts:
                torch.mm(a[first:first + r], b[g].T if transposed else b[g], out=d[first:first + r])
        arms["loop"] = loop
        if transposed and args.cublas:
            runs = [args.cublas.prepare(x.a[s], x.b[s], x.d[s], x.rows) for s in range(x.sets)]
            arms["cublas"] = lambda i: runs[i % x.sets]()
    errors = {}
    for arm in arms:
        if arm in args.libraries:
            x.d[0].fill_(float("nan"))
            arms[arm](0)
            errors[arm] = x.error()
    times = in_turn(arms, x.sets * max(1, 8 // x.sets), args.rounds)
    us = {arm: statistics.median(t) for arm, t in times.items()}
    flops, moved = 2.0 * rows * n * k, 2.0 * (sum(r > 0 for r in x.rows) * n * k + rows * (n + k))
    layout = "tn" if transposed else "tt"
    text = " ".join(f"{arm} {t:.1f}" for arm, t in us.items())
    speed = f"{flops / us['ours'] / 1e6:6.1f} TFLOP/s {moved / us['ours'] / 1e3:6.0f} GB/s"
    print(f"{name:14s} {rows:6d} {layout} {speed}  {text}  error {max(errors.values()):.4f}", flush=True)
    if out:
        for arm, t in us.items():
            out.write(f"{name},{groups},{rows},{n},{k},{layout},{arm},{t:.2f},{errors.get(arm, '')}\n")
        out.flush()
    return us


def summarize(name, all_us):
    """Geometric means of the others' times over ours."""
    ratios = {}
    for us in all_us:
        for arm, t in us.items():
            ratios.setdefault(arm, []).append(t / us["ours"])
    means = (f"{arm} {statistics.geometric_mean(r):.3f}" for arm, r in ratios.items() if arm != "ours")
    print(f"{name}: {len(all_us)} products, time / ours: {' '.join(means)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--csv")
    parser.add_argument("--kernels", default="")
    parser.add_argument("--layer", default=",".join(LAYERS))
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layouts", default="tn,tt", help="tn: B is n x k, tt: k x n")
    parser.add_argument("--alone", action="store_true", help="without the others")
    args = parser.parse_args()
    args.libraries = {"ours": Hgemm(args.library)}
    for kernel in filter(None, args.kernels.split(",")):
        args.libraries[kernel] = Hgemm(args.library, kernel)
    try:
        args.cublas = CublasGrouped()
    except (StopIteration, AttributeError, AssertionError) as why:
        args.cublas = None
        print("no cublasGemmGroupedBatchedEx:", why)
    out = open(args.csv, "w") if args.csv else None
    if out:
        device = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True).stdout.strip()
        out.write(f"# {device}, PyTorch {torch.__version__}, {time.strftime('%Y-%m-%d')}; bf16, microseconds\n"
                  "layer,groups,rows,n,k,layout,arm,us,error\n")
    times = {}
    for name in args.layer.split(","):
        for rows in map(int, args.rows.split(",")):
            for layout in args.layouts.split(","):
                times.setdefault(rows, []).append(measure(args, name, rows, layout == "tn", out))
    for rows, all_us in times.items():
        summarize(f"{rows} rows", all_us)
    summarize("all", sum(times.values(), []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
