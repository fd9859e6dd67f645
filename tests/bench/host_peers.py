"""Times GEMMs on the CPU by several builds of libhgemm.so and by PyTorch, all in one process and in turn.

    python3 tests/bench/host_peers.py --threads 1 old=/path/to/libhgemm.so new=build/libhgemm.so > host_peers.csv

A row of the table has medians in milliseconds. It needs PyTorch, whose bf16 products are oneDNN's.
"""

import argparse
import ctypes
import os
import statistics
import sys
import time

PROBLEMS = ((1, 4096, 4096, "nt"), (16, 4096, 4096, "nt"), (256, 256, 256, "nn"), (1024, 1024, 1024, "nn"),
            (2048, 2048, 2048, "nn"))
ROW_MAJOR, NO_TRANS, TRANS, HOST = 101, 111, 112, -1


class Library:
    def __init__(self, path, threads):
        self.functions = ctypes.CDLL(path)
        self.functions.hgemm_last_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        self.check(self.functions.hgemm_create_on(ctypes.byref(self.handle), HOST))
        self.check(self.functions.hgemm_set_sm_count(self.handle, threads))

    def check(self, status):
        if status:
            raise RuntimeError(self.functions.hgemm_last_error().decode())

    def call(self, a, b, transposed):
        """Of a product, and its result."""
        import torch
        (m, k), n = a.shape, b.shape[0 if transposed else 1]
        d = torch.empty(m, n, dtype=a.dtype)
        function = self.functions.hgemm if a.dtype == torch.float16 else self.functions.bgemm
        size, pointer, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
        arguments = (self.handle, ROW_MAJOR, NO_TRANS, TRANS if transposed else NO_TRANS, size(m), size(n), size(k),
                     number(1), pointer(a.data_ptr()), size(k), pointer(b.data_ptr()), size(k if transposed else n),
                     number(0), pointer(d.data_ptr()), size(n))
        return lambda operands=(a, b, d): self.check(function(*arguments)), d  # which must outlive the call


def torch_call(a, b, transposed):
    import torch
    if transposed:
        return lambda: torch.nn.functional.linear(a, b)
    d = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype)
    return lambda: torch.mm(a, b, out=d)


def medians(calls, seconds):
    """Milliseconds by name, and rounds. Who is first changes from round to round."""
    times = {name: [] for name in calls}
    names = list(calls)
    for call in calls.values():
        call()
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end or rounds < 7:
        for name in names:
            begin = time.perf_counter()
            calls[name]()
            times[name].append(time.perf_counter() - begin)
        names.append(names.pop(0))
        rounds += 1
    return {name: 1e3 * statistics.median(found) for name, found in times.items()}, rounds


def main():
    top = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    top.add_argument("libraries", nargs="+", metavar="name=path")
    top.add_argument("--threads", type=int, default=1)
    top.add_argument("--seconds", type=float, default=7, help="of each row")
    options = top.parse_args()
    if options.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "OMP_NUM_THREADS": str(options.threads),
                   "OPENBLAS_NUM_THREADS": str(options.threads)}
    import torch
    torch.set_num_threads(options.threads)
    libraries = {name: Library(path, options.threads)
                 for name, path in (entry.split("=", 1) for entry in options.libraries)}
    print("product,type,form,threads," + ",".join(f"{name}_ms" for name in libraries) + ",torch_ms,rounds")
    for m, n, k, form in PROBLEMS:
        for dtype, name_of_type in ((torch.bfloat16, "bf16"), (torch.float16, "f16")):
            transposed = form == "nt"
            a, b = torch.randn(m, k).to(dtype), torch.randn(*((n, k) if transposed else (k, n))).to(dtype)
            right = a.double() @ (b.t() if transposed else b).double()
            calls = {}
            for name, library in libraries.items():
                calls[name], d = library.call(a, b, transposed)
                calls[name]()
                torch.testing.assert_close(d.double(), right, rtol=2**-8, atol=2**-8 * k**0.5)
            if dtype == torch.bfloat16 or m <= 16:  # fp16 takes torch seconds
                calls["torch"] = torch_call(a, b, transposed)
            found, rounds = medians(calls, options.seconds)
            times = ",".join(f"{found[name]:.3f}" for name in libraries)
            print(f"{m}x{n}x{k},{name_of_type},{form},{options.threads},{times},"
                  f"{found['torch']:.3f},{rounds}" if "torch" in found else
                  f"{m}x{n}x{k},{name_of_type},{form},{options.threads},{times},,{rounds}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
