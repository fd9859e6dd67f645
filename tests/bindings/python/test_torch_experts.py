"""Mixtures of experts of hgemm.torch, on CPU tensors; gates and experts with torch's compiler, and wrong arguments."""

import itertools
import unittest
import warnings
from unittest import mock

from test_torch import DTYPES, ht, random, torch
from test_torch_gates import FORMS, close_in_norm, forms, gated, int32, wide
from hgemm.torch import _extension


def layer(tokens=19, top_k=3, experts=6, hidden=32, inner=24, dtype=torch.bfloat16, router=torch.float32, unused=1):
    """x, weights and indices of a router, w13 and w2. The last experts have no tokens."""
    weights, indices = torch.randn(tokens, experts - unused).softmax(1).topk(top_k)
    return (random(tokens, hidden, dtype=dtype), weights.to(router), indices,
            random(experts, 2 * inner, hidden, dtype=dtype) / hidden**0.5,
            random(experts, hidden, inner, dtype=dtype) / inner**0.5)


def with_gradients(x, weights, indices, w13, w2):
    x, weights, w13, w2 = (t.detach().requires_grad_() for t in (x, weights, w13, w2))
    return x, weights, indices, w13, w2


def by_tokens(x, weights, indices, w13, w2, **form):
    result = torch.zeros_like(x)
    for k in range(indices.shape[1]):
        inner = gated(torch.einsum("th,tfh->tf", x, w13[indices[:, k]]), **form)
        result = result + weights[:, k, None] * torch.einsum("tf,thf->th", inner, w2[indices[:, k]])
    return result


