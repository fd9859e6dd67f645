"""The extension of hgemm.torch: what it serves has the bits that hgemm.torch computes without it; the rest it leaves.

On the CPU, and on a CUDA device where there is one.
"""

import contextlib
import ctypes
import itertools
import os
import sys
import threading
import unittest
from functools import partial
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch's extension: Skipped\nPyTorch is not installed")
    sys.exit(77)

import hgemm
import hgemm.torch as ht
from hgemm.torch import _extension, _handles, _linear, _ops
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1)
DEVICES = ("cpu", "cuda") if torch.backends.cuda.is_built() and torch.cuda.is_available() else ("cpu",)
# Where torch's own kernels run, too, which gradients need: not on the virtual driver.
DEVICES_OF_TORCH = DEVICES[:1] if "EMU_ARCH" in os.environ else DEVICES
HALF = (torch.float16, torch.bfloat16)
without = mock.patch.object(_extension, "enabled", False)


def random(*shape, dtype=torch.float16, device="cpu"):
    return torch.randn(*shape).to(dtype).to(device)


def bits(tensor):
    assert tensor.is_contiguous()
    return tensor.dtype, tensor.shape, tensor.cpu().view(torch.uint8).numpy().tobytes()


class Layers(unittest.TestCase):
    """Linear layers with gradients, of which the extension leaves some, as it does while no handle is idle."""

    def setUp(self):
        dtype = torch.bfloat16
        self.leaves = [random(*shape, dtype=dtype).requires_grad_() for shape in ((2, 3, 16), (8, 16), (8,))]
        self.layers = {"linear": ht.linear, "silu": partial(ht.linear, activation="silu"), "gated": ht.gated_linear}

    def gradients(self, layer, run):
        result = run(layer, *self.leaves)
        return result, torch.autograd.grad(result.float().square().sum(), self.leaves)

    def test_whoever_computes_saves_the_same(self):
        """A checkpoint compares what is saved when it computes again."""
        def run(layer, *leaves):
            return checkpoint(layer, *leaves, use_reentrant=False)

        for (name, layer), left in itertools.product(self.layers.items(), (0, 1)):
            with self.subTest(name, left=left):
                wanted = self.gradients(layer, lambda layer, *leaves: layer(*leaves))
                calls = itertools.count()

                def leaving(function, nothing):
                    return lambda *arguments: nothing if next(calls) == left else function(*arguments)

                with mock.patch.object(_linear, "serve", leaving(_linear.serve, None)), mock.patch.object(
                        _linear, "serve_aux", leaving(_linear.serve_aux, (None, None))):
                    found = self.gradients(layer, run)
                self.assertEqual(next(calls), 2)
                torch.testing.assert_close(found, wanted, rtol=0, atol=0)

    def test_a_bias_is_a_row(self):
        x, weight, _ = self.leaves
        bias = random(6, 8, dtype=torch.bfloat16)
        for (name, layer), enabled, wanted in itertools.product(self.layers.items(), (True, False), (True, False)):
            with self.subTest(name, enabled=enabled, wanted=wanted), torch.set_grad_enabled(wanted), mock.patch.object(
                    _extension, "enabled", enabled), self.assertRaisesRegex(ValueError, "bias"):
                layer(x.view(6, 16), weight, bias)


