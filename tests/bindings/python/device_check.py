#!/usr/bin/env python3
"""Checks hgemm.torch on a GPU: results, batch invariance, CUDA graphs, torch.compile, streams and threads, host cost.

    device_check.py [--seconds S]      needs PyTorch with CUDA, and the package hgemm

Prints one line for each check, and fails if one did.
"""

import argparse
import sys
import threading
import time
import traceback

import torch

import hgemm
import hgemm.torch as ht
from torch.nn import functional

DTYPES = (torch.float16, torch.bfloat16)
SIZES = ((1, 4096, 4096), (7, 513, 129), (64, 128, 8192), (333, 1000, 77), (2048, 1536, 512))
checks = []


def check(function):
    checks.append(function)
    return function


def random(*shape, dtype=torch.bfloat16, grad=False):
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_(grad)


def require_close(result, exact, k, scale):
    """exact: fp64. scale: |A| |B|, by which fp32 sums of k products may differ."""
    unit = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-23}[result.dtype]
    excess = (result.double() - exact).abs() - unit * exact.abs() - k * 2.0**-24 * scale - 1e-6
    if not bool((excess <= 0).all()):
        raise AssertionError(f"an element is {excess.max().item():.3g} over its bound")


@check
def results():
    """mm, addmm, linear, bmm and baddbmm against fp64, in several layouts."""
    count = 0
    for dtype in DTYPES:
        for m, n, k in SIZES:
            for layout in range(4):
                a = random(k, m, dtype=dtype).t() if layout & 1 else random(m, k, dtype=dtype)
                b = random(n, k, dtype=dtype).t() if layout & 2 else random(k, n, dtype=dtype)
                c, bias = random(m, n, dtype=dtype), random(n, dtype=dtype)
                exact, scale = a.double() @ b.double(), a.double().abs() @ b.double().abs()
                require_close(ht.mm(a, b), exact, k, scale)
                require_close(ht.mm(a, b, torch.float32), exact, k, scale)
                require_close(ht.linear(a, b.t(), bias), exact + bias.double(), k, scale + bias.double().abs())
                require_close(ht.addmm(c, a, b, alpha=2, beta=-1), 2 * exact - c.double(), k,
                              2 * scale + c.double().abs())
                require_close(ht.bmm(a[None], b[None])[0], exact, k, scale)
                require_close(ht.baddbmm(c[None], a[None], b[None])[0], exact + c.double(), k, scale + c.double().abs())
                count += 6
    return f"{count} products"


@check
def activations():
    x, w, b = random(100, 256), random(64, 256), random(64)
    exact = functional.linear(x.double(), w.double(), b.double())
    for name, function in (("relu", functional.relu), ("gelu_erf", functional.gelu), ("silu", functional.silu),
                           ("gelu_tanh", lambda t: functional.gelu(t, approximate="tanh"))):
        torch.testing.assert_close(ht.linear(x, w, b, name).double(), function(exact), rtol=2.0**-7, atol=2.0**-9)
    return "4 activations"


@check
def gradients():
    leaves = random(50, 64, grad=True), random(32, 64, grad=True), random(32, grad=True)
    grads = []
    for linear in (lambda x, w, b: ht.linear(x, w, b, "silu"),
                   lambda x, w, b: functional.silu(functional.linear(x, w, b))):
        grads.append(torch.autograd.grad(linear(*leaves).float().square().sum(), leaves))
    for ours, theirs in zip(*grads):
        torch.testing.assert_close(ours, theirs, rtol=0.05, atol=0.05 * theirs.abs().max().item())
    return "linear with an activation"


@check
def groups():
    ends = torch.tensor([0, 100, 100, 300], dtype=torch.int32, device="cuda")
    for dtype in DTYPES:
        a, b = random(300, 128, dtype=dtype), random(4, 128, 96, dtype=dtype)
        for weights in (b, b.transpose(1, 2).contiguous().transpose(1, 2)):
            x, y = a.double(), b.double()
            exact = torch.cat([x[:100] @ y[1], x[100:] @ y[3]])
            scale = torch.cat([x[:100].abs() @ y[1].abs(), x[100:].abs() @ y[3].abs()])
            require_close(ht.grouped_mm(a, weights, offs=ends), exact, 128, scale)
    return "contiguous groups, two of them empty"


