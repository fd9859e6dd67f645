"""Gated products of hgemm.torch, on CPU tensors."""

import inspect
import unittest
from unittest import mock

from test_torch import ACTIVATIONS, DTYPES, assert_close, ht, random, torch
from hgemm.torch import _extension, _gates

# All ways that gates are told apart and bounded; gpt-oss has the last one.
FORMS = ({}, {"gate_block": 1}, {"gate_block": 4}, {"limit": 0.75}, {"slope": 1.702}, {"offset": -0.5},
         {"gate_block": 1, "limit": 1.5, "slope": 1.702, "offset": 1.0})


def gated(product, activation="silu", gate_block=None, limit=None, slope=None, offset=0.0):
    """Of a product in float64, by torch's operators."""
    blocks = product.unflatten(-1, (-1, 2, gate_block or product.shape[-1] // 2))
    gates, others = (x.flatten(-2) for x in blocks.unbind(-2))
    if limit is not None:
        gates, others = gates.clamp(max=limit), others.clamp(-limit, limit)
    activated = gates * torch.sigmoid(slope * gates) if slope is not None else ACTIVATIONS[activation](gates)
    return activated * (others + offset)


def forms():
    for form in FORMS:
        for activation in ACTIVATIONS if "slope" not in form else ("silu",):
            yield {"activation": activation, **form}


def int32(ends):
    return torch.tensor(ends, dtype=torch.int32)


def by_groups(a, b, ends, **form):
    return torch.cat([gated(a[first:end] @ y, **form) for first, end, y in zip([0, *ends], ends, b)])


def eighths(*shape, dtype):
    """Numbers whose products have few bits, so that a sum of them is on the same side of a bound in any type."""
    return (torch.randint(-4, 5, shape) / 8).to(dtype)


def wide(*tensors):
    return [x.detach().double().requires_grad_() for x in tensors]


def close_in_norm(test, ours, right, bound):
    for our, their in zip(ours, right, strict=True):
        test.assertEqual(our.shape, their.shape)
        error = ((our.double() - their).norm() / their.norm().clamp(min=1e-9)).item()
        test.assertLess(error, bound)


class Linear(unittest.TestCase):
    def test_all_forms(self):
        for dtype in DTYPES:
            x, weight, bias = random(3, 5, 40, dtype=dtype), random(48, 40, dtype=dtype) / 6, random(48, dtype=dtype)
            for form in forms():
                for added in (None, bias, bias.float()):
                    result = ht.gated_linear(x, weight, added, **form)
                    self.assertEqual((result.shape, result.dtype), ((3, 5, 24), dtype))
                    product = x.double() @ weight.double().t() + (0 if added is None else added.double())
                    assert_close(result, gated(product, **form))

    def test_signature(self):
        """As linear has it, and then options by name that the others have as well."""
        ours, grouped, layer = (inspect.signature(f).parameters for f in (ht.gated_linear, ht.grouped_gated_mm, ht.moe))
        self.assertEqual(list(ours)[:3], ["input", "weight", "bias"])
        self.assertEqual(list(ours)[3:], list(grouped)[4:])
        self.assertEqual(list(ours)[3:], list(layer)[7:])

    def test_operands_of_any_strides(self):
        x, weight = random(24, 48), random(32, 48) / 6
        for left in (x, x.t().contiguous().t(), x[::2], x[:, ::2].repeat(1, 2), x[:1].expand(5, 48), x[0], x[:0]):
            for right in (weight, weight.t().contiguous().t(), random(64, 48)[::2] / 6, random(32, 96)[:, ::2] / 6):
                assert_close(ht.gated_linear(left, right), gated(left.double() @ right.double().t()))

    def test_sizes_of_zero(self):
        for m, k, f in ((0, 4, 3), (5, 0, 3), (5, 4, 0), (1, 1, 1), (1, 4, 8)):
            x, weight = random(m, k), random(2 * f, k)
            x, weight = x.requires_grad_(), weight.requires_grad_()
            result = ht.gated_linear(x, weight, offset=1.0)
            self.assertEqual(result.shape, (m, f))
            if f > 0:
                assert_close(result, gated(x.double() @ weight.double().t(), offset=1.0))
            grads = torch.autograd.grad(result.sum(), (x, weight))
            self.assertEqual([grad.shape for grad in grads], [x.shape, weight.shape])

    def test_rounds_once(self):
        """The product is beyond float16, the gated result is not."""
        x, weight = torch.full((1, 64), 64.0).half(), torch.full((2, 64), 32.0).half()
        weight[1] = 2.0**-14
        self.assertEqual(ht.gated_linear(x, weight, activation=None).item(), 131072 / 4)

    def test_both_ways(self):
        """The extension's, if there is one, and that in Python give the same bits, also of batches of rows."""
        calls = []

        def serve(*arguments, original=_gates.serve_gated):
            calls.append(original(*arguments))
            return calls[-1]

        x, weight = random(3, 5, 40), random(48, 40) / 6
        ht.gated_linear(x, weight)  # from then on the extension has a handle
        for form in forms():
            with mock.patch.object(_gates, "serve_gated", serve):
                ours = ht.gated_linear(x, weight, **form)
            with mock.patch.object(_gates, "serve_gated", lambda *_: None):
                self.assertTrue(torch.equal(ht.gated_linear(x, weight, **form), ours))
        self.assertEqual([result is not None for result in calls], [_extension.enabled] * len(calls))

    def test_batch_invariance(self):
        x, weight = random(40, 512, dtype=torch.bfloat16), random(96, 512, dtype=torch.bfloat16) / 20
        with ht.batch_invariant(dispatch_key="CPU"):
            self.assertTrue(torch.equal(ht.gated_linear(x, weight)[7:8], ht.gated_linear(x[7:8], weight)))


class Groups(unittest.TestCase):
    def test_all_forms(self):
        for dtype in DTYPES:
            a, weights = random(14, 40, dtype=dtype), random(4, 48, 40, dtype=dtype) / 6
            for b in (weights.transpose(1, 2), weights.transpose(1, 2).contiguous()):
                for ends in ([3, 3, 8, 14], [0, 0, 0, 14], [14, 14, 14, 14]):
                    for form in forms():
                        result = ht.grouped_gated_mm(a, b, offs=int32(ends), **form)
                        self.assertEqual((result.shape, result.dtype), ((14, 24), dtype))
                        assert_close(result, by_groups(a.double(), b.double(), ends, **form))

    def test_gradients(self):
        ends = [3, 3, 8, 12]  # the last two rows are of no group
        for dtype, bound in zip(DTYPES, (2e-3, 1.5e-2)):
            for form in FORMS:
                for transposed in (True, False):
                    weights = eighths(4, 48, 40, dtype=dtype)
                    b = (weights.transpose(1, 2) if transposed else weights.transpose(1, 2).contiguous())
                    leaves = [eighths(14, 40, dtype=dtype).requires_grad_(), b.detach().requires_grad_()]
                    grad, right = random(14, 24, dtype=dtype), wide(*leaves)
                    ours = torch.autograd.grad(ht.grouped_gated_mm(*leaves, offs=int32(ends), **form), leaves, grad)
                    theirs = torch.autograd.grad(by_groups(*right, ends, **form), right, grad[:12].double())
                    close_in_norm(self, ours, theirs, bound)
                    self.assertEqual(ours[1].stride(), leaves[1].stride())
                    self.assertFalse(ours[0][12:].any() or ours[1][1].any())

    def test_batch_invariance(self):
        a, b = random(40, 512, dtype=torch.bfloat16), random(3, 512, 96, dtype=torch.bfloat16) / 20
        with ht.batch_invariant(dispatch_key="CPU"):
            whole = ht.grouped_gated_mm(a, b, offs=int32([7, 30, 40]))
            alone = ht.grouped_gated_mm(a[11:12], b, offs=int32([0, 1, 1]))
        self.assertTrue(torch.equal(whole[11:12], alone))


if __name__ == "__main__":
    unittest.main()
