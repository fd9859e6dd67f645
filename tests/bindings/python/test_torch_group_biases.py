"""Biases of groups and of experts of hgemm.torch, on CPU tensors."""

import unittest
import warnings

from test_torch import DTYPES, assert_close, ht, random, torch
from test_torch_experts import layer, with_gradients, without_indices
from test_torch_gates import FORMS, close_in_norm, eighths, forms, gated, int32, wide

ENDS = [3, 3, 8, 12]  # an empty group; the last two rows are of no group


def by_groups(a, b, bias):
    return torch.cat([a[first:end] @ y + z for first, end, y, z in zip([0, *ENDS], ENDS, b, bias)])


def biases_of(dtype, *shape):
    """Of both types, and one that is not contiguous."""
    return random(*shape, dtype=dtype), random(*shape, dtype=torch.float32), random(*shape[::-1], dtype=dtype).t()


def by_tokens(x, weights, indices, w13, w2, b13, b2, **form):
    result = torch.zeros_like(x)
    for k in range(indices.shape[1]):
        expert = indices[:, k]
        inner = gated(torch.einsum("th,tfh->tf", x, w13[expert]) + b13[expert], **form)
        result = result + weights[:, k, None] * (torch.einsum("tf,thf->th", inner, w2[expert]) + b2[expert])
    return result


class Groups(unittest.TestCase):
    def test_products(self):
        for dtype in DTYPES:
            a, weights = random(14, 40, dtype=dtype), random(4, 40, 24, dtype=dtype)
            for b in (weights, weights.transpose(1, 2).contiguous().transpose(1, 2)):
                for bias in biases_of(dtype, 4, 24):
                    result = ht.grouped_mm(a, b, offs=int32(ENDS), bias=bias)
                    self.assertEqual((result.shape, result.dtype), ((14, 24), dtype))
                    assert_close(result[:12], by_groups(a.double(), b.double(), bias.double()))

    def test_gates(self):
        for dtype in DTYPES:
            a, b = random(14, 40, dtype=dtype), random(4, 40, 48, dtype=dtype) / 6
            for bias in biases_of(dtype, 4, 48):
                for form in forms():
                    result = ht.grouped_gated_mm(a, b, offs=int32(ENDS), bias=bias, **form)
                    self.assertEqual((result.shape, result.dtype), ((14, 24), dtype))
                    assert_close(result[:12], gated(by_groups(a.double(), b.double(), bias.double()), **form))

    def test_gradients(self):
        for dtype, bound in zip(DTYPES, (2e-3, 1.5e-2)):
            for wider in (dtype, torch.float32):
                leaves = [x.requires_grad_() for x in (eighths(14, 40, dtype=dtype), eighths(4, 40, 48, dtype=dtype),
                                                       eighths(4, 48, dtype=wider))]
                for form in (None, *FORMS):
                    right, columns = wide(*leaves), 48 if form is None else 24
                    grad = random(14, columns, dtype=dtype)
                    a, b, bias = leaves
                    ours = (ht.grouped_mm(a, b, offs=int32(ENDS), bias=bias) if form is None else
                            ht.grouped_gated_mm(a, b, offs=int32(ENDS), bias=bias, **form))
                    ours = torch.autograd.grad(ours, leaves, grad)
                    theirs = by_groups(*right) if form is None else gated(by_groups(*right), **form)
                    close_in_norm(self, ours, torch.autograd.grad(theirs, right, grad[:12].double()), bound)
                    self.assertEqual([x.dtype for x in ours], [x.dtype for x in leaves])
                    self.assertFalse(ours[2][1].any())

    def test_of_the_bias_alone(self):
        a, b, bias = random(14, 40), random(4, 40, 24), random(4, 24, grad=True)
        ours, = torch.autograd.grad(ht.grouped_mm(a, b, offs=int32(ENDS), bias=bias)[:12].sum(), bias)
        self.assertEqual(ours[:, 0].tolist(), [3, 0, 5, 4])

    def test_batch_invariance(self):
        a, b = random(40, 512, dtype=torch.bfloat16), random(3, 512, 96, dtype=torch.bfloat16) / 20
        bias = random(3, 96, dtype=torch.bfloat16)
        with ht.batch_invariant(dispatch_key="CPU"):
            for function in (ht.grouped_mm, ht.grouped_gated_mm):
                whole = function(a, b, offs=int32([7, 30, 40]), bias=bias)
                alone = function(a[11:12], b, offs=int32([0, 1, 1]), bias=bias)
                self.assertTrue(torch.equal(whole[11:12], alone))

    def test_opcheck(self):
        for dtype in DTYPES:
            a, b = random(14, 40, dtype=dtype, grad=True), random(4, 40, 48, dtype=dtype, grad=True)
            for bias in (random(4, 48, dtype=dtype, grad=True), torch.rand(4, 48, requires_grad=True)):
                ends = int32([3, 3, 8, 14])
                torch.library.opcheck(torch.ops.hgemm.grouped_mm.default, (a, b, ends, False, False, None, bias))
                torch.library.opcheck(torch.ops.hgemm.grouped_gated_mm.default,
                                      (a, b, ends, "silu", 4, 0.0, 0.0, 0.0, False, bias))

    def test_refusals(self):
        a, b, offs, bias = random(5, 40), random(2, 40, 48), int32([2, 5]), random(2, 48)
        cases = ((ValueError, r"bias: its shape is \(48,\), must be \(2, 48\)", bias[0]),
                 (ValueError, r"bias: its shape is \(2, 24\), must be \(2, 48\)", bias[:, :24]),
                 (TypeError, "bias: is torch.bfloat16, must be torch.float16 as mat_a or torch.float32",
                  bias.bfloat16()),
                 (ValueError, "bias: is on meta, must be on cpu as mat_a", bias.to("meta")),
                 (TypeError, "bias: is builtins.int, must be a torch.Tensor", 7))
        for function in (ht.grouped_mm, ht.grouped_gated_mm):
            for kind, text, wrong in cases:
                with self.subTest(text), self.assertRaisesRegex(kind, f"^{text}"):
                    function(a, b, offs=offs, bias=wrong)
        for operands in ((random(5, 40), random(40, 48), offs), (random(2, 5, 40), b, None)):
            with self.assertRaisesRegex(ValueError, "^bias: must be None unless groups are of rows"):
                ht.grouped_mm(*operands[:2], offs=operands[2], bias=bias)