def without_indices(x, weights, indices, w13, w2):
    return x, weights, w13, w2


    def test_sizes_of_zero(self):
        for m, k, f in ((0, 4, 3), (5, 0, 3), (5, 4, 0)):
            a, b = random(m, k, grad=True), random(2, k, 2 * f, grad=True)
            result = ht.grouped_gated_mm(a, b, offs=int32([m // 2, m]))
            self.assertEqual(result.shape, (m, f))
            self.assertFalse(result.any())
            self.assertEqual([x.shape for x in torch.autograd.grad(result.sum(), (a, b))], [a.shape, b.shape])


class Experts(unittest.TestCase):
    def test_all_forms(self):
        for dtype, bound in zip(DTYPES, (1e-3, 8e-3)):
            for router in (torch.float32, dtype):
                for form in forms():
                    operands = layer(dtype=dtype, router=router)
                    result = ht.moe(*operands, **form)
                    self.assertEqual((result.shape, result.dtype), ((19, 32), dtype))
                    x, weights, _, w13, w2 = (t.double() for t in operands)
                    close_in_norm(self, [result], [by_tokens(x, weights, operands[2], w13, w2, **form)], bound)

    def test_sizes(self):
        for sizes in ({"tokens": 0}, {"tokens": 1}, {"top_k": 1}, {"experts": 1, "top_k": 1, "unused": 0},
                      {"experts": 3, "top_k": 3, "unused": 0}, {"experts": 300, "unused": 9}, {"hidden": 7, "inner": 5},
                      {"tokens": 700}):
            operands = layer(**sizes)
            for indices in (operands[2], operands[2].int(), operands[2].t().contiguous().t()):
                x, weights, _, w13, w2 = (t.double() for t in operands)
                right = by_tokens(x, weights, indices.long(), w13, w2)
                close_in_norm(self, [ht.moe(*operands[:2], indices, *operands[3:])], [right], 8e-3)

    def test_operands_of_one_element(self):
        """That stand for all tokens."""
        x, _, _, w13, w2 = layer()
        one, first = torch.full((1, 1), 0.5).expand(19, 1), torch.ones(1, 1, dtype=torch.int64).expand(19, 1)
        found = ht.moe(x, one, first, w13, w2)
        torch.testing.assert_close(found, ht.moe(x, one.clone(), first.clone(), w13, w2), rtol=0, atol=0)
        self.assertTrue(found.any())

    def test_an_expert_twice(self):
        x, weights, indices, w13, w2 = layer(tokens=2, top_k=2)
        indices[:] = 3
        right = by_tokens(x.double(), weights.double(), indices, w13.double(), w2.double())
        close_in_norm(self, [ht.moe(x, weights, indices, w13, w2)], [right], 8e-3)

    def test_route(self):
        indices = torch.tensor([[2, 0], [0, 3], [2, 2]])
        for each in (indices, indices.int(), torch.cat([indices, indices], 1)[:, :2], indices.t().contiguous().t()):
            rows, ends = torch.ops.hgemm.route(each, 5)
            self.assertEqual(rows.tolist(), [[2, 0], [1, 5], [3, 4]])
            self.assertEqual((ends.dtype, ends.tolist()), (torch.int32, [2, 2, 5, 6, 6]))
        indices[2, 0] = -1
        rows, ends = torch.ops.hgemm.route(indices, 5)
        self.assertEqual((rows.tolist(), ends.tolist()), ([[2, 0], [1, 4], [-1, 3]], [2, 2, 4, 5, 5]))

    def test_choices_of_no_expert(self):
        """As those of experts that another process has: they add nothing, and have no gradients."""
        for router in (torch.float32, torch.bfloat16):
            operands = with_gradients(*layer(router=router))
            x, weights, indices, w13, w2 = operands
            absent = torch.rand(indices.shape) < 0.4
            absent[3] = True
            leaves, grad = without_indices(*operands), random(19, 32, dtype=torch.bfloat16)
            ours = ht.moe(x, weights, indices.masked_fill(absent, -1), w13, w2)
            theirs = ht.moe(x, weights.masked_fill(absent, 0), indices, w13, w2)
            self.assertFalse(ours[3].any())
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
            with torch.autograd.detect_anomaly():
                found = torch.autograd.grad(ours, leaves, grad)
            torch.testing.assert_close(found, torch.autograd.grad(theirs, leaves, grad), rtol=0.02, atol=1e-3)
            self.assertFalse(found[1][absent].any())

    def test_order_of_sums(self):
        """That of the token's choice, in float32, rounded once."""
        rows = random(12, 8, dtype=torch.bfloat16)
        places = torch.randperm(12, dtype=torch.int32).view(4, 3)
        for weights in (torch.rand(4, 3), torch.rand(4, 3).bfloat16()):
            sums = torch.zeros(4, 8)
            for k in range(3):
                sums = sums + weights[:, k, None].float() * rows[places[:, k]].float()
            found = torch.ops.hgemm.combine_rows(rows, weights, places)
            torch.testing.assert_close(found, sums.bfloat16(), rtol=0, atol=0)

    def test_batch_invariance(self):
        operands = layer(tokens=50, hidden=512, inner=256)
        with ht.batch_invariant(dispatch_key="CPU"):
            whole = ht.moe(*operands)
            for tokens in (slice(7, 8), slice(20, 50), torch.arange(49, -1, -1)):
                part = ht.moe(*(t[tokens] for t in operands[:3]), *operands[3:])
                self.assertTrue(torch.equal(part, whole[tokens]))
        self.assertTrue(torch.equal(ht.moe(*operands), ht.moe(*operands)))

    def test_gradients(self):
        for dtype, bound in zip(DTYPES, (2e-3, 1.5e-2)):
            for router in (torch.float32, dtype):
                for form in ({}, FORMS[-1]):
                    operands = with_gradients(*layer(dtype=dtype, router=router))
                    x, weights, w13, w2 = leaves = without_indices(*operands)
                    grad, right = random(19, 32, dtype=dtype), wide(*leaves)
                    ours = torch.autograd.grad(ht.moe(*operands, **form), leaves, grad)
                    theirs = torch.autograd.grad(by_tokens(right[0], right[1], operands[2], *right[2:], **form), right,
                                                 grad.double())
                    self.assertEqual([y.dtype for y in ours], [y.dtype for y in leaves])
                    close_in_norm(self, ours, theirs, bound)
                    self.assertFalse(ours[2][-1].any() or ours[3][-1].any())

    def test_of_some_operands(self):
        operands = layer()
        right = with_gradients(*operands)
        theirs = torch.autograd.grad(by_tokens(*(t.double() if t.is_floating_point() else t for t in right)).sum(),
                                     without_indices(*right))
        for i, place in enumerate((0, 1, 3, 4)):
            leaf = operands[place].detach().requires_grad_()
            ours, = torch.autograd.grad(ht.moe(*operands[:place], leaf, *operands[place + 1:]).sum(), leaf)
            close_in_norm(self, [ours], [theirs[i].double()], 1.5e-2)

    def test_of_gradients(self):
        operands = with_gradients(*layer(dtype=torch.float16))
        doubles = with_gradients(*(t.double() if t.is_floating_point() else t for t in operands))
        results = []
        for function, arguments in ((ht.moe, operands), (by_tokens, doubles)):
            leaves = without_indices(*arguments)
            first = torch.autograd.grad((function(*arguments) / 4).pow(2).sum(), leaves, create_graph=True)
            results.append(torch.autograd.grad(sum(x.double().pow(2).sum() for x in first), leaves))
        close_in_norm(self, *results, 0.02)


class Compiler(unittest.TestCase):
    def test_opcheck(self):
        check = torch.library.opcheck
        for dtype in DTYPES:
            a, b = random(9, 40, dtype=dtype, grad=True), random(40, 48, dtype=dtype, grad=True)
            for bias in (None, random(48, dtype=dtype, grad=True)):
                for operator in (torch.ops.hgemm.gated.default, torch.ops.hgemm.gated_aux.default):
                    check(operator, (a, b, bias, "silu", 24, 0.0, 1.5, 1.0, False))
            check(torch.ops.hgemm.gate_gradient.default, (a.detach(), random(9, 20).to(dtype), "silu", 5, 0.0, 0.0, 0.0))
            transposed = b.detach().t().contiguous().t().requires_grad_()
            check(torch.ops.hgemm.gated.default, (a, transposed, None, "gelu_erf", 1, 2.0, 0.0, 0.0, True))
            groups = torch.stack([b.detach(), -b.detach()]).requires_grad_()
            for operator in (torch.ops.hgemm.grouped_gated_mm.default, torch.ops.hgemm.grouped_gated_mm_aux.default):
                check(operator, (a, groups, int32([4, 9]), "silu", 4, 0.0, 0.0, 0.0, False))
        check(torch.ops.hgemm.route.default, (layer()[2], 6))
        rows, _ = torch.ops.hgemm.route(layer()[2], 6)
        for weights in (None, torch.rand(19, 3, requires_grad=True), torch.rand(19, 3).half().requires_grad_()):
            check(torch.ops.hgemm.gather_rows.default, (random(19, 8, grad=True), weights, rows))
            check(torch.ops.hgemm.combine_rows.default, (random(57, 8, grad=True), weights, rows))
        for dtype in (torch.float32, torch.float16):
            check(torch.ops.hgemm.dot_rows.default, (random(19, 8, grad=True), random(57, 8, grad=True), rows, dtype))

    def test_shapes_of_rows(self):
        """With the extension and without."""
        rows, _ = torch.ops.hgemm.route(layer()[2], 6)
        right, short, narrow, weights = random(19, 8), random(18, 8), random(57, 7), torch.rand(19, 3)
        wrong = {"gather": (lambda: torch.ops.hgemm.gather_rows(short, weights, rows), r"x: .*\(18, 8\).*\(19, 8\)"),
                 "weights": (lambda: torch.ops.hgemm.gather_rows(right, weights.t(), rows), r"weights: .*\(3, 19\)"),
                 "combine": (lambda: torch.ops.hgemm.combine_rows(right, weights, rows), r"values: .*\(57, 8\)"),
                 "dot": (lambda: torch.ops.hgemm.dot_rows(right, narrow, rows, torch.float32), r"values: .*\(57, 8\)"),
                 "dot, x": (lambda: torch.ops.hgemm.dot_rows(short, narrow, rows, torch.float32), r"x: .*\(19, 8\)")}
        for enabled, (name, (call, text)) in itertools.product((True, False), wrong.items()):
            with self.subTest(name, enabled=enabled), mock.patch.object(_extension, "enabled", enabled):
                self.assertRaisesRegex(ValueError, text, call)

    def test_compile(self):
        def model(x, weights, indices, w13, w2):
            y = ht.gated_linear(x, w13[0], gate_block=1) @ w2[0].t()
            return ht.moe(x + y, weights, indices, w13, w2, limit=3.0)

        for dynamic in (False, True):
            torch._dynamo.reset()
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
            for tokens, router in ((19, torch.float32), (23, torch.float32), (19, torch.bfloat16)):
                operands = with_gradients(*layer(tokens=tokens, router=router))
                both = [f(*operands) for f in (model, compiled)]
                torch.testing.assert_close(*both, rtol=0, atol=0)
                leaves = without_indices(*operands)
                torch.testing.assert_close(*[torch.autograd.grad(y.sum(), leaves) for y in both], rtol=0, atol=0)
            with torch.no_grad():
                torch.testing.assert_close(compiled(*operands), both[0], rtol=0, atol=0)

    def test_transforms(self):
        from torch.func import grad, jacrev, vmap

        operands = layer(tokens=5, dtype=torch.float16)
        x, weights, indices, w13, w2 = operands
        pairs = ((lambda x: ht.gated_linear(x, w13[0]), lambda x: gated(x @ w13[0].to(x.dtype).t())),
                 (lambda x: ht.moe(x, weights, indices, w13, w2),
                  lambda x: by_tokens(x, weights.to(x.dtype), indices, w13.to(x.dtype), w2.to(x.dtype))))
        for ours, right in pairs:
            for transform in (lambda f: grad(lambda x: f(x).float().square().sum()), jacrev,
                              lambda f: lambda x: vmap(f)(torch.stack([x, -x]))):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torch batches custom operators by loops, and says so
                    found = transform(ours)(x)
                close_in_norm(self, [found], [transform(right)(x.double()).double()], 5e-3)
            with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivatives"):
                torch.func.jvp(ours, (x,), (x,))

    def test_flops(self):
        from torch.utils.flop_counter import FlopCounterMode
        x, weights, indices, w13, w2 = with_gradients(*layer())
        for dtype, products in ((torch.float16, 2), (torch.bfloat16, 1)):  # and two gradients
            leaves = [y.detach().to(dtype).requires_grad_() for y in (x, w13[0])]
            with FlopCounterMode(display=False) as counter:
                ht.gated_linear(*leaves).sum().backward()
            self.assertEqual(counter.get_total_flops(), (products + 2) * 2 * 19 * 32 * 48)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            ht.moe(x, weights, indices, w13, w2)
        self.assertEqual(counter.get_total_flops(), 2 * 57 * 32 * (48 + 24))


class Refusals(unittest.TestCase):
    def refused(self, function, arguments, cases):
        for kind, text, changed in cases:
            with self.subTest(text), self.assertRaisesRegex(kind, f"^{text}"):
                function(**{**arguments, **changed})

    def test_linear(self):
        x, weight = random(5, 40), random(48, 40)
        self.refused(ht.gated_linear, {"input": x, "weight": weight}, (
            (ValueError, "activation: 'tanh', must be one of None, none, relu", {"activation": "tanh"}),
            (ValueError, "gate_block: 5, must be positive, and twice of it must divide 48, the columns of weight",
             {"gate_block": 5}),
            (ValueError, "gate_block: 0, must be positive", {"gate_block": 0}),
            (ValueError, "gate_block: -1, must be positive", {"gate_block": -1}),
            (ValueError, "gate_block: 48, must be positive", {"gate_block": 48}),
            (TypeError, "gate_block: 1.5, must be an integer", {"gate_block": 1.5}),
            (ValueError, "weight: gives 47 columns, must be gates and as many up elements", {"weight": weight[:47]}),
            (ValueError, "limit: -1.0, must be positive in float32", {"limit": -1}),
            (ValueError, "limit: 0.0, must be positive in float32", {"limit": 0.0}),
            (ValueError, "limit: 1e-300, must be positive in float32", {"limit": 1e-300}),
            (ValueError, "limit: nan, must be finite in float32", {"limit": float("nan")}),
            (ValueError, r"limit: 1e\+300, must be finite in float32", {"limit": 1e300}),
            (TypeError, "limit: 'x', must be a number", {"limit": "x"}),
            (ValueError, "slope: 2.0, must be None but for silu", {"slope": 2.0, "activation": "relu"}),
            (ValueError, "slope: 0.0, must be positive", {"slope": 0.0}),
            (ValueError, "slope: -1.0, must be positive", {"slope": -1.0}),
            (ValueError, "slope: inf, must be finite", {"slope": float("inf")}),
            (ValueError, "offset: inf, must be finite", {"offset": float("inf")}),
            (TypeError, "input: is builtins.list, must be a torch.Tensor", {"input": [1]}),
            (TypeError, "input: is torch.float32, must be torch.float16", {"input": x.float(),
                                                                           "weight": weight.float()}),
            (TypeError, "weight: is torch.bfloat16, must be torch.float16 as input", {"weight": weight.bfloat16()}),
            (ValueError, "weight: 3 dimensions, must be 2", {"weight": weight[None]}),
            (ValueError, r"weight: its shape \(48, 39\) does not fit that of input, \(5, 40\)",
             {"weight": weight[:, 1:]}),
            (ValueError, "input: 0 dimensions, must be 1 or more", {"input": x[0, 0]}),
            (ValueError, r"bias: its shape is \(24,\), must be \(48,\)", {"bias": x[0, :24]}),
            (TypeError, "bias: is torch.bfloat16", {"bias": weight[:, 0].bfloat16()}),
            (ValueError, "weight: is on meta, must be on cpu as input", {"weight": weight.to("meta")})))

    def test_groups(self):
        a, b, offs = random(5, 40), random(2, 40, 48), int32([2, 5])
        self.refused(ht.grouped_gated_mm, {"mat_a": a, "mat_b": b, "offs": offs}, (
            (ValueError, "mat_b: gives 47 columns, must be gates", {"mat_b": b[..., 1:]}),
            (ValueError, "gate_block: 7, must be positive, and twice of it must divide 48", {"gate_block": 7}),
            (ValueError, "mat_b: 2 dimensions, must be 3", {"mat_b": b[0]}),
            (TypeError, "offs: is NoneType|offs: is None", {"offs": None}),
            (ValueError, r"offs: its shape is \(1,\), must be \(2,\)", {"offs": offs[:1]}),
            (TypeError, "offs: is torch.float32, must be torch.int32", {"offs": offs.float()}),
            (TypeError, "mat_a: is torch.float32", {"mat_a": a.float()}),
            (ValueError, "limit: -0.5, must be positive", {"limit": -0.5})))

    def test_experts(self):
        x, weights, indices, w13, w2 = layer()
        names = ("x", "router_weights", "router_indices", "w13", "w2")
        self.refused(ht.moe, dict(zip(names, (x, weights, indices, w13, w2))), (
            (ValueError, "router_indices: has 6, must be from -1 to 5", {"router_indices": indices.clamp(min=6)}),
            (ValueError, "router_indices: has -2, must be from -1 to 5", {"router_indices": indices - 2 - indices}),
            (TypeError, "router_indices: is torch.float32, must be torch.int32 or torch.int64",
             {"router_indices": indices.float()}),
            (ValueError, r"router_indices: its shape is \(18, 3\), must be \(19, top_k\)",
             {"router_indices": indices[1:]}),
            (ValueError, r"router_indices: its shape is \(19, 0\), must be \(19, top_k\)",
             {"router_indices": indices[:, :0], "router_weights": weights[:, :0]}),
            (ValueError, r"router_weights: its shape is \(19, 2\), must be \(19, 3\) as that of router_indices",
             {"router_weights": weights[:, 1:]}),
            (TypeError, "router_weights: is torch.float64", {"router_weights": weights.double()}),
            (TypeError, "x: is torch.float32, must be torch.float16", {"x": x.float()}),
            (ValueError, "x: 3 dimensions, must be 2", {"x": x[None]}),
            (TypeError, "x: is None, must be a torch.Tensor", {"x": None}),
            (TypeError, "w13: is torch.float16, must be torch.bfloat16 as x", {"w13": w13.half()}),
            (ValueError, r"w13: its shape \(6, 48, 31\) does not fit that of x, \(19, 32\)", {"w13": w13[..., 1:]}),
            (ValueError, "w13: gives 47 columns|w2: its shape is", {"w13": w13[:, 1:]}),
            (ValueError, r"w2: its shape is \(5, 32, 24\), must be \(6, 32, 24\)", {"w2": w2[1:]}),
            (ValueError, "w2: is on meta, must be on cpu as x", {"w2": w2.to("meta")}),
            (ValueError, "slope: 2.0, must be None but for silu", {"slope": 2.0, "activation": None})))


if __name__ == "__main__":
    unittest.main()
