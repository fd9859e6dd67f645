"""hgemm.torch on CPU tensors, which the host backend serves as GPU backends serve CUDA tensors."""

import subprocess
import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch: Skipped\nPyTorch is not installed")
    sys.exit(77)

import hgemm
import hgemm.torch as ht
from torch.nn import functional

torch.manual_seed(1)
DTYPES = (torch.float16, torch.bfloat16)
TOLERANCE = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-18}
ACTIVATIONS = {None: lambda x: x, "relu": functional.relu, "gelu_erf": functional.gelu, "silu": functional.silu,
               "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh")}


def random(*shape, dtype=torch.float16, grad=False):
    return torch.randn(*shape).to(dtype).requires_grad_(grad)


def assert_close(result, exact):
    tolerance = TOLERANCE[result.dtype]
    torch.testing.assert_close(result.double(), exact.double(), rtol=tolerance, atol=4 * tolerance)


class Products(unittest.TestCase):
    def test_mm(self):
        for dtype in DTYPES:
            a, b = random(33, 65, dtype=dtype), random(65, 17, dtype=dtype)
            assert_close(ht.mm(a, b), a.double() @ b.double())
            wide = ht.mm(a, b, torch.float32)
            self.assertEqual(wide.dtype, torch.float32)
            assert_close(wide, a.double() @ b.double())

    def test_operands_of_any_strides(self):
        a, b = random(24, 48), random(48, 32)
        for left in (a, a.t().contiguous().t(), a[:, :40], a[::2], a[:, ::2], a[:1].expand(5, 48), a[:, :1], a[:0]):
            whole = b[:left.shape[1]]
            for right in (whole, whole.t().contiguous().t(), whole[:, ::3], whole[:, :1]):
                assert_close(ht.mm(left, right), left.double() @ right.double())

    def test_out(self):
        a, b = random(8, 16), random(16, 4)
        for out in (torch.empty(8, 4).half(), torch.empty(4, 8).half().t(), torch.empty(8, 8).half()[:, ::2],
                    torch.empty(8, 4)):
            self.assertIs(ht.mm(a, b, out=out), out)
            assert_close(out, a.double() @ b.double())

    def test_addmm(self):
        a, b = random(8, 16), random(16, 4)
        product = a.double() @ b.double()
        for added in (random(8, 4), random(4), random(1, 4), random(8, 1), random(()), random(4, 8).t(),
                      random(8, 8)[:, ::2]):
            for alpha, beta in ((1, 1), (2, -0.5), (1, 0)):
                assert_close(ht.addmm(added, a, b, alpha=alpha, beta=beta), alpha * product + beta * added.double())
        results = (torch.empty(8, 6).half()[:, :4], torch.empty(6, 8).half()[:4].t(), torch.empty(8, 8).half()[:, ::2],
                   torch.empty(4, 11).half()[:, :8].t())
        for out in results:
            for added in (random(8, 4), random(4), random(8, 1), random(4, 8).t()):
                ht.addmm(added, a, b, beta=2, out=out)
                assert_close(out, product + 2 * added.double())
        nothing = torch.full((8, 4), float("nan")).half()
        assert_close(ht.addmm(nothing, a, b, beta=0), product)

    def test_bmm_and_baddbmm(self):
        a, b, c = random(3, 8, 16), random(3, 16, 4), random(3, 8, 4)
        assert_close(ht.bmm(a, b), a.double() @ b.double())
        assert_close(ht.bmm(a[:1].expand(3, 8, 16), b), a[:1].double() @ b.double())
        assert_close(ht.baddbmm(c, a, b, alpha=2, beta=3), 2 * (a.double() @ b.double()) + 3 * c.double())
        assert_close(ht.baddbmm(c[0], a, b), a.double() @ b.double() + c[0].double())

    def test_linear(self):
        weight, bias = random(32, 16), random(32)
        for x in (random(16), random(5, 16), random(2, 3, 16), random(0, 16), random(2, 16, 3).transpose(1, 2)):
            for activation, function in ACTIVATIONS.items():
                exact = function(functional.linear(x.double(), weight.double(), bias.double()))
                assert_close(ht.linear(x, weight, bias, activation), exact)
        assert_close(ht.linear(x, weight), functional.linear(x.double(), weight.double()))

    def test_grouped_mm(self):
        a, ends = random(10, 16, dtype=torch.bfloat16), torch.tensor([3, 3, 10], dtype=torch.int32)
        for b in (random(3, 16, 8, dtype=torch.bfloat16), random(3, 8, 16, dtype=torch.bfloat16).transpose(1, 2)):
            exact = torch.cat([a[:3].double() @ b[0].double(), a[3:].double() @ b[2].double()])
            assert_close(ht.grouped_mm(a, b, offs=ends), exact)
        batch = random(3, 4, 16, dtype=torch.bfloat16)
        assert_close(ht.grouped_mm(batch, b), batch.double() @ b.double())

    def test_sizes_of_zero(self):
        for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
            torch.testing.assert_close(ht.mm(random(m, k), random(k, n)), torch.zeros(m, n).half())