class Experts(unittest.TestCase):
    def test_all_forms(self):
        for dtype, bound in zip(DTYPES, (1e-3, 8e-3)):
            for wider in (dtype, torch.float32):
                for form in forms():
                    x, weights, indices, w13, w2 = layer(dtype=dtype)
                    b13, b2 = random(6, 48, dtype=wider), random(6, 32, dtype=wider)
                    result = ht.moe(x, weights, indices, w13, w2, b13=b13, b2=b2, **form)
                    x, weights, w13, w2, b13, b2 = (t.double() for t in (x, weights, w13, w2, b13, b2))
                    close_in_norm(self, [result], [by_tokens(x, weights, indices, w13, w2, b13, b2, **form)], bound)

    def test_one_bias(self):
        operands, b13, b2 = layer(), random(6, 48, dtype=torch.bfloat16), random(6, 32, dtype=torch.bfloat16)
        for biases in ({"b13": b13}, {"b2": b2}):
            others = {"b13": torch.zeros_like(b13), "b2": torch.zeros_like(b2)}
            self.assertTrue(torch.equal(ht.moe(*operands, **biases), ht.moe(*operands, **{**others, **biases})))

    def test_gradients(self):
        for dtype, bound in zip(DTYPES, (2e-3, 1.5e-2)):
            operands = with_gradients(*layer(dtype=dtype))
            biases = [random(6, n, dtype=dtype).requires_grad_() for n in (48, 32)]
            leaves = [*without_indices(*operands), *biases]
            grad, right = random(19, 32, dtype=dtype), wide(*leaves)
            ours = torch.autograd.grad(ht.moe(*operands, b13=biases[0], b2=biases[1], **FORMS[-1]), leaves, grad)
            theirs = torch.autograd.grad(by_tokens(right[0], right[1], operands[2], *right[2:], **FORMS[-1]), right,
                                         grad.double())
            self.assertEqual([y.dtype for y in ours], [y.dtype for y in leaves])
            close_in_norm(self, ours, theirs, bound)
            self.assertFalse(ours[4][-1].any() or ours[5][-1].any())  # of an expert without tokens

    def test_compile_and_transforms(self):
        x, weights, indices, w13, w2 = layer(dtype=torch.float16)
        b13, b2 = random(6, 48), random(6, 32)

        def model(b13):
            return ht.moe(x, weights, indices, w13, w2, b13=b13, b2=b2)

        def sum_of(b13):
            return model(b13).float().square().sum()

        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(b13), model(b13)))
        leaf = b13.clone().requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch batches custom operators by loops, and says so
            self.assertTrue(torch.equal(torch.func.grad(sum_of)(b13), torch.autograd.grad(sum_of(leaf), leaf)[0]))
            several = torch.stack([b13, -b13])
            self.assertTrue(torch.equal(torch.func.vmap(model)(several), torch.stack([model(y) for y in several])))

    def test_refusals(self):
        operands, b13, b2 = layer(), random(6, 48, dtype=torch.bfloat16), random(6, 32, dtype=torch.bfloat16)
        for kind, text, wrong in (
                (ValueError, r"b13: its shape is \(5, 48\), must be \(6, 48\)", {"b13": b13[1:]}),
                (ValueError, "b2: 1 dimensions, must be 2", {"b2": b2[0]}),
                (ValueError, r"b2: its shape is \(6, 48\), must be \(6, 32\)", {"b2": b13}),
                (TypeError, "b13: is torch.float16, must be torch.bfloat16 as x or torch.float32", {"b13": b13.half()}),
                (ValueError, "b2: is on meta, must be on cpu as x", {"b2": b2.to("meta")})):
            with self.subTest(text), self.assertRaisesRegex(kind, f"^{text}"):
                ht.moe(*operands, **wrong)


if __name__ == "__main__":
    unittest.main()
