"""Symmetric results of hgemm.torch on CPU tensors: syrk, syrkx, newton_schulz, and the example that trains by them."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from test_torch import DTYPES, assert_close, ht, random, torch
from hgemm import c
from hgemm.torch import _extension, _handles, _symmetric
from torch.optim import _muon
from torch.utils.flop_counter import FlopCounterMode

SOURCE = Path(os.environ.get("HGEMM_SOURCE", Path(__file__).parents[3]))
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def mirrored(d):
    """Its upper half, and that as the lower one."""
    return d.triu() + d.triu(1).mT


def layouts(n, k, dtype):
    """Of all strides that BLAS reads, and some of others."""
    x, wide = random(n, k, dtype=dtype), random(n + 3, k + 5, dtype=dtype)
    return [x, x.t().contiguous().t(), wide[1:-2, 2:-3], wide.t().contiguous().t()[1:-2, 2:-3],
            random(n, 2 * k, dtype=dtype)[:, ::2], random(k, n, dtype=dtype).t()[::1]]


class Products(unittest.TestCase):
    def check(self, d, exact, dtype):
        self.assertEqual((d.dtype, d.shape), (dtype, exact.shape))
        self.assertTrue(torch.equal(d, d.mT))
        assert_close(d, mirrored(exact))

    def test_types_and_sizes(self):
        for dtype in DTYPES:
            for n, k in ((1, 1), (5, 33), (64, 16), (300, 40), (600, 24), (0, 4), (4, 0)):
                for out_dtype in (None, torch.float32):
                    a, b, added = (random(*shape, dtype=dtype) for shape in ((n, k), (n, k), (n, n)))
                    wide = out_dtype or dtype
                    self.check(ht.syrk(a, out_dtype=out_dtype), a.double() @ a.double().mT, wide)
                    self.check(ht.syrk(a, alpha=-0.5, beta=2, c=added, out_dtype=out_dtype),
                               2 * added.double() - 0.5 * (a.double() @ a.double().mT), wide)
                    self.check(ht.syrkx(a, b, alpha=2, beta=-1, c=added.float(), out_dtype=out_dtype),
                               2 * (a.double() @ b.double().mT) - added.double(), wide)

    def test_products_of_matrices_that_commute(self):
        x = random(40, 40).double() / 8
        s = x @ x.mT
        a, b = s.half(), (s @ s).half()
        assert_close(ht.syrkx(a, b), s @ s @ s)

    def test_operands_of_any_strides(self):
        for dtype in DTYPES:
            for a in layouts(24, 16, dtype):
                for added in layouts(24, 24, dtype):
                    self.check(ht.syrk(a, c=added), a.double() @ a.double().mT + added.double(), dtype)
                for b in layouts(24, 16, dtype):
                    self.check(ht.syrkx(a, b), a.double() @ b.double().mT, dtype)

    def test_batches(self):
        a, b, added = random(3, 20, 8), random(3, 20, 8), random(3, 20, 20)
        for left in (a, a.mT.contiguous().mT, a[::2].expand(2, 20, 8), a[:1].expand(3, 20, 8), a[:, :, ::2], a[:0],
                     random(20, 3, 8).transpose(0, 1)):
            exact = left.double() @ left.double().mT
            self.check(ht.syrk(left), exact, torch.float16)
            matrix = added[0].expand(len(left), 20, 20)
            self.check(ht.syrk(left, beta=0.5, c=matrix), exact + 0.5 * matrix.double(), torch.float16)
        self.check(ht.syrkx(a, b, beta=1, c=added), a.double() @ b.double().mT + added.double(), torch.float16)

    def test_c_that_is_not_read(self):
        a, nothing = random(8, 16), torch.full((8, 8), float("nan")).half()
        self.check(ht.syrk(a, beta=0, c=nothing), a.double() @ a.double().mT, torch.float16)
        below = torch.full((8, 8), float("inf")).half().tril(-1) + random(8, 8)
        self.check(ht.syrk(a, beta=1, c=below), a.double() @ a.double().mT + below.triu().double(), torch.float16)

    def test_what_the_library_is_told(self):
        found = []

        def call(function, args, *rest, original=_handles.call):
            found.append((args.uplo, args.a == args.b))
            original(function, args, *rest)

        a = random(12, 16)
        with mock.patch.object(_handles, "call", call), mock.patch.object(_extension, "enabled", False):
            ht.syrk(a)
            ht.syrk(a[:, ::2])  # copied once
            ht.syrkx(a, a.clone())
            ht.addmm(a[:, :12], a, a.t(), alpha=2)
        self.assertEqual(found[:3], [(c.Uplo.BOTH, True), (c.Uplo.BOTH, True), (c.Uplo.BOTH, False)])
        self.assertTrue(all(uplo == c.Uplo.NONE for uplo, _ in found[3:]))

    def test_by_the_extension(self):
        """Where there is one, it serves what needs no copy, with the bits of the operators."""
        served = []

        def serve(*arguments, original=_symmetric.serve_plain):
            served.append(original(*arguments))
            return served[-1]

        a, b, added = random(12, 16), random(12, 16), random(12, 12)
        calls = (lambda: ht.syrk(a), lambda: ht.syrk(a.mT), lambda: ht.syrkx(a, b), lambda: ht.syrk(a, c=added),
                 lambda: ht.syrk(a, alpha=0.5, beta=-2, c=added), lambda: ht.syrk(a, out_dtype=torch.float32),
                 lambda: ht.syrk(random(0, 16)), lambda: ht.syrk(torch.stack([a, b])),
                 lambda: ht.syrkx(torch.stack([a, b]), torch.stack([b, a]), c=torch.stack([added, added])))
        ht.mm(a, b.t())  # from then on the extension has a handle
        for call in calls:
            with mock.patch.object(_symmetric, "serve_plain", serve):
                ours = call()
            with mock.patch.object(_symmetric, "serve_plain", lambda *_: None):
                self.assertTrue(torch.equal(call(), ours))
        self.assertEqual([result is not None for result in served], [_extension.enabled] * len(calls))
        with mock.patch.object(_symmetric, "serve_plain", serve):
            del served[:]
            ht.syrk(a[:, ::2])
            ht.syrk(a, alpha=2)
            ht.syrk(a.requires_grad_())
        self.assertEqual(served, [None, None])

    def test_batch_invariance(self):
        a = random(300, 2048, dtype=torch.bfloat16)
        with ht.batch_invariant(dispatch_key="CPU"):
            symmetric, whole = ht.syrk(a, out_dtype=torch.float32), ht.mm(a, a.t(), torch.float32)
        self.assertTrue(torch.equal(symmetric, mirrored(whole)))


class Gradients(unittest.TestCase):
    """Against torch's of the plain product, in float64."""

    def check(self, ours, plain, leaves, grad):
        wide = [x.detach().double().requires_grad_() for x in leaves]
        found = torch.autograd.grad(ours(*leaves), leaves, grad)
        for our, right, leaf in zip(found, torch.autograd.grad(plain(*wide), wide, grad.double()), leaves, strict=True):
            self.assertEqual((our.dtype, our.shape), (leaf.dtype, leaf.shape))
            # G + G.mT is rounded before the product, and a multiple of G to its type.
            tolerance = 16 * max(torch.finfo(x.dtype).eps for x in (our, grad))
            torch.testing.assert_close(our.double(), right, rtol=tolerance, atol=tolerance)

    def test_of_all_operands(self):
        for dtype in DTYPES:
            for batch in ((), (3,)):
                for out_dtype in (None, torch.float32):
                    a, b = (random(*batch, 20, 12, dtype=dtype, grad=True) for _ in range(2))
                    added = random(*batch, 20, 20, dtype=dtype).float().requires_grad_()
                    grad = random(*batch, 20, 20, dtype=out_dtype or dtype)
                    self.check(lambda a, added: ht.syrk(a, alpha=0.5, beta=-2, c=added, out_dtype=out_dtype),
                               lambda a, added: 0.5 * a @ a.mT - 2 * added, (a, added), grad)
                    self.check(lambda a, b, added: ht.syrkx(a, b, alpha=2, beta=3, c=added, out_dtype=out_dtype),
                               lambda a, b, added: 2 * a @ b.mT + 3 * added, (a, b, added), grad)

    def test_of_strided_operands_and_of_some(self):
        for a in layouts(20, 12, torch.float16):
            grad, b = random(20, 20), random(20, 12)
            self.check(ht.syrk, lambda a: a @ a.mT, [a.detach().requires_grad_()], grad.t())
            self.check(lambda a: ht.syrkx(b, a), lambda a: b.double() @ a.mT, [a.detach().requires_grad_()], grad)

    def test_of_gradients(self):
        a, grad = random(10, 6, grad=True), random(10, 10, grad=True)
        ours, = torch.autograd.grad(ht.syrk(a), a, grad, create_graph=True)
        wide = [x.detach().double().requires_grad_() for x in (a, grad)]
        right, = torch.autograd.grad(wide[0] @ wide[0].mT, wide[0], wide[1], create_graph=True)
        for our, their in zip(torch.autograd.grad(ours.float().square().sum(), (a, grad)),
                              torch.autograd.grad(right.square().sum(), wide)):
            torch.testing.assert_close(our.double(), their, rtol=0.02, atol=0.5)

    def test_without_c(self):
        a, added = random(6, 4, grad=True), random(6, 6, grad=True)
        self.assertFalse(torch.autograd.grad(ht.syrk(a, beta=0, c=added).sum(), added)[0].any())