class Served(unittest.TestCase):
    """Each function once without the extension, which creates the handles, and then by it."""

    def setUp(self):
        self.assertIsNotNone(_extension.library, "the extension is not there, or torch lacks what it calls")
        self.served = 0

    def check(self, function, *tensors, **options):
        with without:
            want = bits(function(*tensors, **options))
        with mock.patch("hgemm.torch._gemm", side_effect=AssertionError("left")), mock.patch(
                "hgemm.torch._autograd.gemm", side_effect=AssertionError("left")):
            self.assertEqual(bits(function(*tensors, **options)), want)
        self.served += 1

    def test_mm_and_bmm(self):
        for device, dtype, wide in itertools.product(DEVICES, HALF, (None, torch.float32)):
            a, b = random(24, 48, dtype=dtype, device=device), random(48, 32, dtype=dtype, device=device)
            for left in (a, a.cpu().t().contiguous().to(device).t(), a[:, :40], a[::2], a[:1], a[:0]):
                self.check(ht.mm, left, b[:left.shape[1]], out_dtype=wide)
                self.check(ht.bmm, left[None], b[None, :left.shape[1]], out_dtype=wide)
            a, b = random(3, 8, 16, dtype=dtype, device=device), random(3, 4, 16, dtype=dtype, device=device)
            self.check(ht.bmm, a, b.transpose(1, 2), out_dtype=wide)
            self.check(ht.bmm, a[:1].expand(3, 8, 16), b.transpose(1, 2), out_dtype=wide)
        for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1)):
            self.check(ht.mm, random(m, k), random(k, n))

    def test_addmm_and_baddbmm(self):
        for device, dtype in itertools.product(DEVICES, HALF):
            a, b = random(8, 16, dtype=dtype, device=device), random(16, 4, dtype=dtype, device=device)
            for added in (random(4, dtype=dtype, device=device), random(4, dtype=torch.float32, device=device),
                          random(8, 4, dtype=dtype, device=device), random(8, 4, dtype=torch.float32, device=device)):
                self.check(ht.addmm, added, a, b)
                self.check(ht.addmm, added, a, b, alpha=2, out_dtype=torch.float32)
                self.check(ht.baddbmm, added if added.dim() == 1 else added[None], a[None], b[None], alpha=-1)
                if added.dim() == 2:
                    self.check(ht.addmm, added, a, b, beta=0.5)

    def test_linear(self):
        for device in DEVICES:
            weight, bias = random(32, 16, device=device), random(32, device=device)
            for x in (random(16, device=device), random(5, 16, device=device), random(2, 3, 16, device=device),
                      random(2, 1, 3, 16, device=device)[:, 0], random(4, 1, 16, device=device)[::2],
                      random(0, 16, device=device), random(1, 1, 1, 16, device=device)):
                for activation in (None, "relu", "gelu_tanh", "gelu_erf", "silu"):
                    self.check(ht.linear, x, weight, bias, activation)
                self.check(ht.linear, x, weight)

    def differentiate(self, function, leaves, grads, **options):
        """By the extension, which leaves nothing, and without: the same bits, in the same order in memory."""
        function = partial(function, **options)
        with without:
            want = torch.autograd.grad(function(*leaves), leaves, grads)
        with mock.patch.object(_handles, "call", side_effect=AssertionError("left")):
            found = torch.autograd.grad(function(*leaves), leaves, grads)
        self.assertEqual([x.stride() for x in found], [x.stride() for x in want])
        self.assertEqual([bits(x.contiguous()) for x in found], [bits(x.contiguous()) for x in want])

    def test_gradients(self):
        for device, shape in itertools.product(DEVICES_OF_TORCH, ((16,), (5, 16), (2, 3, 16), (1, 16), (0, 16))):
            options = {"dtype": torch.bfloat16, "device": device}
            for weight in (random(32, 16, **options), random(16, 32, **options).t()):
                leaves = [x.requires_grad_() for x in (random(*shape, **options), weight)]
                grad, narrow = random(*shape[:-1], 32, **options), random(*shape[:-1], 16, **options)
                if weight.is_contiguous():
                    self.differentiate(ht.linear, leaves, grad)
                    self.differentiate(ht.linear, [*leaves, random(32, **options).requires_grad_()], grad)
                    self.differentiate(ht.gated_linear, leaves, narrow)
                    self.differentiate(ht.gated_linear, [*leaves, random(32, device=device).float().requires_grad_()],
                                       narrow)
                    for activation in ("relu", "gelu_tanh", "silu"):
                        self.differentiate(ht.linear, leaves, grad, activation=activation)
                        self.differentiate(ht.linear, [*leaves, random(32, **options).requires_grad_()], grad,
                                           activation=activation)
                    self.differentiate(ht.gated_linear, leaves, random(*shape[:-1], 40, **options)[..., 8:24],
                                       activation="gelu_tanh", gate_block=4, limit=0.5, offset=1.0)
                self.differentiate(ht.linear, leaves[:1], grad, weight=weight.detach())
                self.differentiate(lambda w, x: ht.gated_linear(x, w), leaves[1:], narrow, x=leaves[0].detach())

    def test_batches_of_gradients(self):
        x, weight = (random(*shape, dtype=torch.bfloat16).requires_grad_() for shape in ((6, 16), (32, 16)))
        for function, columns in ((ht.linear, 32), (partial(ht.linear, activation="silu"), 32), (ht.gated_linear, 16)):
            y, grads = function(x, weight), random(3, 6, columns, dtype=torch.bfloat16)
            found = torch.autograd.grad(y, (x, weight), grads, retain_graph=True, is_grads_batched=True)
            want = [torch.autograd.grad(y, (x, weight), grad, retain_graph=True) for grad in grads]
            self.assertEqual([bits(x) for x in found], [bits(torch.stack(x)) for x in zip(*want)])

    def test_gradients_of_groups(self):
        for device, wide in itertools.product(DEVICES_OF_TORCH, (torch.int32, torch.int64)):
            options = {"dtype": torch.bfloat16, "device": device}
            ends = torch.tensor([3, 3, 9], device=device, dtype=wide)
            for b in (random(3, 16, 32, **options), random(3, 32, 16, **options).transpose(1, 2)):
                leaves = [x.requires_grad_() for x in (random(9, 16, **options), b)]
                bias = random(3, 32, **options).float().requires_grad_()
                for rest in ({}, {"bias": bias}) if device == "cpu" else ({},):  # a GPU's sums of a bias copy a line
                    self.differentiate(ht.grouped_mm, leaves, random(9, 32, **options), offs=ends, **rest)
                    self.differentiate(ht.grouped_gated_mm, leaves, random(9, 16, **options), offs=ends, **rest)
            leaves = [x.requires_grad_() for x in (random(9, 16, **options).t(), random(9, 24, **options))]
            self.differentiate(ht.grouped_mm, leaves, random(3, 16, 24, **options), offs=ends)

    def test_gradients_of_experts(self):
        for device, dtype in itertools.product(DEVICES_OF_TORCH, HALF):
            options = {"dtype": dtype, "device": device}
            indices = torch.tensor([[0, 2], [3, 0], [-1, 1], [2, -1], [1, 0]], device=device)
            leaves = [x.requires_grad_() for x in (random(5, 16, **options), random(5, 2, **options).float(),
                                                   random(4, 32, 16, **options), random(4, 16, 16, **options))]
            function = lambda x, weights, *rest: ht.moe(x, weights, indices, *rest)  # noqa: E731
            self.differentiate(function, leaves, random(5, 16, **options))

    def test_gradients_of_what_is_left(self):
        """In part, where an operand has to be copied, and of gradients."""
        for function, columns in ((ht.linear, 32), (ht.gated_linear, 16)):
            leaves = [random(6, 16, dtype=torch.bfloat16).requires_grad_() for _ in range(2)]
            leaves[1] = random(16, 32, dtype=torch.bfloat16).t().requires_grad_()
            for grad in (random(columns, dtype=torch.bfloat16).expand(6, columns),
                         random(6, 2 * columns, dtype=torch.bfloat16)[:, ::2]):
                grads = []
                for context in (without, contextlib.nullcontext()):
                    with context:
                        first = torch.autograd.grad(function(*leaves), leaves, grad, create_graph=True)
                        second = torch.autograd.grad(sum(x.square().sum() for x in first), leaves)
                    grads.append([bits(x.contiguous()) for x in first + second])
                self.assertEqual(*grads)

    def test_batch_invariant_rows(self):
        for device in DEVICES[1:]:
            a, weight = random(40, 512, device=device), random(48, 512, device=device)
            with ht.batch_invariant(strict=True):
                self.check(ht.linear, a, weight)
                whole = ht.linear(a, weight)
                for m in (1, 7, 17):
                    self.check(ht.linear, a[:m], weight)
                    self.assertEqual(bits(ht.linear(a[:m], weight)), bits(whole[:m]))

    def test_operators_of_torch(self):
        for device in DEVICES:
            a, b, c = random(8, 16, device=device), random(16, 4, device=device), random(8, 4, device=device)
            ht.enable(dispatch_key=device.upper(), strict=True)
            self.addCleanup(ht.disable)
            for case in (lambda: torch.mm(a, b), lambda: torch.addmm(c, a, b, beta=0.5), lambda: torch.addmm(c[0], a, b),
                         lambda: torch.bmm(a[None], b[None]), lambda: torch.baddbmm(c[None], a[None], b[None])):
                with without:
                    want = bits(case())
                served = ht.counts()["served"]
                with mock.patch("hgemm.torch._ops.run", side_effect=AssertionError("left")):
                    self.assertEqual(bits(case()), want)
                self.assertEqual(ht.counts()["served"], served + 1)

    def test_threads_share_handles(self):
        for device in DEVICES:
            a, b = random(24, 64, device=device), random(64, 40, device=device)
            want, wrong = bits(ht.mm(a, b)), []

            def work():
                for i in range(50):
                    result = ht.mm(a, b) if i % 5 else _ops.run(a, b, None, None, 1.0, 0.0, "none", None, False)[0]
                    if bits(result) != want:
                        wrong.append(i)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertFalse(wrong)