class Arrays(unittest.TestCase):
    """hgemm.matmul() takes tensors by DLPack."""

    def test_tensors(self):
        for dtype in DTYPES:
            a, b, out = random(8, 16, dtype=dtype), random(4, 16, dtype=dtype).t(), torch.empty(8, 4)
            self.assertIs(hgemm.matmul(a, b, out), out)
            assert_close(out, a.double() @ b.double())

    def test_a_negated_view(self):
        with self.assertRaisesRegex(ValueError, "^a: .*negated"):
            hgemm.matmul(torch._neg_view(random(4, 4)), random(4, 4), torch.empty(4, 4))
        a, b = random(4, 4), random(4, 4)
        assert_close(ht.mm(torch._neg_view(a), b), -a.double() @ b.double())

    def test_a_tensor_that_requires_a_gradient(self):
        with self.assertRaisesRegex(ValueError, "^a: .*gradient"):
            hgemm.matmul(random(4, 4, grad=True), random(4, 4), torch.empty(4, 4))


class WrongArguments(unittest.TestCase):
    def refused(self, kind, name, function, *args, **options):
        with self.assertRaisesRegex(kind, f"^{name}: "):
            function(*args, **options)

    def test_each_is_named(self):
        a, b = random(8, 16), random(16, 4)
        self.refused(TypeError, "input", ht.mm, a.float(), b.float())
        self.refused(TypeError, "mat2", ht.mm, a, b.bfloat16())
        self.refused(ValueError, "mat2", ht.mm, a, b[:15])
        self.refused(ValueError, "mat2", ht.mm, a, b.to("meta"))
        self.refused(ValueError, "mat2", ht.mm, a, b[0])
        self.refused(ValueError, "input", ht.bmm, a, b)
        self.refused(TypeError, "out_dtype", ht.mm, a, b, torch.float64)
        self.refused(ValueError, "out", ht.mm, a, b, out=torch.empty(4, 8).half())
        self.refused(TypeError, "out", ht.mm, a, b, out=torch.empty(8, 4).bfloat16())
        self.refused(RuntimeError, "out", ht.mm, a.clone().requires_grad_(), b, out=torch.empty(8, 4).half())
        self.refused(ValueError, "input", ht.addmm, random(3), a, b)
        self.refused(ValueError, "input", ht.addmm, random(3), a, b, beta=0)
        self.refused(TypeError, "input", ht.addmm, random(8, 4).double(), a, b)
        self.refused(ValueError, "weight", ht.linear, a, b)
        self.refused(ValueError, "bias", ht.linear, a, b.t(), random(5))
        self.refused(ValueError, "activation", ht.linear, a, b.t(), None, "tanh")
        self.refused(TypeError, "offs", ht.grouped_mm, a, b[None], offs=torch.tensor([8.0]))
        self.refused(ValueError, "offs", ht.grouped_mm, a, b[None], offs=torch.tensor([4, 8]))
        self.refused(ValueError, "bias", ht.grouped_mm, a, b[None], bias=a)

    def test_overlap(self):
        a = random(8, 8)
        with self.assertRaisesRegex(hgemm.Error, "overlap"):
            ht.mm(a, a, out=a)


