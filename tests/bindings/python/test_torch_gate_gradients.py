"""Gradients of gated products of hgemm.torch, on CPU tensors."""

import unittest
from functools import partial
from itertools import product

from test_torch import DTYPES, assert_close, functional, ht, random, torch
from test_torch_gates import close_in_norm, eighths, forms, gated, wide
from hgemm.torch import _gates


class LinearGradients(unittest.TestCase):
    def test_all_forms(self):
        for dtype, bound in zip(DTYPES, (2e-3, 1.5e-2)):
            for form in forms():
                leaves = [eighths(*shape, dtype=dtype).requires_grad_() for shape in ((6, 5, 40), (48, 40), (48,))]
                right = wide(*leaves)
                grad = random(6, 5, 24, dtype=dtype)
                ours = torch.autograd.grad(ht.gated_linear(*leaves, **form), leaves, grad)
                theirs = torch.autograd.grad(gated(functional.linear(*right), **form), right, grad.double())
                with self.subTest(**form):
                    self.assertEqual([x.dtype for x in ours], [dtype] * 3)
                    close_in_norm(self, ours, theirs, bound)

    def test_of_one_operand(self):
        x, weight = random(6, 40, grad=True), (random(48, 40) / 6).requires_grad_()
        for left, right, leaf in ((x, weight.detach(), x), (x.detach(), weight, weight)):
            ours, = torch.autograd.grad(ht.gated_linear(left, right).sum(), leaf)
            both = wide(x, weight)
            close_in_norm(self, [ours], [torch.autograd.grad(gated(both[0] @ both[1].t()).sum(), both)[leaf is weight]],
                          2e-3)

    def test_of_weights_is_stored_as_weights(self):
        """Torch copies it else."""
        for weight in (random(48, 40), random(40, 48).t()):
            weight.requires_grad_()
            grad, = torch.autograd.grad(ht.gated_linear(random(6, 40), weight).sum(), weight)
            self.assertEqual(grad.stride(), weight.stride())

    def test_what_is_kept(self):
        """The arguments, and of bfloat16 the product."""
        for dtype in DTYPES:
            x, weight, kept = random(6, 40, dtype=dtype, grad=True), random(48, 40, dtype=dtype, grad=True), []
            with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
                ht.gated_linear(x, weight)
            others = [t for t in kept if t.data_ptr() not in (x.data_ptr(), weight.data_ptr())]
            self.assertEqual([t.shape for t in others], [(6, 48)] if dtype == torch.bfloat16 else [])
            for product in others:
                assert_close(product, x.double() @ weight.double().t())

    def test_checkpoints(self):
        """Which keep the arguments alone."""
        x, weight = random(6, 40, dtype=torch.bfloat16, grad=True), random(48, 40, dtype=torch.bfloat16, grad=True)
        grads = [torch.autograd.grad(f(ht.gated_linear, x, weight).sum(), (x, weight))
                 for f in (lambda f, *x: f(*x), partial(torch.utils.checkpoint.checkpoint, use_reentrant=False))]
        torch.testing.assert_close(*grads, rtol=0, atol=0)

    def test_formulas(self):
        """By the library, and by torch where a gradient of the gradient is wanted."""
        for form in forms():
            block = form.get("gate_block") or 24
            gate = _gates.Gate(form["activation"] or "none", block, form.get("limit", 0.0), form.get("slope", 0.0),
                               form.get("offset", 0.0))
            for product, grad in ((random(6, 48), random(6, 24)), (random(48, 6).t().float(), random(24).expand(6, 24)),
                                  (random(6, 100)[:, :48].bfloat16(), random(6, 50)[:, 1:25].bfloat16())):
                with self.subTest(**form):
                    torch.testing.assert_close(torch.ops.hgemm.gate_gradient(product, grad, *gate),
                                               _gates.product_gradient(gate, product, grad))

    def test_beyond_float16(self):
        """The product is infinite in float16; the gradient is the derivative's limit."""
        weight = torch.full((2, 64), 1.0).half()
        for sign, activation in ((s, a) for s in (1, -1) for a in ("silu", "gelu_tanh", "gelu_erf", "relu")):
            weight[0] = 32.0 * sign
            x = torch.full((1, 64), 64.0).half().requires_grad_()
            grad, = torch.autograd.grad(ht.gated_linear(x, weight, activation=activation), x,
                                        torch.full((1, 1), 2.0**-12).half())
            right = wide(x)
            theirs, = torch.autograd.grad(gated(right[0] @ weight.double().t(), activation), right,
                                          torch.full((1, 1), 2.0**-12).double())
            self.assertTrue(grad.isfinite().all())
            torch.testing.assert_close(grad.double(), theirs, rtol=0.02, atol=1e-6)

    def test_beyond_float32(self):
        """As above, of a product that is infinite in float32 as well."""
        for activation, wanted in product(("silu", "gelu_tanh", "gelu_erf", "relu", "none"), (True, False)):
            with torch.set_grad_enabled(wanted):
                found = _gates.product_gradient(_gates.Gate(activation, 1, 0.0, 0.0, 0.0),
                                                torch.tensor([[torch.inf, 3.0]]), torch.tensor([[2.0]]).bfloat16())
            self.assertEqual(found.tolist(), [[6.0, torch.inf]])

    def test_of_no_numbers(self):
        """The same by the library and by torch: NaN stays NaN, minus infinity is flat."""
        special = torch.tensor([-torch.inf, torch.inf, torch.nan, 1.0])
        both = torch.cartesian_prod(special, special)
        grad = torch.full((16, 1), 2.0)
        for activation, limit in product(("silu", "gelu_tanh", "gelu_erf", "relu", "none"), (0.0, 3.0)):
            gate = _gates.Gate(activation, 1, limit, 0.0, 0.0)
            with self.subTest(activation=activation, limit=limit):
                torch.testing.assert_close(torch.ops.hgemm.gate_gradient(both, grad, *gate),
                                           _gates.product_gradient(gate, both, grad), equal_nan=True)

    def test_of_gradients(self):
        for form in forms():
            if form["activation"] == "relu" or "limit" in form:
                continue  # of which float16 and float64 may differ where they bend
            leaves = [(random(6, 16) / 2).requires_grad_(), (random(12, 16) / 4).requires_grad_()]
            form = {**form, "gate_block": min(form.get("gate_block") or 6, 3)} if form.get("gate_block") else form
            results = []
            for function, x in ((ht.gated_linear, leaves),
                                (lambda a, b, **f: gated(a @ b.t(), **f), wide(*leaves))):
                first = torch.autograd.grad(function(*x, **form).pow(2).sum(), x, create_graph=True)
                results.append(torch.autograd.grad(sum(y.pow(2).sum() for y in first), x))
            with self.subTest(**form):
                close_in_norm(self, *results, 0.02)


if __name__ == "__main__":
    unittest.main()
