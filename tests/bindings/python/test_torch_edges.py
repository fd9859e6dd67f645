"""hgemm.torch where something lies between a tensor and its numbers, or other threads are at work."""

import sys
import threading
import unittest
import warnings

from test_torch import assert_close, functional, ht, random, torch


class Tensors(unittest.TestCase):
    def test_a_negated_view_that_requires_a_gradient(self):
        a, b = random(4, 8), random(8, 5)
        for _ in range(2):  # the first product of a stream creates its handle
            x = torch._neg_view(a).requires_grad_()
            assert_close(ht.mm(x, b).detach(), -a.double() @ b.double())
            assert_close(ht.linear(x, b.t().contiguous(), activation="relu").detach(),
                         functional.relu(-a.double() @ b.double()))

    def test_meta_tensors(self):
        for grad in (False, True):
            x = torch.empty(4, 8, dtype=torch.float16, device="meta", requires_grad=grad)
            self.assertEqual(ht.mm(x, torch.empty(8, 5, dtype=torch.float16, device="meta")).shape, (4, 5))
            weight = torch.empty(5, 8, dtype=torch.float16, device="meta")
            self.assertEqual(ht.linear(x, weight, activation="relu").shape, (4, 5))

    def test_nothing_to_add(self):
        for function, shape in ((ht.addmm, (2, 2)), (ht.baddbmm, (1, 2, 2))):
            with self.assertRaisesRegex(TypeError, "input: is None"):
                function(None, random(*shape), random(*shape), alpha=2)

    def test_no_forward_mode(self):
        a, b = random(2, 2), random(2, 2)
        functions = (lambda x: ht.mm(x, b), lambda x: ht.linear(x, b, activation="silu"), lambda x: ht.addmm(x, b, b))
        for function in functions:
            with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivatives"):
                torch.func.jvp(function, (a,), (a,))
            with torch.autograd.forward_ad.dual_level():
                with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivatives"):
                    function(torch.autograd.forward_ad.make_dual(a, a))
                assert_close(ht.mm(b, b), b.double() @ b.double())


class Arguments(unittest.TestCase):
    """Errors name what the caller wrote."""

    def refused(self, kind, text, function, *args, **options):
        with self.assertRaisesRegex(kind, f"^{text}"):
            function(*args, **options)

    def test_types_of_elements(self):
        a, b, w, v = random(8, 16), random(16, 4), random(4, 16), random(4)
        wide = lambda x: x.float()  # noqa: E731
        for text, function, *args in (("input: is torch.float32, must be torch.float16", ht.linear, wide(a), w),
                                      ("weight: is torch.float32, must be .* as input", ht.linear, a, wide(w)),
                                      ("bias: is torch.float64", ht.linear, a, w, v.double()),
                                      ("mat1: is torch.float32", ht.addmm, v, wide(a), b),
                                      ("mat2: is torch.float32", ht.addmm, v, a, wide(b)),
                                      ("input: is torch.float64", ht.addmm, v.double(), a, b),
                                      ("batch2: is torch.float32", ht.baddbmm, v, a[None], wide(b[None])),
                                      ("mat_b: is torch.float32", ht.grouped_mm, a[None], wide(b[None]))):
            for leaves in (args, [x.detach().requires_grad_() for x in args]):
                self.refused(TypeError, text, function, *leaves)
        self.refused(TypeError, "out: is torch.float64", ht.mm, a, b, out=torch.empty(8, 4).double())
        with torch.autocast("cpu"):
            self.refused(TypeError, "input: is torch.float32.*does not cast under autocast", ht.linear, wide(a), w)

    def test_shapes_and_places(self):
        a, b, w, v = random(8, 16), random(16, 4), random(4, 16), random(4)
        self.refused(ValueError, "mat2: its shape .15, 4. does not fit that of mat1", ht.addmm, v, a, b[:15])
        self.refused(ValueError, "batch2: its shape", ht.baddbmm, v, a[None], b[None, :15])
        self.refused(ValueError, "mat2: is on meta, must be on cpu as mat1", ht.addmm, v, a, b.to("meta"))
        self.refused(ValueError, "input: is on meta, must be on cpu as mat1", ht.addmm, v.to("meta"), a, b)
        self.refused(ValueError, "weight: is on meta, must be on cpu as input", ht.linear, a, w.to("meta"))
        self.refused(ValueError, "mat_b: 2 dimensions", ht.grouped_mm, a[None], b)

    def test_what_is_no_tensor(self):
        a, b = random(8, 16), random(16, 4)
        array = a.numpy()
        for wrong, what in ((array, "numpy.ndarray"), (None, "None"), ([[1.0]], "builtins.list")):
            must = f": is {what}, must be a torch.Tensor"
            for name, function, args in (("input", ht.mm, (wrong, b)), ("mat2", ht.mm, (a, wrong)),
                                         ("input", ht.bmm, (wrong, b)), ("input", ht.linear, (wrong, b.t())),
                                         ("weight", ht.linear, (a, wrong)), ("input", ht.addmm, (wrong, a, b)),
                                         ("mat1", ht.addmm, (b[0], wrong, b)),
                                         ("batch2", ht.baddbmm, (b, a[None], wrong)),
                                         ("mat_a", ht.grouped_mm, (wrong, b)), ("mat_b", ht.grouped_mm, (a, wrong))):
                with self.subTest(name=name, function=function.__name__, wrong=what):
                    self.refused(TypeError, name + must, function, *args)
                    with torch.no_grad():
                        self.refused(TypeError, name + must, function, *args)
        self.refused(TypeError, "bias: is numpy.ndarray, must be", ht.linear, a, b.t(), array)
        self.refused(TypeError, "offs: is numpy.ndarray, must be", ht.grouped_mm, a, b[None], offs=array)
        self.refused(TypeError, "out: is numpy.ndarray, must be", ht.mm, a, b, out=array)

    def test_results_without_elements(self):
        """Torch resizes them."""
        a, b, v = random(8, 16), random(16, 4), random(4)
        exact = a.double() @ b.double()
        for function, right in ((lambda out: ht.mm(a, b, out=out), exact),
                                (lambda out: ht.mm(a[:0], b, out=out), exact[:0]),
                                (lambda out: ht.addmm(v, a, b, out=out), exact + v.double()),
                                (lambda out: ht.bmm(a[None], b[None], out=out), exact[None])):
            for dtype in (torch.float16, torch.float32):
                out = torch.empty(0, dtype=dtype)
                self.assertIs(function(out), out)
                assert_close(out, right)
        out = torch.empty(0).half()
        self.refused(ValueError, "mat2: its shape", ht.mm, a, b[:15], out=out)
        self.assertEqual(out.shape, (0,))
        self.refused(ValueError, "out: its shape is .2, 2., must be .8, 4.", ht.mm, a, b, out=torch.empty(2, 2).half())