class Torch(unittest.TestCase):
    """As operators among others."""

    def test_opcheck(self):
        a, b, added = random(4, 16, grad=True), random(4, 16, grad=True), random(4, 4, grad=True)
        torch.library.opcheck(torch.ops.hgemm.syrk.default, (a, added, 0.5, 2.0, None, False))
        torch.library.opcheck(torch.ops.hgemm.syrk.default, (a[None].detach(), None, 1.0, 0.0, torch.float32, True))
        torch.library.opcheck(torch.ops.hgemm.syrkx.default, (a, b, added, 0.5, 2.0, torch.float32, False))

    def test_compile(self):
        def model(a, b):
            gram = ht.syrk(a)
            return ht.syrkx(ht.syrk(gram, alpha=0.5, beta=-1, c=gram), gram, out_dtype=torch.float32), ht.syrkx(a, b)

        compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
        for rows in (3, 5):
            leaves = [random(rows, 8, grad=True), random(rows, 8, grad=True)]
            both = [function(*leaves) for function in (model, compiled)]
            torch.testing.assert_close(*both, rtol=0, atol=0)
            gradients = [torch.autograd.grad([x.sum() for x in results], leaves) for results in both]
            torch.testing.assert_close(*gradients, rtol=0, atol=0)

    def test_transforms(self):
        a = random(3, 6, 8)
        torch.testing.assert_close(torch.func.vmap(ht.syrk)(a), ht.syrk(a), rtol=0, atol=0)
        of_a = torch.func.grad(lambda a: ht.syrk(a).sum())(a[0])
        torch.testing.assert_close(of_a, ht.mm(torch.full((6, 6), 2.0).half(), a[0]), rtol=0, atol=0)
        for function in (ht.syrk, lambda a: ht.syrkx(a, a)):
            with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivatives"):
                torch.func.jvp(function, (a,), (a,))

    def test_flops(self):
        with FlopCounterMode(display=False) as counter:
            ht.syrk(random(2, 6, 8))
            ht.syrkx(random(6, 8), random(6, 8))
        self.assertEqual(counter.get_total_flops(), (2 + 1) * 6 * 7 * 8)

    def test_refusals(self):
        a, b, added = random(4, 8), random(4, 8), random(4, 4)
        for call, kind, text in (
                (lambda: ht.syrk(None), TypeError, "a: is None, must be a torch.Tensor"),
                (lambda: ht.syrk(a.float()), TypeError, "a: is torch.float32, must be torch.float16 or"),
                (lambda: ht.syrk(a[0]), ValueError, "a: 1 dimensions, must be 2 or 3"),
                (lambda: ht.syrk(a[None, None]), ValueError, "a: 4 dimensions, must be 2 or 3"),
                (lambda: ht.syrk(a, beta=1), ValueError, "c: must be given where beta is not 0"),
                (lambda: ht.syrk(a, c=1.0), TypeError, "c: is builtins.float, must be a torch.Tensor"),
                (lambda: ht.syrk(a, beta=1, c=b), ValueError, r"c: its shape is \(4, 8\), must be \(4, 4\)"),
                (lambda: ht.syrk(a[None], beta=1, c=added), ValueError, "c: its shape is"),
                (lambda: ht.syrk(a, beta=1, c=added.bfloat16()), TypeError, "c: is torch.bfloat16, must be"),
                (lambda: ht.syrk(a, out_dtype=torch.float64), TypeError, "out_dtype: is torch.float64"),
                (lambda: ht.syrkx(a, b.bfloat16()), TypeError, "b: is torch.bfloat16, must be torch.float16 as a"),
                (lambda: ht.syrkx(a, b[:3]), ValueError, r"b: its shape is \(3, 8\), must be \(4, 8\)"),
                (lambda: ht.syrkx(a, b[None]), ValueError, r"b: its shape is \(1, 4, 8\), must be \(4, 8\)"),
                (lambda: ht.syrkx(a, b.to("meta")), ValueError, "b: is on meta, must be on cpu as a"),
                (lambda: ht.newton_schulz(a[0]), ValueError, "x: 1 dimensions, must be 2 or 3"),
                (lambda: ht.newton_schulz(a.int()), TypeError, "x: is torch.int32, must be of a floating type"),
                (lambda: ht.newton_schulz(1), TypeError, "x: is builtins.int, must be a torch.Tensor"),
                (lambda: ht.newton_schulz([a, 1]), TypeError, r"x\[1\]: is builtins.int, must be a torch.Tensor"),
                (lambda: ht.newton_schulz((a[0],)), ValueError, r"x\[0\]: 1 dimensions, must be 2 or 3"),
                (lambda: ht.newton_schulz(a, 5, (1, 2)), ValueError, "coefficients: 2 of them, must be 3")):
            with self.subTest(text), self.assertRaisesRegex(kind, f"^{text}"):
                call()


