"""Gated products and mixtures of experts of hgemm.torch on a GPU."""

import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("gates on a device: Skipped\nPyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("gates on a device: Skipped\nPyTorch finds no CUDA device")
    sys.exit(77)

import hgemm.torch as ht
from test_torch_experts import by_tokens, layer, with_gradients
from test_torch_gates import FORMS, by_groups, close_in_norm, gated, wide

BOUNDS = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
# Tiles of one size and another, groups that begin anywhere, few rows and many.
SHAPES = ((1, 512, 256), (33, 1024, 512), (300, 2048, 1536), (2000, 1024, 1024), (129, 200, 264), (17, 72, 40))


def on_device(tensors):
    return [tensor.cuda() for tensor in tensors]


def random(*shape, dtype):
    return torch.randn(*shape, device="cuda").to(dtype)


class Products(unittest.TestCase):
    def test_linear(self):
        for dtype, bound in BOUNDS.items():
            for m, k, f in SHAPES:
                for form in FORMS:
                    x, weight = random(m, k, dtype=dtype), random(2 * f, k, dtype=dtype) / k**0.5
                    for bias in (None, random(2 * f, dtype=dtype)):
                        product = x.double() @ weight.double().t() + (0 if bias is None else bias.double())
                        close_in_norm(self, [ht.gated_linear(x, weight, bias, **form)], [gated(product, **form)], bound)

    def test_groups(self):
        for dtype, bound in BOUNDS.items():
            for m, k, f in SHAPES:
                for form in FORMS:
                    ends = sorted(torch.randint(0, m + 1, (4,)).tolist()) + [m]
                    a, weights = random(m, k, dtype=dtype), random(5, 2 * f, k, dtype=dtype) / k**0.5
                    for b in (weights.transpose(1, 2), weights.transpose(1, 2).contiguous()):
                        found = ht.grouped_gated_mm(a, b, offs=torch.tensor(ends, dtype=torch.int32).cuda(), **form)
                        close_in_norm(self, [found], [by_groups(a.double(), b.double(), ends, **form)], bound)

    def test_gradients(self):
        for form in FORMS[:3]:
            x, weight = random(300, 512, dtype=torch.bfloat16), random(768, 512, dtype=torch.bfloat16) / 512**0.5
            leaves = [t.detach().requires_grad_() for t in (x, weight)]
            grad, right = random(300, 384, dtype=torch.bfloat16), wide(*leaves)
            ours = torch.autograd.grad(ht.gated_linear(*leaves, **form), leaves, grad)
            theirs = torch.autograd.grad(gated(right[0] @ right[1].t(), **form), right, grad.double())
            close_in_norm(self, ours, theirs, 1.5e-2)

    def test_batch_invariance(self):
        x, weight = random(2000, 1024, dtype=torch.bfloat16), random(2048, 1024, dtype=torch.bfloat16) / 32
        with ht.batch_invariant():
            whole = ht.gated_linear(x, weight)
            for rows in (slice(0, 1), slice(700, 717), slice(100, 1300)):
                self.assertTrue(torch.equal(ht.gated_linear(x[rows], weight), whole[rows]))


class Experts(unittest.TestCase):
    sizes = {"tokens": 300, "experts": 16, "top_k": 4, "hidden": 512, "inner": 256}

    def test_forms(self):
        for dtype, bound in BOUNDS.items():
            for router in (torch.float32, dtype):
                for sizes in (self.sizes, {**self.sizes, "tokens": 0}, {**self.sizes, "tokens": 1},
                              {**self.sizes, "experts": 300}, {"tokens": 5000, "hidden": 64, "inner": 40}):
                    for form in ({}, FORMS[-1]):
                        x, weights, indices, w13, w2 = operands = on_device(layer(dtype=dtype, router=router, **sizes))
                        right = by_tokens(x.double(), weights.double(), indices, w13.double(), w2.double(), **form)
                        close_in_norm(self, [ht.moe(*operands, **form)], [right], bound)

    def test_gradients(self):
        """Right, and the same bits each time."""
        for router in (torch.float32, torch.bfloat16):
            operands = with_gradients(*on_device(layer(router=router, **self.sizes)))
            x, weights, w13, w2 = leaves = [operands[i] for i in (0, 1, 3, 4)]
            grad, right = random(300, 512, dtype=torch.bfloat16), wide(*leaves)
            ours, again = (torch.autograd.grad(ht.moe(*operands), leaves, grad) for _ in range(2))
            theirs = torch.autograd.grad(by_tokens(right[0], right[1], operands[2], *right[2:]), right, grad.double())
            close_in_norm(self, ours, theirs, 1.5e-2)
            self.assertTrue(all(torch.equal(*pair) for pair in zip(ours, again)))

    def test_batch_invariance(self):
        operands = on_device(layer(**self.sizes))
        for router in (torch.float32, torch.bfloat16):
            operands[1] = operands[1].to(router)
            with ht.batch_invariant():
                whole = ht.moe(*operands)
                for tokens in (slice(7, 8), slice(20, 300), torch.arange(299, -1, -1, device="cuda")):
                    part = ht.moe(*(t[tokens] for t in operands[:3]), *operands[3:])
                    self.assertTrue(torch.equal(part, whole[tokens]))

    def test_graphs(self):
        """A graph serves tokens that choose other experts than those that it was captured with."""
        operands = on_device(layer(**self.sizes))
        ht.moe(*operands)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = ht.moe(*operands)
        for seed in range(3):
            torch.manual_seed(seed)
            for now, other in zip(operands[:3], layer(**self.sizes)[:3]):
                now.copy_(other)
            graph.replay()
            x, weights, indices, w13, w2 = operands
            right = by_tokens(x.double(), weights.double(), indices, w13.double(), w2.double())
            close_in_norm(self, [result], [right], BOUNDS[torch.bfloat16])

    def test_waits_for_nothing(self):
        operands = with_gradients(*on_device(layer(**self.sizes)))
        ht.moe(*operands).sum().backward()
        before = torch.cuda.get_sync_debug_mode()
        self.addCleanup(torch.cuda.set_sync_debug_mode, before)
        torch.cuda.set_sync_debug_mode("error")
        ht.moe(*operands).sum().backward()


if __name__ == "__main__":
    unittest.main()