class Gradients(unittest.TestCase):
    def compare(self, ours, theirs, *leaves):
        """ours of half tensors and theirs of the same in fp64."""
        doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
        weights = None
        results = []
        for function, arguments in ((ours, leaves), (theirs, doubles)):
            value = function(*arguments)
            weights = torch.randn_like(value) if weights is None else weights.double()
            results.append(torch.autograd.grad((value * weights.to(value.dtype)).sum(), arguments))
        for our, their in zip(*results):
            torch.testing.assert_close(our.double(), their, rtol=0.03, atol=0.06)

    def test_linear(self):
        for activation, function in ACTIVATIONS.items():
            self.compare(lambda x, w, b: ht.linear(x, w, b, activation),
                         lambda x, w, b: function(functional.linear(x, w, b)),
                         random(2, 5, 16, grad=True), random(8, 16, grad=True), random(8, grad=True))

    def test_gradients_of_gradients_of_activations(self):
        def squared(function, double):
            def run(x, w, b):
                y = function(x, w, b)
                grad, = torch.autograd.grad((y if double else y.float()).pow(2).mean(), x, create_graph=True)
                return grad
            return run

        for activation, function in ACTIVATIONS.items():
            self.compare(squared(lambda x, w, b: ht.linear(x, w, b, activation), False),
                         squared(lambda x, w, b: function(functional.linear(x, w, b)), True),
                         random(5, 16, grad=True), random(8, 16, grad=True), random(8, grad=True))

    def test_mm_addmm_bmm_baddbmm(self):
        a, b, c = random(8, 16, grad=True), random(16, 4, grad=True), random(8, 4, grad=True)
        self.compare(ht.mm, torch.mm, a, b)
        for added in (c, random(4, grad=True), random(8, 1, grad=True)):
            self.compare(lambda *x: ht.addmm(*x, alpha=2, beta=0.5), lambda *x: torch.addmm(*x, alpha=2, beta=0.5),
                         added, a, b)
        a, b, c = random(3, 8, 16, grad=True), random(3, 16, 4, grad=True), random(3, 8, 4, grad=True)
        self.compare(ht.bmm, torch.bmm, a, b)
        self.compare(ht.baddbmm, torch.baddbmm, c, a, b)

    def test_grouped_mm(self):
        ends = torch.tensor([3, 3, 6], dtype=torch.int32)
        a, b = random(8, 16, dtype=torch.bfloat16, grad=True), random(3, 16, 8, dtype=torch.bfloat16, grad=True)

        def exact(a, b):
            return torch.cat([a[:3] @ b[0], a[3:6] @ b[2]])

        self.compare(lambda a, b: ht.grouped_mm(a, b, offs=ends)[:6], exact, a, b)
        grad, = torch.autograd.grad(ht.grouped_mm(a, b, offs=ends)[:6].sum(), a)
        self.assertFalse(grad[6:].any())


class Compiler(unittest.TestCase):
    def test_opcheck(self):
        a, b, bias = random(8, 16, grad=True), random(4, 16, grad=True), random(4, grad=True)
        scalars = 1.5, 0.5, "none", None, False
        ops = torch.ops.hgemm
        torch.library.opcheck(ops.gemm.default, (a, b.t(), None, bias, *scalars))
        torch.library.opcheck(ops.gemm.default, (a, b.t(), random(8, 4, grad=True), None, *scalars))
        torch.library.opcheck(ops.gemm.default, (a[None], b.t()[None], None, None, *scalars))
        torch.library.opcheck(ops.gemm_aux.default, (a, b.t(), None, bias, 1.0, 0.0, "silu", torch.float32, False))
        torch.library.opcheck(ops.gemm_out.default, (a.detach(), b.detach().t(), None, None, 1.0, 0.0, "none",
                                                     torch.empty(8, 4).half(), False))
        torch.library.opcheck(ops.grouped_mm.default, (
            random(8, 16, dtype=torch.bfloat16, grad=True), random(2, 16, 8, dtype=torch.bfloat16, grad=True),
            torch.tensor([3, 8], dtype=torch.int32), True, False))

    def test_compile(self):
        def model(x, w1, b1, w2, ends):
            y = ht.linear(x, w1, b1, activation="gelu_erf")
            y = ht.addmm(y, y, w2, beta=0.5)
            z = ht.bmm(y[None], w2[None])[0] + ht.mm(y, w2, out_dtype=torch.float32)
            return z + ht.grouped_mm(y, w2[None].expand(2, -1, -1), offs=ends)

        for dynamic in (False, True):
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
            for rows in (6, 9):
                leaves = [random(*s, dtype=torch.bfloat16, grad=True) for s in ((rows, 16), (8, 16), (8,), (8, 8))]
                ends = torch.tensor([4, rows], dtype=torch.int32)
                both = [f(*leaves, ends) for f in (model, compiled)]
                torch.testing.assert_close(*both, rtol=0, atol=0)
                torch.testing.assert_close(*[torch.autograd.grad(y.sum(), leaves) for y in both], rtol=0, atol=0)

    def test_wrong_arguments_in_a_compiled_function(self):
        with self.assertRaisesRegex(Exception, "b: its shape"):
            torch.compile(ht.mm, fullgraph=True, backend="aot_eager")(random(8, 16), random(15, 4))


