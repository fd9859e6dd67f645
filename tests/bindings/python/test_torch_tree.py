"""hgemm.torch.tree_mm on CPU tensors: sums over K whose order is a tree."""

import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch.tree_mm: Skipped\nPyTorch is not installed")
    sys.exit(77)

import hgemm
import hgemm.torch as ht
from hgemm.torch import _handles
from torch.utils.flop_counter import FlopCounterMode

DTYPES = (torch.float16, torch.bfloat16)


def random(*shape, dtype=torch.float16, grad=False):
    return torch.randn(*shape).to(dtype).requires_grad_(grad)


def by_the_library(a, b, bias=None, out_dtype=None, mode=hgemm.Mode.TREE):
    out = torch.empty(a.shape[0], b.shape[1], dtype=out_dtype or a.dtype)
    with hgemm.Handle(hgemm.DEVICE_HOST, mode=mode) as handle:
        return hgemm.matmul(a, b, out, bias=bias, handle=handle)


def tree(a, b):
    """In Python, of leaves whose K is not cut."""
    k = a.shape[1]
    half = k // 2
    if k % 128 or half < 512:
        return by_the_library(a, b, None, torch.float32, hgemm.Mode.BATCH_INVARIANT)
    return tree(a[:, :half], b[:half]) + tree(a[:, half:], b[half:])


class Products(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)

    def assert_same(self, result, expected):
        torch.testing.assert_close(result, expected, rtol=0, atol=0)

    def test_order(self):
        for dtype in DTYPES:
            for m, n, k in ((3, 5, 64), (4, 24, 1024), (1, 33, 8192), (5, 9, 4608), (6, 7, 1088), (3, 4, 2000),
                            (2, 3, 0)):
                a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
                for bias in (None, random(n, dtype=dtype), torch.randn(n)):
                    total = tree(a, b) if bias is None else tree(a, b) + bias.float()
                    for out_dtype in (None, torch.float32):
                        result = ht.tree_mm(a, b, bias, out_dtype)
                        self.assert_same(result, total.to(out_dtype or dtype))
                        self.assert_same(result, by_the_library(a, b, bias, out_dtype))

    def test_another_order_differs(self):
        """And the extension, which has no such mode, does not compute it, also once it shares handles."""
        a, b = random(8, 8192), random(8192, 16)
        for _ in range(3):
            plain, result = ht.mm(a, b, torch.float32), ht.tree_mm(a, b, None, torch.float32)
            with ht.batch_invariant():
                invariant = ht.mm(a, b, torch.float32)
            self.assert_same(result, tree(a, b))
            self.assert_same(invariant, by_the_library(a, b, None, torch.float32, hgemm.Mode.BATCH_INVARIANT))
            self.assert_same(plain, by_the_library(a, b, None, torch.float32, hgemm.Mode.DEFAULT))
        self.assertFalse(torch.equal(result, invariant))
        kept, = [handles for key, handles in _handles._pool._idle.items() if key[2] == hgemm.Mode.TREE]
        self.assertEqual([(handle.mode, handle._shared) for handle in kept], [(hgemm.Mode.TREE, None)])

    def test_operands_of_any_strides(self):
        a, b = random(8, 4096), random(4096, 12)
        for left in (a, a.t().contiguous().t(), a[::2], a[:, ::2], a[:0]):
            whole = b[:left.shape[1]]
            for right in (whole, whole.t().contiguous().t(), whole[:, ::3]):
                self.assert_same(ht.tree_mm(left, right), ht.tree_mm(left.contiguous(), right.contiguous()))

    def test_gradients(self):
        for dtype in DTYPES:
            for out_dtype in (None, torch.float32):
                a, b, bias = (random(*shape, dtype=dtype, grad=True) for shape in ((1024, 2048), (2048, 8), (8,)))
                grad = random(1024, 8, dtype=out_dtype or dtype)
                ours = torch.autograd.grad(ht.tree_mm(a, b, bias, out_dtype), (a, b, bias), grad)
                half = grad.to(dtype)
                self.assert_same(ours[0], by_the_library(half, b.detach().t()))
                self.assert_same(ours[1], by_the_library(a.detach().t(), half))
                self.assert_same(ours[2], grad.sum(0, dtype=torch.float32).to(dtype))
                a, b, half = a.detach().double(), b.detach().double(), half.double()
                for our, exact in zip(ours, (half @ b.t(), a.t() @ half, grad.double().sum(0)), strict=True):
                    torch.testing.assert_close(our.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-3)


class Torch(unittest.TestCase):
    """As an operator among others."""

    def test_opcheck(self):
        a, b, bias = random(4, 1024, grad=True), random(1024, 8, grad=True), random(8, grad=True)
        torch.library.opcheck(torch.ops.hgemm.tree_mm.default, (a, b, bias, None))
        torch.library.opcheck(torch.ops.hgemm.tree_mm.default, (a, b.detach(), None, torch.float32))

    def test_compile(self):
        def model(a, b, bias):
            return ht.tree_mm(ht.tree_mm(a, b, bias).relu(), b.t(), None, torch.float32)

        compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
        for rows in (3, 5):
            leaves = [random(rows, 1024, grad=True), random(1024, 16, grad=True), random(16, grad=True)]
            both = [function(*leaves) for function in (model, compiled)]
            torch.testing.assert_close(*both, rtol=0, atol=0)
            gradients = [torch.autograd.grad(result.sum(), leaves) for result in both]
            torch.testing.assert_close(*gradients, rtol=0, atol=0)

    def test_transforms(self):
        a, b = random(4, 1024), random(1024, 8)
        of_a = torch.func.grad(lambda a: ht.tree_mm(a, b).sum())(a)
        torch.testing.assert_close(of_a, ht.tree_mm(torch.ones(4, 8).half(), b.t()), rtol=0, atol=0)
        with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivatives"):
            torch.func.jvp(lambda a: ht.tree_mm(a, b), (a,), (a,))

    def test_flops(self):
        with FlopCounterMode(display=False) as counter:
            ht.tree_mm(random(4, 1024), random(1024, 8))
        self.assertEqual(counter.get_total_flops(), 2 * 4 * 1024 * 8)

    def test_refusals(self):
        a, b = random(4, 64), random(64, 8)
        for arguments, kind, text in (
                ((a.float(), b.float()), TypeError, "input: is torch.float32, must be torch.float16 or torch.bfloat16"),
                ((a, b.bfloat16()), TypeError, "mat2: is torch.bfloat16, must be torch.float16 as input"),
                ((a, b[:63]), ValueError, r"mat2: its shape \(63, 8\) does not fit that of input, \(4, 64\)"),
                ((a[None], b), ValueError, "input: 3 dimensions, must be 2"),
                ((a, None), TypeError, "mat2: is None, must be a torch.Tensor"),
                ((a, b, 1.0), TypeError, "bias: is builtins.float, must be a torch.Tensor"),
                ((a, b, random(7)), ValueError, r"bias: its shape is \(7,\), must be \(8,\)"),
                ((a, b, None, torch.float64), TypeError, "out_dtype: is torch.float64"),
                ((a, b.to("meta")), ValueError, "mat2: is on meta, must be on cpu as input")):
            with self.assertRaisesRegex(kind, f"^{text}"):
                ht.tree_mm(*arguments)


if __name__ == "__main__":
    unittest.main()
