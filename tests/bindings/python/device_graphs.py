"""Do graphs that were captured on one stream give right results when they run at the same time? And may a capture begin
with the first product, and a stream have the address of one whose product still runs? Needs a GPU and PyTorch.

    python3 device_graphs.py [--shim libhgemm_cublas.so]

One line for each way to multiply and each case: how many results were wrong, or what failed. cuBLAS is shown as well; the
exit status is 1 if one of libhgemm's ways is wrong. Each runs in a process of its own, for a minute at most."""

import argparse
import ctypes
import os
import subprocess
import sys
from ctypes import byref, c_float, c_uint64, c_void_p

SHAPES = [(512, 8191, 512), (300, 4097, 1024), (64, 16384, 512), (512, 16384, 512)]  # M, K, N
ROUNDS = 20
MODES = {"global": 0, "thread-local": 1, "relaxed": 2}


def check(status):
    if status:
        raise RuntimeError(f"the CUDA driver answered {status}")


def new_stream(cuda, blocking):
    stream = c_void_p()
    check(cuda.cuStreamCreate(byref(stream), 0 if blocking else 1))
    return stream.value


def products(name):
    """The way to multiply: product(a, b, out, stream) puts it on the stream, which is torch's current one as well."""
    import torch

    if name == "hgemm.matmul":
        import hgemm
        return lambda a, b, out, stream: hgemm.matmul(a, b, out, stream=stream)
    if name == "hgemm.torch.mm":
        import hgemm.torch
        return lambda a, b, out, stream: hgemm.torch.mm(a, b, out=out)
    return lambda a, b, out, stream: torch.mm(a, b, out=out)  # cuBLAS, or the shim if it is preloaded


class Graph:
    def __init__(self, cuda, stream, work, mode):
        graph, self.executable, self.cuda = c_void_p(), c_void_p(), cuda
        check(cuda.cuStreamBeginCapture_v2(c_void_p(stream), mode))
        try:
            work()
        finally:
            status = cuda.cuStreamEndCapture(c_void_p(stream), byref(graph))
        check(status)
        check(cuda.cuGraphInstantiateWithFlags(byref(self.executable), graph, c_uint64(0)))
        check(cuda.cuGraphDestroy(graph))

    def launch(self, stream):
        check(self.cuda.cuGraphLaunch(self.executable, c_void_p(stream)))


def operands(torch, shape):
    m, k, n = shape
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    return a, b, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def count_wrong_graphs(name, shape):
    """Of two graphs captured on one stream, replayed on two others."""
    import torch

    cuda, multiply = ctypes.CDLL("libcuda.so.1"), products(name)
    sets = [operands(torch, shape) for _ in range(2)]
    stream, (one, two) = torch.cuda.Stream(), (torch.cuda.Stream(), torch.cuda.Stream())
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        multiply(*sets[0], stream.cuda_stream)  # handles and kernels are there
        stream.synchronize()
        graphs = [Graph(cuda, stream.cuda_stream, lambda: multiply(*each, stream.cuda_stream), 2) for each in sets]
    alone = []
    for graph, (a, b, out) in zip(graphs, sets):
        graph.launch(one.cuda_stream)
        torch.cuda.synchronize()
        exact = a.float() @ b.float()
        worst = ((out.float() - exact).abs().max() / exact.abs().max()).item()
        if not worst < 0.01:
            return f"wrong alone ({worst:.1e})"
        alone.append(out.clone())
    wrong = 0
    for _ in range(ROUNDS):
        for _ in range(4):
            graphs[0].launch(one.cuda_stream)
            graphs[1].launch(two.cuda_stream)
        torch.cuda.synchronize()
        wrong += sum(not torch.equal(out, want) for (_, _, out), want in zip(sets, alone))
    return f"{wrong} of {2 * ROUNDS} wrong"


