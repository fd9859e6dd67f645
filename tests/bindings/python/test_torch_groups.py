"""hgemm.torch.grouped_mm over K, on CPU tensors: values, gradients, compiled, refused, and under enable()."""

import unittest
import warnings
from unittest import mock

from test_torch import DTYPES, assert_close, functional, ht, random, torch
from hgemm import c
from hgemm.torch import _groups, _handles

ENDS = [3, 3, 8, 12]  # an empty group; behind the last there is K of no group
K = 14


def int32(ends):
    return torch.tensor(ends, dtype=torch.int32)


def by_mm(a, b, ends=tuple(ENDS)):
    """A loop over groups."""
    return torch.stack([a[:, first:end] @ b[first:end] for first, end in zip([0, *ends], ends)])


def exact(a, b, ends=tuple(ENDS)):
    return by_mm(a.detach().double(), b.detach().double(), ends)


def layouts(*shape, dtype):
    """Matrices of all strides that BLAS reads, and one of others."""
    x = random(*shape, dtype=dtype)
    wide = random(shape[0] + 3, shape[1] + 5, dtype=dtype)
    return [x, x.t().contiguous().t(), wide[1:-2, 2:-3], wide.t().contiguous().t()[1:-2, 2:-3],
            random(shape[0], 2 * shape[1], dtype=dtype)[:, ::2]]


