#!/usr/bin/env bash
# oneMKL's cblas_hgemm() cuts its fp16 results off, where IEEE 754's default, and numpy's fp16 products, round to the
# nearest. With mkl 2026.2.0 (PyPI) on an AMD EPYC (AVX-512 without AVX512_FP16), 2026-11-28.
#   good guess:  4096 * 1 + 3 * 1 = 4099 becomes 4100: fp16 has 4096 and 4100 there, and 4100 is nearer
#   seen:        4096; 2048 + 3 = 2051 becomes 2050, not 2052; -4099 becomes -4096
# On a CPU with AVX512_FP16 the library has other code, which may round. Exit status 1 if anything else is seen.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/pip" -q --disable-pip-version-check install mkl==2026.2.0
"$work/bin/python" - <<'PYTHON'
import ctypes
import glob
import struct
import sys

mkl = ctypes.CDLL(glob.glob(sys.prefix + "/lib/libmkl_rt.so.*")[0])
half = ctypes.c_uint16


def bits(value):
    return half(struct.unpack("H", struct.pack("e", value))[0])


def sum_of(x, y):  # the 1 x 1 product of (x, y) and (1, 1): row-major, no transposes, alpha 1, beta 0
    a, b, c = (half * 2)(bits(x), bits(y)), (half * 2)(bits(1), bits(1)), (half * 1)()
    mkl.cblas_hgemm(101, 111, 111, 1, 1, 2, bits(1), a, 2, b, 1, bits(0), c, 1)
    return struct.unpack("e", bytes(c))[0]


seen = [sum_of(4096, 3), sum_of(2048, 3), sum_of(-4096, -3), sum_of(4096, 4)]
print("4096 + 3, 2048 + 3, -4096 - 3, 4096 + 4 (exact):", seen)
sys.exit(seen != [4096, 2050, -4096, 4100])
PYTHON
