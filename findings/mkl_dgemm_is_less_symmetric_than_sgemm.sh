#!/usr/bin/env bash
# oneMKL's product of a matrix and its transpose is symmetric in all bits in fp32, but not in fp64, not even where each
# element is the sum of two products. With mkl 2026.2.0 and numpy 2.4.6 (PyPI) on an AMD EPYC (Zen 4), 2026-11-29.
#   good guess:  elements (i, j) and (j, i) are sums of the same products in the same order, so both types are
#                symmetric; or blocks at the edge add in another order, then in both types
#   seen:        no element differs from its mirror in fp32; in fp64 some do, 24 of 256 in 16 x 16 with K = 2
# PyTorch's builds for x86 use oneMKL: there torch.cov() of float64 is not symmetric, and of float32 it is. numpy
# calls syrk. MKL_CBWR=AVX2 is what this CPU gets, and what others do if it is set. Exit status 1 if anything else is
# seen.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/pip" -q --disable-pip-version-check install mkl==2026.2.0 numpy==2.4.6
MKL_CBWR=AVX2 MKL_NUM_THREADS=1 "$work/bin/python" - <<'PYTHON'
import ctypes
import glob
import sys

import numpy

mkl = ctypes.CDLL(glob.glob(sys.prefix + "/lib/libmkl_rt.so.*")[0])


def differing(x, gemm, scalar):  # of the elements of x * transpose(x), those that are not their mirror's
    n, k = x.shape
    product = numpy.empty((n, n), x.dtype)
    at = lambda array: array.ctypes.data_as(ctypes.c_void_p)
    getattr(mkl, gemm)(101, 111, 112, n, n, k, scalar(1), at(x), k, at(x), k, scalar(0), at(product), n)
    assert numpy.allclose(product, x.astype(numpy.float64) @ x.astype(numpy.float64).T, atol=1e-3)
    return int((product != product.T).sum())


random = numpy.random.default_rng(0)
seen = []
for shape in (16, 2), (64, 64), (257, 129), (1000, 500):
    x = random.standard_normal(shape)
    seen.append((differing(x.astype(numpy.float32), "cblas_sgemm", ctypes.c_float),
                 differing(x, "cblas_dgemm", ctypes.c_double)))
    print(f"{shape[0]} x {shape[1]}: {seen[-1][0]} differ in fp32, {seen[-1][1]} in fp64")
sys.exit(any(single != 0 or double == 0 for single, double in seen))
PYTHON