class Overrides(unittest.TestCase):
    def test_what_torch_refuses_and_the_functions_take(self):
        a, b, v = random(8, 16), random(16, 4), random(4)
        batch, ends = random(1, 16, 8, dtype=torch.bfloat16), torch.tensor([8])
        cases = [lambda: torch.mm(a[None], b[None]), lambda: torch.bmm(a, b), lambda: torch.addmm(v, a[None], b[None]),
                 lambda: torch.addmv(v, random(2, 2, 4), random(2, 4)), lambda: torch.addmm(v.float(), a, b),
                 lambda: torch.baddbmm(random(1, 8, 4).float(), a[None], b[None]),
                 lambda: random(8, 4).float().addmm_(a, b), lambda: functional.linear(a, b.t(), v.float()),
                 lambda: torch.mm(a, b, out=torch.empty(8, 4)), lambda: torch.addmm(v, a, b, out=torch.empty(8, 4)),
                 lambda: torch.addmv(random(8), a, random(16), out=torch.empty(8)),
                 lambda: torch._grouped_mm(a.bfloat16(), batch, offs=ends)]
        ht.enable(dispatch_key="CPU")
        self.addCleanup(ht.disable)
        before = ht.counts().get("served", 0)
        for i, case in enumerate(cases):
            with self.subTest(case=i), self.assertRaises(RuntimeError):
                case()
        self.assertEqual(ht.counts().get("served", 0), before)
        torch._grouped_mm(a.bfloat16(), batch, offs=ends.int())
        self.assertEqual(ht.counts()["served"], before + 1)


class Compiler(unittest.TestCase):
    def test_kernels_outside_of_graphs(self):
        """torch.compile() runs them, and would trace them, where a graph breaks."""
        def broken(function, *arguments):
            torch._dynamo.graph_break()
            try:
                torch._dynamo.graph_break()
                return function(*arguments)
            finally:
                pass

        a, b, v = random(24, 32), random(16, 40), random(40)
        apart, exact = a[:, ::2], a[:, ::2].double() @ b.double()
        cases = [(lambda *x: torch.addmm(*x, alpha=2, beta=0.5), (v, apart, b), 2 * exact + v.double() / 2),
                 (torch.mm, (apart, b), exact),
                 (torch.ops.hgemm.gemm.default, (apart, b, None, v, 1.0, 0.0, "none", None, False), exact + v.double())]
        ht.enable(dispatch_key="CPU")
        self.addCleanup(ht.disable)
        for i, (function, arguments, want) in enumerate(cases):
            torch._dynamo.reset()
            with self.subTest(case=i), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert_close(torch.compile(broken, backend="aot_eager")(function, *arguments), want)
                self.assertEqual([x for x in caught if "how to trace" in str(x.message)], [])


class Threads(unittest.TestCase):
    def test_switching_while_others_multiply(self):
        a, ended, wrong = torch.ones(2, 2, dtype=torch.float16), threading.Event(), []

        def multiply():
            while not ended.is_set():
                if not torch.equal(torch.mm(a, a), 2 * a):
                    wrong.append(1)

        threads = [threading.Thread(target=multiply) for _ in range(2)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for _ in range(2000):
                ht.enable(dispatch_key="CPU")
                ht.disable()
        finally:
            ended.set()
            for thread in threads:
                thread.join()
            sys.setswitchinterval(interval)
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