class Overrides(unittest.TestCase):
    def setUp(self):
        self.before = ht.counts()
        ht.enable(dispatch_key="CPU")
        self.addCleanup(ht.disable)

    def counted(self):
        now = ht.counts()
        found = {key: now[key] - self.before.get(key, 0) for key in now if now[key] != self.before.get(key, 0)}
        self.before = now
        return found

    def test_served(self):
        a, b, c = random(8, 16), random(16, 4), random(8, 4)
        cases = [lambda: a @ b, lambda: torch.mm(a, b), lambda: torch.addmm(c, a, b), lambda: torch.addmm(c[0], a, b),
                 lambda: torch.mm(a, b, out=torch.empty(8, 4).half()), lambda: functional.linear(a, b.t(), c[0]),
                 lambda: torch.bmm(a[None], b[None]), lambda: torch.baddbmm(c[None], a[None], b[None]),
                 lambda: torch.einsum("ik,kj->ij", a, b), lambda: torch.nn.Linear(16, 4).half()(a)]
        served = [case() for case in cases[:-1]]
        cases[-1]()
        self.assertEqual(self.counted(), {"served": len(cases)})
        ht.disable()
        for ours, case in zip(served, cases):
            assert_close(ours, case())
        self.assertEqual(self.counted(), {})

    def test_grouped_mm(self):
        a, b = random(10, 16, dtype=torch.bfloat16, grad=True), random(2, 16, 8, dtype=torch.bfloat16, grad=True)
        ends = torch.tensor([3, 10], dtype=torch.int32)
        ours = torch._grouped_mm(a, b, offs=ends)
        self.assertEqual(self.counted(), {"served": 1})
        gradients = torch.autograd.grad(ours, (a, b), torch.ones_like(ours))
        self.assertEqual(self.counted(), {"served": 2})
        ht.disable()
        assert_close(ours, torch._grouped_mm(a, b, offs=ends))
        theirs = torch.autograd.grad(torch._grouped_mm(a, b, offs=ends), (a, b), torch.ones_like(ours))
        for our, their in zip(gradients, theirs):
            assert_close(our, their)

    def test_gradients_are_served(self):
        layer, x = torch.nn.Linear(16, 4).bfloat16(), random(8, 16, dtype=torch.bfloat16, grad=True)
        layer(x).sum().backward()
        self.assertEqual(self.counted(), {"served": 3})
        ours = x.grad.clone(), layer.weight.grad.clone()
        ht.disable()
        x.grad = layer.weight.grad = None
        layer(x).sum().backward()
        assert_close(ours[0], x.grad)
        assert_close(ours[1], layer.weight.grad)

    def test_what_is_not_served_is_torchs(self):
        a, b = random(8, 16), random(16, 4)
        assert_close(a.float() @ b.float(), a.double() @ b.double())
        torch.mm(torch.ones(2, 2, dtype=torch.int64), torch.ones(2, 2, dtype=torch.int64))
        self.assertEqual(self.counted(), {})
        with self.assertRaises(RuntimeError):
            torch.mm(a, b.float())
        with self.assertRaises(RuntimeError):
            torch.mm(a, a)
        with self.assertRaises(RuntimeError):
            torch.addmm(random(3), a, b)
        self.assertEqual(self.counted(), {"arguments: mat2": 2, "arguments: input": 1})
        grown = torch.mm(a, b, out=torch.empty(0).half())  # which torch resizes
        assert_close(grown, a.double() @ b.double())
        torch.mm(a, random(16, 16), out=a)
        self.assertEqual(self.counted(), {"served": 1, "libhgemm: INVALID_ARGUMENT": 1})

    def test_in_place_and_by_vectors(self):
        a, b, c, v = random(8, 16), random(16, 4), random(8, 4), random(16)
        product = a.double() @ b.double()
        assert_close(c.clone().addmm_(a, b, beta=2), product + 2 * c.double())
        assert_close(c[None].clone().baddbmm_(a[None], b[None], alpha=2), (2 * product + c.double())[None])
        assert_close(a @ v, a.double() @ v.double())
        assert_close(torch.mv(a, random(32)[::2].copy_(v)), a.double() @ v.double())
        sums = a.double() @ v.double() + c[:, 0].double()
        assert_close(torch.addmv(c[:, 0], a, v), sums)
        assert_close(c[:, 0].clone().addmv_(a, v), sums)
        assert_close(torch.addmv(c[:, 0], a, v, out=torch.empty(8).half()), sums)
        assert_close(torch.addmv(c[0, 0], a, v), a.double() @ v.double() + c[0, 0].double())
        self.assertEqual(self.counted(), {"served": 8})

    def test_other_keys(self):
        for wrong in (ht.enable, lambda **options: ht.batch_invariant(**options).__enter__()):
            with self.assertRaisesRegex(ValueError, "^dispatch_key: "):
                wrong(dispatch_key="HPU")
        random(2, 2) @ random(2, 2)  # as before
        self.assertEqual(self.counted(), {"served": 1})

    def test_strict(self):
        ht.enable(dispatch_key="CPU", strict=True)
        with self.assertRaisesRegex(RuntimeError, "aten::mm is not served.*mat2: its shape"):
            torch.mm(random(8, 16), random(8, 16))
        assert_close(torch.ones(2, 2) @ torch.ones(2, 2), 2 * torch.ones(2, 2))

    def test_blocks_that_overlap(self):
        """As those of two threads may."""
        a, b = torch.ones(2, 8, dtype=torch.float16), torch.ones(8, 2, dtype=torch.float16)

        def invariant():  # in the default mode one row has an order of sums of its own
            one, many = random(1, 4096), random(4096, 40)
            return torch.equal(one @ many, (one.expand(70, -1).contiguous() @ many)[:1])

        self.assertFalse(all(invariant() for _ in range(20)))
        first, second = ht.batch_invariant(dispatch_key="CPU"), ht.batch_invariant(dispatch_key="CPU")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        self.assertTrue(all(invariant() for _ in range(20)))
        ht.enable(dispatch_key="CPU")
        self.assertTrue(all(invariant() for _ in range(20)))
        second.__exit__(None, None, None)
        self.assertFalse(all(invariant() for _ in range(20)))
        a @ b
        self.assertGreater(self.counted()["served"], 0)

    def test_batch_invariant(self):
        a, b = random(300, 513), random(513, 70)
        with ht.batch_invariant(dispatch_key="CPU", strict=True):
            whole = a @ b
            assert_close(whole, a.double() @ b.double())
            for rows in (1, 2, 9, 65, 299):
                self.assertTrue(torch.equal(a[:rows] @ b, whole[:rows]))

    def test_compiled_functions_of_torch(self):
        a, b = random(8, 16), random(16, 4)
        compiled = torch.compile(lambda x, y: torch.mm(x, y).relu(), fullgraph=True, backend="aot_eager")
        assert_close(compiled(a, b), (a.double() @ b.double()).relu())
        self.assertEqual(self.counted(), {"served": 1})


class WithoutTorch(unittest.TestCase):
    def test_the_import_says_so(self):
        code = "import sys; sys.modules['torch'] = None; import hgemm.torch"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("hgemm.torch needs PyTorch, which is not installed", done.stderr)


if __name__ == "__main__":
    unittest.main()