class NewtonSchulz(unittest.TestCase):
    def torchs(self, x, steps=5):
        return _muon._zeropower_via_newtonschulz(x.clone(), COEFFICIENTS, steps, 1e-7)

    def test_as_torch_and_orthogonal(self):
        for shape in ((64, 64), (48, 200), (200, 48), (1, 16), (300, 520)):
            for dtype in (torch.float32, *DTYPES):
                x = random(*shape, dtype=dtype)
                before, ours = x.clone(), ht.newton_schulz(x)
                self.assertEqual((ours.dtype, ours.shape), (torch.bfloat16, x.shape))
                self.assertTrue(torch.equal(x, before))
                theirs = self.torchs(x)
                error = (ours.double() - theirs.double()).norm() / theirs.double().norm()
                self.assertLess(error, 2.0**-6)
                if shape != (64, 64):  # whose least singular value may be too small
                    values = torch.linalg.svdvals(ours.float())
                    self.assertTrue(0.6 < values.min() and values.max() < 1.3, values)

    def test_batches(self):
        for shape in ((3, 24, 40), (3, 40, 24), (0, 8, 8)):
            x = random(*shape) * torch.tensor([1.0, 1e-3, 100.0])[:shape[0], None, None]
            ours = ht.newton_schulz(x)
            self.assertEqual(ours.shape, x.shape)
            for each, alone in zip(ours, x):
                torch.testing.assert_close(each.double(), self.torchs(alone).double(), rtol=0.02, atol=0.01)

    def test_lists_of_shapes(self):
        shapes = ((24, 40), (40, 24), (3, 24, 40), (16, 16), (2, 40, 24), (0, 16, 16), (24, 40))
        tensors = [random(*shape, dtype=(torch.float32, torch.bfloat16)[i % 2]) for i, shape in enumerate(shapes)]
        with mock.patch.object(_symmetric, "_orthogonal", wraps=_symmetric._orthogonal) as batches:
            results = ht.newton_schulz(tensors)
        self.assertEqual([tuple(call.args[0].shape) for call in batches.mock_calls], [(8, 24, 40), (1, 16, 16)])
        self.assertIsInstance(results, list)
        for x, ours in zip(tensors, results, strict=True):
            self.assertEqual((ours.dtype, ours.shape), (torch.bfloat16, x.shape))
            torch.testing.assert_close(ours.double(), ht.newton_schulz(x).double(), rtol=0.02, atol=0.01)
        self.assertEqual(ht.newton_schulz([]), [])
        with ht.batch_invariant():
            for x, ours in zip(tensors, ht.newton_schulz(tuple(tensors))):
                self.assertTrue(torch.equal(ours, ht.newton_schulz(x)))

    def test_zeros_and_other_arguments(self):
        self.assertFalse(ht.newton_schulz(torch.zeros(4, 8)).any())
        x = random(8, 12, dtype=torch.bfloat16)
        for steps in (0, 1):
            torch.testing.assert_close(ht.newton_schulz(x, steps), self.torchs(x, steps), rtol=0.01, atol=0.01)
        cubic = (1.5, -0.5, 0.0)
        exact = torch.linalg.svd(x.double(), full_matrices=False)
        torch.testing.assert_close(ht.newton_schulz(x, 20, cubic).double(), exact.U @ exact.Vh, rtol=0.02, atol=0.02)

    def test_gradients_and_compile(self):
        x, grad = random(6, 10).float().requires_grad_(), random(6, 10, dtype=torch.bfloat16)
        function = torch.compile(ht.newton_schulz, fullgraph=True, backend="aot_eager")
        eager, compiled = (torch.autograd.grad(f(x, 2), x, grad)[0] for f in (ht.newton_schulz, function))
        torch.testing.assert_close(eager, compiled)

        def plain(x):
            y = x / x.norm()
            for _ in range(2):
                gram = y @ y.mT
                y = 3.4445 * y + (-4.7750 * gram + 2.0315 * gram @ gram) @ y
            return y

        wide = x.detach().double().requires_grad_()
        right, = torch.autograd.grad(plain(wide), wide, grad.double())
        self.assertLess((eager.double() - right).norm() / right.norm(), 0.05)


