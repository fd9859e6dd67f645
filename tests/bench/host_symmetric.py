"""Times hsyrk and bsyrk on the CPU beside hgemm, and beside x @ x.T of PyTorch in bf16, in one process and in turn.

    python3 tests/bench/host_symmetric.py --threads 1 build/libhgemm.so > host_symmetric.csv

A row of the table has medians in milliseconds. It needs PyTorch. Both halves of the result are written.
"""

import argparse
import ctypes
import os
import sys

from host_peers import NO_TRANS, ROW_MAJOR, Library, medians

PROBLEMS = ((256, 256), (512, 512), (1024, 1024), (1024, 4096), (2048, 2048), (4096, 1024))
BOTH = 123


def syrk_call(library, x):
    """Of a product, and its result."""
    import torch
    n, k = x.shape
    d = torch.empty(n, n, dtype=x.dtype)
    function = library.functions.hsyrk if x.dtype == torch.float16 else library.functions.bsyrk
    size, pointer, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
    arguments = (library.handle, ROW_MAJOR, BOTH, NO_TRANS, size(n), size(k), number(1), pointer(x.data_ptr()),
                 size(k), number(0), pointer(d.data_ptr()), size(n))
    return lambda operands=(x, d): library.check(function(*arguments)), d  # which must outlive the call


def main():
    top = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    top.add_argument("library")
    top.add_argument("--threads", type=int, default=1)
    top.add_argument("--seconds", type=float, default=5, help="of each row")
    options = top.parse_args()
    if options.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(options.threads)}
    import torch
    torch.set_num_threads(options.threads)
    library = Library(options.library, options.threads)
    print("n,k,type,threads,syrk_ms,gemm_ms,torch_ms,rounds")
    for n, k in PROBLEMS:
        for dtype, name_of_type in ((torch.bfloat16, "bf16"), (torch.float16, "f16")):
            x = torch.randn(n, k).to(dtype)
            calls = {}
            calls["syrk"], d = syrk_call(library, x)
            calls["gemm"], _ = library.call(x, x, True)
            calls["syrk"]()
            torch.testing.assert_close(d.double(), x.double() @ x.double().T, rtol=2**-8, atol=2**-8 * k**0.5)
            assert torch.equal(d, d.T)
            if dtype == torch.bfloat16:  # fp16 takes torch seconds
                calls["torch"] = lambda x=x: x @ x.T
            found, rounds = medians(calls, options.seconds)
            of_torch = f"{found['torch']:.3f}" if "torch" in found else ""
            print(f"{n},{k},{name_of_type},{options.threads},{found['syrk']:.3f},{found['gemm']:.3f},{of_torch},"
                  f"{rounds}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
