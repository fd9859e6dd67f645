"""Which op and leading dimension a matrix has is answered twice: by hgemm/_operand.py and, for products of PyTorch
tensors, by extension/view.cpp. Both get random matrices here, and have to say the same.

usage: test_operands.py <the library of operands.cpp>
"""

import ctypes
import random
import sys
import unittest

from hgemm import _operand, c

PRODUCTS = 50_000


class Tensor(ctypes.Structure):
    _fields_ = [("dimensions", ctypes.c_int64), ("sizes", ctypes.c_int64 * 3), ("strides", ctypes.c_int64 * 3),
                ("dtype", ctypes.c_int32)]


extension = ctypes.CDLL(sys.argv.pop(1))
extension.operands_of.argtypes = [ctypes.POINTER(Tensor)] * 3 + [ctypes.c_double, ctypes.POINTER(c.Args)]


def tensor(operand):
    if operand is None:
        return None
    return Tensor(len(operand.shape), operand.shape, operand.strides, operand.type)


def in_cpp(a, b, added):
    args = c.Args()
    called = extension.operands_of(tensor(a), tensor(b), tensor(added), 0.5, args)
    return described(args, added) if called else None


def in_python(a, b, added):
    """As hgemm/torch/_ops.py asks: None where an operand is copied, C too if it is not stored as the result is."""
    shape = (*a.shape[:-1], b.shape[-1])
    result = _operand.Operand(a.type, shape, contiguous(shape))
    if not _operand.fits(a) or not _operand.fits(b):
        return None
    if added is not None and _operand.leading(added, c.Layout.ROW_MAJOR) is None:
        return None
    return described(_operand.gemm_args(a, b, result, c=added, beta=0 if added is None else 0.5), added)


def described(args, added):
    names = ["layout", "transa", "transb", "type_ab", "type_d", "m", "n", "k", "lda", "ldb", "ldd", "batch_count",
             "stride_a", "stride_b", "stride_d"]
    if added is not None:
        names += ["type_c", "ldc", "stride_c"]
    return {name: getattr(args, name) for name in names}


def contiguous(shape):
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return tuple(strides)


def matrix(source, kind, shape):
    """Mostly of strides that a matrix in memory may have: by rows, by columns, with gaps; else of any."""
    rows, columns = shape[-2:]
    way = source.randrange(4)
    if way == 0:
        strides = (columns + source.randrange(-1, 3), 1)
    elif way == 1:
        strides = (1, rows + source.randrange(-1, 3))
    else:
        strides = (source.randrange(-2, 9), source.randrange(-2, 9))
    return _operand.Operand(kind, shape, (*(source.randrange(0, 30) for _ in shape[:-2]), *strides))


def draw(source):
    m, n, k = (source.randrange(6) for _ in range(3))
    batch = (source.randrange(4),) if source.randrange(2) else ()
    kind = source.choice((c.Type.F16, c.Type.BF16))
    added = matrix(source, source.choice((kind, c.Type.F32)), (*batch, m, n)) if source.randrange(2) else None
    return matrix(source, kind, (*batch, m, k)), matrix(source, kind, (*batch, k, n)), added


class SameAnswers(unittest.TestCase):
    def test_random_matrices(self):
        source, read, left, ops = random.Random(7), 0, 0, set()
        for _ in range(PRODUCTS):
            operands = draw(source)
            want, found = in_python(*operands), in_cpp(*operands)
            self.assertEqual(found, want, f"a, b, c: {operands}; C++, then Python")
            if want is None:
                left += 1
            else:
                read += 1
                ops.add((want["transa"], want["transb"]))
        # The draw is worth something: many of either answer, and all four pairs of ops.
        self.assertGreater(min(read, left), PRODUCTS // 10)
        self.assertEqual(len(ops), 4)


if __name__ == "__main__":
    unittest.main()