def count_wrong_streams(name):
    """A stream is destroyed while its products, long ones, run; the next one has its address, as a rule."""
    import torch

    cuda, multiply = ctypes.CDLL("libcuda.so.1"), products(name)
    sets = [operands(torch, shape) for shape in ((4096, 8191, 2048), (512, 8191, 512))]
    alone, wrong, same = [], 0, 0
    for each in sets:
        multiply(*each, torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        alone.append(each[2].clone())
    for _ in range(ROUNDS):
        addresses = []
        for each in sets:
            address = new_stream(cuda, False)
            addresses.append(address)
            with torch.cuda.stream(torch.cuda.ExternalStream(address)):
                for _ in range(4):
                    multiply(*each, address)
            check(cuda.cuStreamDestroy_v2(c_void_p(address)))
        torch.cuda.synchronize()
        same += addresses[0] == addresses[1]
        wrong += sum(not torch.equal(out, want) for (_, _, out), want in zip(sets, alone))
    return f"{wrong} of {2 * ROUNDS} wrong, {same} of {ROUNDS} times the same address"


def begin_with_the_first_product(name, mode):
    """On a stream that blocks."""
    import torch

    cuda, multiply = ctypes.CDLL("libcuda.so.1"), products(name)
    a, b, out = operands(torch, (300, 4097, 1024))
    torch.cuda.synchronize()
    address = new_stream(cuda, True)
    with torch.cuda.stream(torch.cuda.ExternalStream(address)):
        graph = Graph(cuda, address, lambda: multiply(a, b, out, address), MODES[mode])
    graph.launch(address)
    torch.cuda.synchronize()
    exact = a.float() @ b.float()
    return "right" if ((out.float() - exact).abs().max() / exact.abs().max()).item() < 0.01 else "wrong"


def begin_with_cublas(mode):
    """The same in a program that calls cuBLAS itself; the handle ends before the graph is launched."""
    import torch

    cuda = ctypes.CDLL("libcuda.so.1")
    a, b, out = operands(torch, (304, 1024, 4096))
    torch.cuda.synchronize()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "libcublas.so." in line)
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    program = ctypes.CDLL(None)  # the shim's functions stand before cuBLAS's
    address, handle = new_stream(cuda, True), c_void_p()
    one, zero = c_float(1), c_float(0)

    def product():
        status = program.cublasGemmEx(handle, 0, 0, 4096, 304, 1024, byref(one), c_void_p(b.data_ptr()), 14, 4096,
                                      c_void_p(a.data_ptr()), 14, 1024, byref(zero), c_void_p(out.data_ptr()), 14, 4096,
                                      68, -1)
        if status:
            raise RuntimeError(f"cublasGemmEx answered {status}")

    program.cublasCreate_v2(byref(handle))
    program.cublasSetStream_v2(handle, c_void_p(address))
    graph = Graph(cuda, address, product, MODES[mode])
    program.cublasDestroy_v2(handle)
    graph.launch(address)
    torch.cuda.synchronize()
    exact = a.float() @ b.float()
    return "right" if ((out.float() - exact).abs().max() / exact.abs().max()).item() < 0.01 else "wrong"


def run(argument):
    what, name, *rest = argument.split(":")
    if what == "graphs":
        return count_wrong_graphs(name, tuple(map(int, rest[0].split("x"))))
    if what == "streams":
        return count_wrong_streams(name)
    return begin_with_cublas(rest[0]) if name == "cublasGemmEx" else begin_with_the_first_product(name, rest[0])


def in_a_process(argument, preload):
    environment = {**os.environ, "HGEMM_SHIM_LOG": "off", **({"LD_PRELOAD": preload} if preload else {})}
    try:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--run", argument], env=environment,
                              capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "does not end"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shim", help="libhgemm_cublas.so")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(run(options.run))
        return 0
    ways = [(name, name, None) for name in ("hgemm.matmul", "hgemm.torch.mm")] + [("cuBLAS", "torch.mm", None)]
    if options.shim:
        ways.append(("shim", "torch.mm", os.path.abspath(options.shim)))
    failed = 0
    for way, name, preload in ways:
        function = "cublasGemmEx" if name == "torch.mm" else name  # torch makes its handle in no capture
        cases = [f"graphs:{name}:{'x'.join(map(str, shape))}" for shape in SHAPES] + [f"streams:{name}"]
        cases += [f"first:{function}:{mode}" for mode in MODES]
        for case in cases:
            found = in_a_process(case, preload)
            failed += way != "cuBLAS" and not (found == "right" or found.startswith("0 of"))
            print(f"{way:<16}{case.replace(':' + name, '').replace(':' + function, ''):<28}{found}", flush=True)
    print(f"{failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