@check
def groups_of_k():
    """Of all layouts, and as the gradient of weights."""
    sizes = [0, 100, 0, 150]
    ends = torch.tensor(sizes, device="cuda").cumsum(0).int()
    for dtype in DTYPES:
        a, b = random(300, 136, dtype=dtype), random(300, 92, dtype=dtype)
        pairs = [*zip(a.double()[:250].split(sizes), b.double()[:250].split(sizes))]
        exact = torch.stack([x.t() @ y for x, y in pairs])
        scale = torch.stack([x.t().abs() @ y.abs() for x, y in pairs])
        for left in (a.t(), a.t().contiguous()):
            for right in (b, b.t().contiguous().t()):
                require_close(ht.grouped_mm(left, right, offs=ends), exact, 150, scale)
        weights = random(4, 136, 92, dtype=dtype, grad=True)
        grad, = torch.autograd.grad(ht.grouped_mm(a, weights, offs=ends), weights, b)
        require_close(grad, exact, 150, scale)
    return "groups of K, two of them empty, and K of no group"


@check
def symmetric():
    """syrk and syrkx of small and large matrices, of all strides: symmetric bit for bit, and close to fp64."""
    for dtype in DTYPES:
        for n, k in ((1, 1), (64, 40), (300, 77), (1000, 512), (3000, 520)):
            for a in (random(n, k, dtype=dtype), random(k, n, dtype=dtype).t()):
                c = random(n, n, dtype=dtype)
                c = c.triu() + c.triu(1).mT
                exact, scale = a.double() @ a.double().mT, a.double().abs() @ a.double().abs().mT
                for d, want in ((ht.syrk(a), exact), (ht.syrk(a, out_dtype=torch.float32), exact),
                                (ht.syrk(a, alpha=2, beta=-1, c=c), 2 * exact - c.double()),
                                (ht.syrkx(a, a.clone()), exact)):
                    if not torch.equal(d, d.mT):
                        raise AssertionError(f"{n} x {k}, {dtype}: it is not symmetric")
                    require_close(d, want, k, 2 * scale + c.double().abs())
        x = random(3, 700, 64, dtype=dtype)
        require_close(ht.syrk(x), x.double() @ x.double().mT, 64, x.double().abs() @ x.double().abs().mT)
    return "5 sizes, 4 products of each, and a batch"


@check
def newton_schulz():
    """As torch.optim.Muon does it, but for rounding; and its replay in a graph gives the same bits."""
    from torch.optim._muon import _zeropower_via_newtonschulz
    for shape in ((64, 64), (300, 700), (700, 300), (2048, 1024)):
        x = random(*shape)
        want, found = _zeropower_via_newtonschulz(x, (3.4445, -4.7750, 2.0315), 5, 1e-7), ht.newton_schulz(x)
        torch.testing.assert_close(found, want, rtol=0, atol=0.03)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            again = ht.newton_schulz(x)
        graph.replay()
        if not torch.equal(found, again):
            raise AssertionError(f"{shape}: a graph gives other bits")
    return "4 shapes"


@check
def tree():
    """Any number of rows, and ranks that hold parts of K, give the same bits."""
    for dtype in DTYPES:
        a, b = random(300, 8192, dtype=dtype), random(8192, 520, dtype=dtype)
        whole = ht.tree_mm(a, b, out_dtype=torch.float32)
        require_close(whole, a.double() @ b.double(), 8192, a.double().abs() @ b.double().abs())
        for m in (1, 2, 5, 16, 17, 64, 129, 299):
            if not torch.equal(ht.tree_mm(a[:m], b, out_dtype=torch.float32), whole[:m]):
                raise AssertionError(f"M = {m}, {dtype}: other bits than with M = 300")
        for ranks in (2, 4, 8):
            parts = [ht.tree_mm(x, y, out_dtype=torch.float32)
                     for x, y in zip(a.chunk(ranks, 1), b.chunk(ranks, 0))]
            while len(parts) > 1:
                parts = [x + y for x, y in zip(parts[::2], parts[1::2])]
            if not torch.equal(parts[0], whole):
                raise AssertionError(f"{ranks} ranks, {dtype}: other bits than one")
    return "8 row counts; 2, 4 and 8 parts of K"


@check
def batch_invariance():
    """The bits of a row for each M, by hgemm.torch and by torch's own operators."""
    rows = 0
    for dtype in DTYPES:
        a = random(512, 4096, dtype=dtype)
        for weight in (random(1024, 4096, dtype=dtype), random(1000, 4096, dtype=dtype)):
            with ht.batch_invariant(strict=True):
                for product in (lambda x: ht.mm(x, weight.t()), lambda x: x @ weight.t(),
                                lambda x: functional.linear(x, weight)):
                    whole = product(a)
                    for m in (1, 2, 3, 7, 16, 17, 64, 100, 128, 129, 255, 511):
                        if not torch.equal(product(a[:m]), whole[:m]):
                            raise AssertionError(f"M = {m}, {dtype}: other bits than with M = 512")
                        rows += m
    return f"{rows} rows"


