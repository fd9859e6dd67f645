#!/usr/bin/env python3
"""PyTorch under the shim: the same half-precision work in a process without it and in one with it.

    python3 pytorch_client.py --shim /path/to/libhgemm_cublas.so

runs both. Each case compares its results with those of the process without the shim and asks the shim how
many products it served; the exit status is 0 if all results agree and all products were served that should
be."""

import argparse
import os
import subprocess
import sys
import tempfile
import threading

import torch
import torch.nn.functional as F

from shim_control import Shim, environment

# Differences are relative to the largest element of a result. One product is rounded once by either library.
ONE_PRODUCT, CHAIN = 2, 8


def random(seed, *shape, dtype, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*shape, generator=generator)).to(dtype).cuda()


def matmul(dtype):
    for m, n, k in [(512, 512, 512), (333, 257, 129), (1, 4096, 1024), (64, 8, 8192)]:
        yield random(1, m, k, dtype=dtype) @ random(2, k, n, dtype=dtype)


def matmul_transposed(dtype):
    a, b = random(1, 192, 320, dtype=dtype), random(2, 160, 192, dtype=dtype)
    yield a.T @ b.T
    yield b @ a
    yield random(3, 96, 320, dtype=dtype) @ a.T


def matmul_views(dtype):
    a = random(1, 300, 301, dtype=dtype)
    yield a[1:200, 1:151] @ a[3:153, 2:130]


def linear(dtype):
    yield F.linear(random(1, 128, 1024, dtype=dtype), random(2, 512, 1024, dtype=dtype))
    yield F.linear(random(1, 4, 33, 1024, dtype=dtype), random(2, 512, 1024, dtype=dtype))


def linear_with_bias(dtype):
    weight, bias = random(2, 512, 1024, dtype=dtype), random(3, 512, dtype=dtype)
    for tokens in [128, 33, 2]:
        yield F.linear(random(1, tokens, 1024, dtype=dtype), weight, bias)


def bmm(dtype):
    a, b = random(1, 12, 96, 64, dtype=dtype), random(2, 12, 64, 80, dtype=dtype)
    yield torch.bmm(a, b)
    yield torch.bmm(a, random(3, 12, 80, 64, dtype=dtype).transpose(1, 2))
    yield torch.baddbmm(random(4, 12, 96, 80, dtype=dtype), a, b, beta=0.5, alpha=2)


def addmm(dtype):
    c = random(3, 200, 136, dtype=dtype)
    yield torch.addmm(c, random(1, 200, 264, dtype=dtype), random(2, 264, 136, dtype=dtype), beta=0.5, alpha=2)


def addmm_activation(dtype):
    a, b = random(1, 200, 264, dtype=dtype), random(2, 264, 136, dtype=dtype)
    bias = random(3, 136, dtype=dtype)
    for use_gelu in [False, True]:
        yield torch._addmm_activation(bias, a, b, use_gelu=use_gelu)


def autocast(dtype):
    layer_input = random(1, 64, 256, dtype=torch.float32)
    weight, bias = random(2, 512, 256, dtype=torch.float32), random(3, 512, dtype=torch.float32)
    with torch.autocast("cuda", dtype=dtype):
        yield F.linear(layer_input, weight, bias)
        yield layer_input @ weight.T


def backward(dtype):
    layer = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(approximate="tanh"),
                                torch.nn.Linear(512, 128)).to("cuda", dtype)
    with torch.no_grad():
        for seed, parameter in enumerate(layer.parameters()):
            parameter.copy_(random(seed, *parameter.shape, dtype=dtype, scale=0.05))
    layer_input = random(9, 96, 256, dtype=dtype).requires_grad_()
    (layer(layer_input).float() ** 2).sum().backward()
    yield layer_input.grad
    for parameter in layer.parameters():
        yield parameter.grad


def two_streams(dtype):
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    results = []
    weight, bias = random(2, 1024, 1024, dtype=dtype, scale=0.03), random(3, 1024, dtype=dtype)
    inputs = [random(seed, 256, 1024, dtype=dtype) for seed in (4, 5)]
    torch.cuda.synchronize()
    for step in range(4):
        for stream, value in zip(streams, inputs):
            with torch.cuda.stream(stream):
                results.append(F.linear(value, weight, bias) + value @ weight)
    torch.cuda.synchronize()
    yield from results


def threads(dtype):
    weight = random(2, 512, 512, dtype=dtype)
    inputs = [random(seed, 64, 512, dtype=dtype) for seed in range(4)]
    results = [None] * len(inputs)

    def work(index):
        for _ in range(8):
            results[index] = inputs[index] @ weight
        torch.cuda.synchronize()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    yield from results