class Products(unittest.TestCase):
    def test_all_strides(self):
        for dtype in DTYPES:
            for a in layouts(9, K, dtype=dtype):
                for b in layouts(K, 10, dtype=dtype):
                    result = ht.grouped_mm(a, b, offs=int32(ENDS))
                    self.assertEqual((result.shape, result.dtype), ((4, 9, 10), dtype))
                    assert_close(result, exact(a, b))
                    self.assertFalse(result[1].any())

    def test_groups_of_other_sizes(self):
        a, b = random(8, K, dtype=torch.bfloat16), random(K, 16, dtype=torch.bfloat16)
        for ends in ([K], [0, K], [0, 0], [K, K, K], [1] * 5, [*range(1, K + 1)]):
            for offs in (int32(ends), torch.tensor(ends), int32(ends).repeat_interleave(2)[::2]):
                assert_close(ht.grouped_mm(a, b, offs=offs), exact(a, b, ends))
        self.assertEqual(ht.grouped_mm(a, b, offs=int32([])).shape, (0, 8, 16))

    def test_sizes_of_zero(self):
        for m, k, n in ((0, 4, 3), (5, 0, 3), (5, 4, 0), (1, 1, 1), (1, 4, 1), (5, 1, 3)):
            ends = [0, k]
            a, b = random(m, k), random(k, n)
            result = ht.grouped_mm(a, b, offs=int32(ends))
            self.assertEqual(result.shape, (2, m, n))
            assert_close(result, exact(a, b, ends))

    def test_results_of_float32(self):
        a, b = random(8, K), random(K, 16)
        result = ht.grouped_mm(a, b, offs=int32(ENDS), out_dtype=torch.float32)
        self.assertEqual(result.dtype, torch.float32)
        assert_close(result, exact(a, b))

    def test_batch_invariance(self):
        """The bits of a group do not depend on the others, nor on where it begins."""
        a, b = random(40, 2048, dtype=torch.bfloat16), random(2048, 48, dtype=torch.bfloat16)
        with ht.batch_invariant(dispatch_key="CPU"):
            whole = ht.grouped_mm(a, b, offs=int32([700, 1500, 2048]))
            alone = ht.grouped_mm(a[:, 700:1500], b[700:1500], offs=int32([800]))
        self.assertTrue(torch.equal(whole[1], alone[0]))

    def test_what_is_copied_for_gpus(self):
        whole = random(24, 32)
        for right in (whole, whole[1:, 8:], whole[:, :5]):
            self.assertIs(_groups.in_aligned_lines(right), right)
        for wrong in (whole[:, 1:], whole.t(), random(24, 33), whole[:, ::2], whole[:1].expand(24, 32), whole[:, 4:9]):
            copy = _groups.in_aligned_lines(wrong)
            self.assertEqual((copy.stride(1), copy.stride(0) % 8, copy.data_ptr() % 16), (1, 0, 0))
            self.assertTrue(torch.equal(copy, wrong))

    def test_what_the_library_is_told(self):
        """Copies for GPUs are what its fast kernels take: a transposed, b not, both in lines of 16 bytes."""
        found = []

        def call(function, args, *rest, original=_handles.call):
            found.append((args.transa, args.transb, args.lda % 8, args.ldb % 8, args.a % 16, args.b % 16))
            original(function, args, *rest)

        for m, k, n in ((9, K, 10), (1, K, 1), (16, 1, 8)):
            for a in layouts(m, k, dtype=torch.float16):
                for b in layouts(k, n, dtype=torch.float16):
                    with mock.patch.object(torch.Tensor, "is_cuda", True), mock.patch.object(_handles, "call", call):
                        result = ht.grouped_mm(a, b, offs=int32([k // 2, k]))
                    assert_close(result, exact(a, b, [k // 2, k]))
        self.assertEqual(set(found), {(c.Op.TRANS, c.Op.NO_TRANS, 0, 0, 0, 0)})


class Gradients(unittest.TestCase):
    def test_of_both_operands(self):
        for dtype in DTYPES:
            for a in layouts(9, K, dtype=dtype):
                for b in layouts(K, 10, dtype=dtype):
                    a, b = (x.detach().requires_grad_() for x in (a, b))
                    wide = [x.detach().double().requires_grad_() for x in (a, b)]
                    grad = random(4, 9, 10, dtype=dtype)
                    ours = torch.autograd.grad(ht.grouped_mm(a, b, offs=int32(ENDS)), (a, b), grad)
                    right = torch.autograd.grad(by_mm(*wide), wide, grad.double())
                    for our, their, x in zip(ours, right, (a, b)):
                        self.assertEqual((our.dtype, our.shape), (dtype, x.shape))
                        assert_close(our, their)
                    self.assertFalse(ours[0][:, ENDS[-1]:].any() or ours[1][ENDS[-1]:].any())

    def test_of_float32(self):
        a, b = random(9, K, grad=True), random(K, 10, grad=True)
        result = ht.grouped_mm(a, b, offs=int32(ENDS), out_dtype=torch.float32)
        ours = torch.autograd.grad(result, (a, b), random(1).float().expand(4, 9, 10))
        self.assertEqual([x.dtype for x in ours], [torch.float16] * 2)

    def test_of_one_operand(self):
        a, b = random(9, K, grad=True), random(K, 10, grad=True)
        for left, right, leaf in ((a, b.detach(), a), (a.detach(), b, b)):
            grad, = torch.autograd.grad(ht.grouped_mm(left, right, offs=int32(ENDS)).sum(), leaf)
            wide = [x.detach().double().requires_grad_() for x in (a, b)]
            assert_close(grad, torch.autograd.grad(by_mm(*wide).sum(), wide)[leaf is b])

    def compare_second(self, ours, theirs, a, b):
        """Gradients of gradients, which are products by groups of the other kind."""
        results = []
        for function, leaves in ((ours, (a, b)), (theirs, [x.detach().double().requires_grad_() for x in (a, b)])):
            first = torch.autograd.grad(function(*leaves).pow(2).sum(), leaves, create_graph=True)
            results.append(torch.autograd.grad(sum(x.pow(2).sum() for x in first), leaves))
        for our, their in zip(*results):
            torch.testing.assert_close(our.double(), their, rtol=0.05, atol=0.02 * their.abs().max().item())

    def test_of_gradients(self):
        a, b = ((random(*shape) / 8).requires_grad_() for shape in ((9, K), (K, 10)))
        self.compare_second(lambda a, b: ht.grouped_mm(a, b, offs=int32(ENDS)), by_mm, a, b)
        ends, a, b = [3, 3, 8], *((random(*shape) / 8).requires_grad_() for shape in ((8, 12), (3, 12, 10)))
        self.compare_second(lambda a, b: ht.grouped_mm(a, b, offs=int32(ends)),
                            lambda a, b: torch.cat([a[:3] @ b[0], a[3:] @ b[2]]), a, b)

    def test_transforms(self):
        from torch.func import grad, jacrev, vmap

        a, b = random(9, K, dtype=torch.bfloat16) / 2, random(K, 10, dtype=torch.bfloat16) / 2
        pair = (lambda a, b: ht.grouped_mm(a, b, offs=int32(ENDS)), by_mm)
        both = lambda f: grad(lambda *x: f(*x).square().sum(), (0, 1))  # noqa: E731
        stack = torch.stack([a, -a])
        for transform, arguments in ((both, (a, b)), (jacrev, (a, b)), (lambda f: vmap(f, (0, None)), (stack, b)),
                                     (lambda f: vmap(both(f), (0, None)), (stack, b))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch batches custom operators by loops, and says so
                found = transform(pair[0])(*arguments)
            right = transform(pair[1])(*(x.double() for x in arguments))
            for our, their in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, right)), strict=True):
                torch.testing.assert_close(our.double(), their, rtol=0.02, atol=0.04)
        with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivatives"):
            torch.func.jvp(lambda a: pair[0](a, b), (a,), (a,))


class Compiler(unittest.TestCase):
    def test_opcheck(self):
        a, b = random(9, K, dtype=torch.bfloat16, grad=True), random(K, 10, dtype=torch.bfloat16, grad=True)
        for left in (a, a.detach().t().contiguous().t().requires_grad_()):
            for dtype in (None, torch.float32):
                torch.library.opcheck(torch.ops.hgemm.grouped_mm_k.default, (left, b, int32(ENDS), dtype, False))

    def test_compile(self):
        def model(a, b, weights, ends):
            return ht.grouped_mm(ht.mm(a, a.t()) @ a, b, offs=ends).sum(0) + ht.grouped_mm(a, weights, offs=ends[:1])

        for dynamic in (False, True):
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
            for k in (K, 18):
                leaves = [random(*s, dtype=torch.bfloat16, grad=True) for s in ((8, k), (k, 10), (1, k, 10))]
                both = [f(*leaves, int32([8, 8, 12])) for f in (model, compiled)]
                torch.testing.assert_close(*both, rtol=0, atol=0)
                torch.testing.assert_close(*[torch.autograd.grad(y.sum(), leaves) for y in both], rtol=0, atol=0)

    def test_flops(self):
        from torch.utils.flop_counter import FlopCounterMode
        a, b = random(9, K, grad=True), random(K, 10, grad=True)
        with FlopCounterMode(display=False) as counter:
            ht.grouped_mm(a, b, offs=int32(ENDS)).sum().backward()
        self.assertEqual(counter.get_total_flops(), 3 * 2 * 9 * K * 10)


class Refusals(unittest.TestCase):
    def test_each_is_named(self):
        a, b, ends = random(9, K), random(K, 10), int32(ENDS)
        for kind, text, args, options in (
                (TypeError, "offs: is torch.float32, must be torch.int32", (a, b), {"offs": ends.float()}),
                (TypeError, "offs: is builtins.list, must be a torch.Tensor", (a, b), {"offs": ENDS}),
                (ValueError, "offs: 2 dimensions, must be 1", (a, b), {"offs": ends[None]}),
                (ValueError, "offs: is on meta, must be on cpu as mat_a", (a, b), {"offs": ends.to("meta")}),
                (ValueError, "mat_b: its shape .13, 10. does not fit that of mat_a", (a, b[1:]), {"offs": ends}),
                (ValueError, "mat_b: is on meta", (a, b.to("meta")), {"offs": ends}),
                (TypeError, "mat_b: is torch.bfloat16, must be .* as mat_a", (a, b.bfloat16()), {"offs": ends}),
                (TypeError, "mat_a: is torch.float32", (a.float(), b.float()), {"offs": ends}),
                (TypeError, "out_dtype: is torch.bfloat16", (a, b), {"offs": ends, "out_dtype": torch.bfloat16}),
                (ValueError, "bias: must be None unless groups are of rows", (a, b), {"offs": ends, "bias": b[0]}),
                (ValueError, "mat_a: 2 dimensions, must be 3", (a, b), {}),
                (ValueError, "mat_a: 3 dimensions, must be 2", (a[None], b), {"offs": ends})):
            with self.subTest(text), self.assertRaisesRegex(kind, f"^{text}"):
                ht.grouped_mm(*args, **options)

    def test_ends_beyond_k(self):
        """The host refuses what GPUs cut off."""
        a, b = random(9, K), random(K, 10)
        for ends in ([3, K + 1], [5, 3], [-1, 3]):
            with self.assertRaisesRegex(RuntimeError, r"ends_i32\) has .* must not decrease and stay from 0 to k = 14"):
                ht.grouped_mm(a, b, offs=int32(ends))


class Overrides(unittest.TestCase):
    """Torch takes operands whose lines are aligned to 16 bytes."""

    def setUp(self):
        self.before = ht.counts()
        ht.enable(dispatch_key="CPU")
        self.addCleanup(ht.disable)

    def counted(self):
        now, before = ht.counts(), self.before
        self.before = now
        return {key: now[key] - before.get(key, 0) for key in now if now[key] != before.get(key, 0)}

    def test_served(self):
        a, b, ends = random(8, 16, dtype=torch.bfloat16), random(16, 24, dtype=torch.bfloat16), int32([3, 3, 16])
        for left in (a, a.t().contiguous().t()):
            for right in (b, b.t().contiguous().t()):
                ours = torch._grouped_mm(left, right, offs=ends)
                self.assertEqual(self.counted(), {"served": 1})
                assert_close(ours, exact(a, b, [3, 3, 16]))
                ht.disable()
                assert_close(ours, torch._grouped_mm(left, right, offs=ends))
                self.assertEqual(self.counted(), {})
                ht.enable(dispatch_key="CPU")
        if hasattr(functional, "grouped_mm"):
            assert_close(functional.grouped_mm(a, b, offs=ends), exact(a, b, [3, 3, 16]))
            self.assertEqual(self.counted(), {"served": 1})

    def test_what_is_left_to_torch(self):
        a, b, ends = random(8, 16, dtype=torch.bfloat16), random(16, 24, dtype=torch.bfloat16), int32([8, 24])
        torch._grouped_mm(torch.stack([a, -a]), b, offs=ends)  # which calls torch.mm() for each group
        self.assertEqual(self.counted(), {"grouped_mm over columns": 1, "served": 2})
        for offs in (ends.long(), None):
            with self.assertRaises(RuntimeError):
                torch._grouped_mm(a, b, offs=offs)
        self.assertEqual(self.counted(), {"arguments: offs": 1, "arguments: mat_a": 1})
        ht.enable(dispatch_key="CPU", strict=True)
        torch._grouped_mm(a, b, offs=ends // 2)
        with self.assertRaisesRegex(RuntimeError, "_grouped_mm is not served by libhgemm.*grouped_mm over columns"):
            torch._grouped_mm(torch.stack([a, -a]), b, offs=ends)

    def test_gradients(self):
        """A mixture of experts in training is served altogether: torch's gradients are products by groups."""
        a, b = random(10, 16, dtype=torch.bfloat16, grad=True), random(2, 16, 8, dtype=torch.bfloat16, grad=True)
        ours = torch._grouped_mm(a, b, offs=int32([3, 10]))
        grad = random(10, 8, dtype=torch.bfloat16)
        gradients = torch.autograd.grad(ours, (a, b), grad)
        self.assertEqual(self.counted(), {"served": 3})
        x, y, g = a.detach().double(), b.detach().double(), grad.double()
        assert_close(gradients[0], torch.cat([g[:3] @ y[0].t(), g[3:] @ y[1].t()]))
        assert_close(gradients[1], torch.stack([x[:3].t() @ g[:3], x[3:].t() @ g[3:]]))


if __name__ == "__main__":
    unittest.main()