@contextlib.contextmanager
def counted():
    """The calls of newton_schulz, and what is printed meanwhile."""
    calls, printed, original = [], io.StringIO(), ht.newton_schulz

    def counting(*arguments):
        calls.append(arguments)
        return original(*arguments)

    with mock.patch.object(ht, "newton_schulz", counting), contextlib.redirect_stdout(printed):
        yield calls, printed


class Examples(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, str(SOURCE / "bindings/python/examples"))

    def check_losses(self, lines, steps, least):
        """Both ways begin alike, stay alike, and learn."""
        rows = [[float(x) for x in line.split()] for line in lines]
        self.assertEqual([row[0] for row in rows], [*range(steps)])
        self.assertEqual(rows[0][1], rows[0][2])
        for _, torchs, ours in rows:
            self.assertLess(abs(torchs - ours), 0.02)
        self.assertLess(rows[-1][2], least * rows[0][2])

    def test_a_network_learns_both_ways(self):
        import muon
        with mock.patch.object(_muon, "_zeropower_via_newtonschulz", _muon._zeropower_via_newtonschulz), \
                counted() as (products, printed):
            muon.main(["--steps", "12", "--width", "64"])
        self.assertEqual(len(products), 12 * 3)
        self.check_losses(printed.getvalue().splitlines()[1:], 12, 0.9)

    def test_a_gpt_learns_both_ways(self):
        import gpt_muon
        with tempfile.TemporaryDirectory() as folder, counted() as (products, printed):
            picture = Path(folder) / "losses.svg"
            gpt_muon.main(["--steps", "4", "--width", "32", "--layers", "1", "--picture", str(picture)])
            self.assertEqual(picture.read_text(encoding="utf-8").count("<polyline"), 2)
        self.assertEqual(len(products), 4 * 4)
        self.check_losses(printed.getvalue().splitlines()[1:-1], 4, 1)


if __name__ == "__main__":
    unittest.main()