def cuda_graph(dtype):
    weight, bias = random(2, 512, 512, dtype=dtype, scale=0.05), random(3, 512, dtype=dtype)
    static = random(1, 32, 512, dtype=dtype)

    def work():
        return F.linear(F.linear(static, weight, bias), weight) @ weight

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    for seed in (7, 8):
        static.copy_(random(seed, 32, 512, dtype=dtype))
        graph.replay()
        yield result.clone()


def single_precision(_):
    a = random(1, 100, 200, dtype=torch.float32)
    yield a @ a.T


def half_accumulation(dtype):
    torch.backends.cuda.matmul.allow_fp16_accumulation = True
    yield random(1, 64, 32, dtype=dtype) @ random(2, 32, 48, dtype=dtype)
    torch.backends.cuda.matmul.allow_fp16_accumulation = False


# Case, products at least served (None: none is), tolerance in units of the type's epsilon.
CASES = [(matmul, 4, ONE_PRODUCT), (matmul_transposed, 3, ONE_PRODUCT), (matmul_views, 1, ONE_PRODUCT),
         (linear, 2, ONE_PRODUCT), (linear_with_bias, 3, ONE_PRODUCT), (bmm, 3, ONE_PRODUCT),
         (addmm, 1, ONE_PRODUCT), (addmm_activation, 2, CHAIN), (autocast, 2, ONE_PRODUCT), (backward, 5, CHAIN),
         (two_streams, 16, CHAIN), (threads, 32, ONE_PRODUCT), (cuda_graph, 6, CHAIN),
         (single_precision, None, ONE_PRODUCT)]


def cases():
    """Name, function of no arguments, least count of served products, tolerance."""
    for dtype in (torch.float16, torch.bfloat16):
        epsilon = torch.finfo(dtype).eps
        for case, least, tolerance in CASES:
            yield f"{case.__name__} {str(dtype)[6:]}", lambda: list(case(dtype)), least, tolerance * epsilon
    yield ("half_accumulation float16", lambda: list(half_accumulation(torch.float16)), None,
           32 * torch.finfo(torch.float16).eps)


def record(path):
    results = {}
    for name, run, _, _ in cases():
        results[name] = [tensor.detach().cpu() for tensor in run()]
    torch.save(results, path)


def difference(ours, theirs):
    ours, theirs = ours.detach().cpu().double(), theirs.double()
    if ours.shape != theirs.shape or not torch.isfinite(ours).all():
        return float("inf")
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def check(path):
    shim = Shim()
    if not shim.loaded:
        sys.exit("the shim is not loaded in this process")
    expected = torch.load(path)
    failed = 0
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
    print(f"{'case':<36}{'served':>8}{'passed on':>11}{'difference':>13}{'allowed':>10}")
    for name, run, least, tolerance in cases():
        before = shim.counts()
        results = run()
        torch.cuda.synchronize()
        served, passed_on = (now - then for now, then in zip(shim.counts(), before))
        worst = max(difference(o, t) for o, t in zip(results, expected[name], strict=True))
        counted = served == 0 if least is None else served >= least and passed_on == 0
        good = counted and worst <= tolerance
        failed += not good
        print(f"{name:<36}{served:>8}{passed_on:>11}{worst:>13.2e}{tolerance:>10.1e}  {'ok' if good else 'FAILED'}")
    total = sum(1 for _ in cases())
    print(f"{total - failed} passed, {failed} failed", flush=True)
    return failed


def run_both(shim, mode):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.pt")
        this = [sys.executable, os.path.abspath(__file__)]
        subprocess.run([*this, "--record", path], check=True)
        under = {"HGEMM_SHIM_LOG": "summary", **environment(shim), "HGEMM_SHIM": mode}
        return subprocess.run([*this, "--check", path], env=under).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shim", help="libhgemm_cublas.so: run without and with it")
    parser.add_argument("--mode", default="on", choices=["on", "verify"], help="HGEMM_SHIM of the second run")
    parser.add_argument("--record", metavar="FILE", help="run in this process and write the results")
    parser.add_argument("--check", metavar="FILE", help="run in this process and compare")
    options = parser.parse_args()
    # Partial sums in half precision would make the other library's results the less precise ones.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    if options.record:
        record(options.record)
    elif options.check:
        sys.exit(min(check(options.check), 1))
    elif options.shim:
        sys.exit(run_both(options.shim, options.mode))
    else:
        parser.error("one of --shim, --record and --check is needed")


if __name__ == "__main__":
    main()