@check
def overrides():
    a, b = random(64, 128), random(128, 256)
    before = ht.counts().get("served", 0)
    ht.enable(strict=True)
    try:
        a @ b, torch.addmm(b[0], a, b), torch.nn.Linear(128, 8, device="cuda").bfloat16()(a)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            torch.nn.Linear(128, 8, device="cuda")(a.float())
    finally:
        ht.disable()
    served = ht.counts()["served"] - before
    if served != 4:
        raise AssertionError(f"{served} of 4 products were served")
    return "4 products of torch served"


@check
def graphs():
    """Two graphs that run side by side, captured on a stream without a handle, replayed on others with new data."""
    a, b = random(300, 4096), random(4096, 200)
    captured = []
    for _ in range(2):
        x = a.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = ht.linear(ht.mm(x, b), b[:64, :200])
        captured.append((graph, x, y))
    for round in range(20):
        data = random(300, 4096)
        for _, x, _ in captured:
            x.copy_(data)
        torch.cuda.synchronize()
        for graph, *_ in captured:
            with torch.cuda.stream(torch.cuda.Stream()):
                graph.replay()
        torch.cuda.synchronize()
        want = ht.linear(ht.mm(data, b), b[:64, :200])
        if not all(torch.equal(y, want) for _, _, y in captured):
            raise AssertionError(f"round {round}: a graph gave other bits than the same products without one")
    return "40 replays"


@check
def compiled():
    w, b, v = random(64, 128), random(64), random(64, 32)

    def model(x):
        return ht.mm(ht.linear(x, w, b, "gelu_tanh"), v, out_dtype=torch.float32).relu()

    for options in ({}, {"mode": "reduce-overhead"}, {"dynamic": True}):
        function = torch.compile(model, fullgraph=True, **options)
        for rows in (8, 24, 8):
            x = random(rows, 128)
            for _ in range(3):
                torch.testing.assert_close(function(x).clone(), model(x), rtol=1e-3, atol=1e-3)
    return "3 modes"


@check
def threads_and_streams():
    a, b = random(257, 2048), random(2048, 129)
    want, wrong = ht.mm(a, b), []
    torch.cuda.synchronize()

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                if not torch.equal(ht.mm(a, b), want):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise AssertionError(f"{len(wrong)} of 300 products differ")
    return "300 products of 6 threads"


@check
def two_devices():
    if torch.cuda.device_count() < 2:
        return "left out: there is one GPU"
    a, b = random(64, 128), random(128, 64)
    other = ht.mm(a.to("cuda:1"), b.to("cuda:1"))  # cuda:0 is the current one
    if other.device.index != 1 or not torch.equal(other.cpu(), ht.mm(a, b).cpu()):
        raise AssertionError("another result on cuda:1")
    return "cuda:1 while cuda:0 is current"


def host_cost(seconds):
    """Microseconds of the CPU for one small product, hgemm and torch in turn: the least of the rounds."""
    a, b, weight, bias = random(16, 64), random(64, 64), random(64, 64), random(64)
    cases = {"torch.mm": lambda: torch.mm(a, b), "hgemm.torch.mm": lambda: ht.mm(a, b),
             "functional.linear": lambda: functional.linear(a, weight, bias),
             "hgemm.torch.linear": lambda: ht.linear(a, weight, bias)}
    for label, guard in (("no_grad", torch.no_grad), ("inference_mode", torch.inference_mode)):
        with guard():
            best = dict.fromkeys(cases, float("inf"))
            end = time.monotonic() + seconds / 2
            while time.monotonic() < end:
                for name, product in cases.items():
                    torch.cuda.synchronize()
                    start = time.perf_counter()
                    for _ in range(200):
                        product()
                    best[name] = min(best[name], (time.perf_counter() - start) / 200)
            ht.enable()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                torch.mm(a, b)
            overridden = (time.perf_counter() - start) / 200
            ht.disable()
            times = ", ".join(f"{name} {value * 1e6:.1f}" for name, value in best.items())
            print(f"host cost in us, {label}: {times}, torch.mm overridden {overridden * 1e6:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="for the host cost")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {hgemm.build_info()}")
    failed = 0
    for function in checks:
        try:
            print(f"{function.__name__}: passed, {function()}", flush=True)
        except Exception:
            failed += 1
            print(f"{function.__name__}: FAILED\n{traceback.format_exc()}", flush=True)
    host_cost(arguments.seconds)
    print(f"{len(checks) - failed} of {len(checks)} checks passed; torch's operators: {ht.counts()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