class Loading(unittest.TestCase):
    def test_a_torch_that_lacks_something(self):
        missing = _extension.library.hgemm_torch_load(ctypes.CDLL("libm.so.6")._handle, hgemm.c._library._handle)
        self.assertEqual(missing, b"aoti_torch_get_dim")
        self.assertEqual(ht.mm(random(2, 3), random(3, 4)).shape, (2, 4))  # what was there stays


class Left(unittest.TestCase):
    def served(self, *arguments):
        ht.mm(random(2, 2), random(2, 2))  # there is a handle
        self.assertIsNotNone(_extension.serve(random(2, 2), random(2, 2), 0))
        return _extension.serve(*arguments)

    def test_what_has_to_be_copied_or_is_wrong(self):
        a, b = random(8, 16), random(16, 4)
        cases = [(a[:, ::2], b[:8], 0), (a, b.bfloat16(), 0), (a.float(), b.float(), 0), (a, b[:15], 0), (a, b[0], 0),
                 (a, b, _extension.BATCHED), (a[None], b[None], 0), (a, b, _extension.LINEAR),
                 (random(2, 3, 32)[:, :2, :16], b.t(), _extension.LINEAR), (random(()), b.t(), _extension.LINEAR),
                 (a, b, 0, random(8, 1)), (a, b, 0, random(8, 8)[:, ::2]), (a, b, 0, random(4, 8).t()),
                 (a, b, 0, random(3)), (a, b, 0, random(4).double()), (a, b, 0, random(8, 4), 1, 0),
                 (a, b, 0, random(4), 1, 0.5), (a, b, 0, random(8)[::2]),
                 (a, b, 0 | 9 << _extension.ACTIVATION_SHIFT), (a, b, _extension.BATCH_INVARIANT)]
        for case in cases:
            self.assertIsNone(self.served(*case))

    def test_a_handle_in_use(self):
        a, b = random(2, 2), random(2, 2)
        want = ht.mm(a, b)
        key = -1, 0, False
        taken = [_handles._pool.take(*key) for _ in range(len(_handles._pool._idle[key]))]
        self.assertIsNone(_extension.serve(a, b, 0))
        self.assertEqual(bits(ht.mm(a, b)), bits(want))  # by another one
        for handle in taken:
            _handles._pool.give_back(handle, *key)
        self.assertIsNotNone(_extension.serve(a, b, 0))

    def test_gradients(self):
        a, b = random(8, 16).requires_grad_(), random(16, 4)
        self.assertIsNone(_extension.serve_plain(a, b, 0))
        self.assertIsNotNone(ht.mm(a, b).grad_fn)
        with torch.no_grad():
            self.assertIsNotNone(_extension.serve_plain(a, b, 0))
        with torch.inference_mode():
            self.assertTrue(ht.mm(a, b).is_inference())
        results = []
        for context in (without, mock.patch.object(_extension, "enabled", True)):
            with context:
                results.append(torch.autograd.grad(ht.mm(a, b).sum(), a)[0])
        self.assertEqual(*map(bits, results))

    def test_what_sees_operators(self):
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return function(*args, **kwargs or {})

        a, b = random(8, 16), random(16, 4)
        want = ht.mm(a, b)
        with Mode():
            result = ht.mm(a, b)
        self.assertEqual(bits(result), bits(want))
        self.assertEqual(seen, ["hgemm.gemm.default"])
        for mode in ("real", "fake"):
            self.assertIn("hgemm.gemm.default", make_fx(lambda x, y: ht.mm(x, y), tracing_mode=mode)(a, b).code)
        self.assertIn("hgemm::gemm", str(torch.jit.trace(ht.mm, (a, b)).graph))
        rows = torch.func.vmap(ht.mm, in_dims=(0, None))(a[:, None], b)
        torch.testing.assert_close(rows[:, 0], a @ b, rtol=2**-9, atol=2**-8)


if __name__ == "__main__":
    unittest.main()
