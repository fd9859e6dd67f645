"""hgemm.torch in training: checkpoints, offloading, sharded parameters, values that overflow, torch.func."""

import contextlib
import os
import unittest
import warnings
from unittest import mock

from test_torch import ACTIVATIONS, DTYPES, assert_close, functional, ht, random, torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


def once():
    """Hooks which give what is saved once, as those of a checkpoint."""
    def unpack(saved):
        tensor, = saved
        saved.clear()
        return tensor
    return saved_tensors_hooks(lambda tensor: [tensor.detach().clone()], unpack)


class SavedTensors(unittest.TestCase):
    def setUp(self):
        self.functions = [lambda x, w, b, name=name: ht.linear(x, w, b, name) for name in ACTIVATIONS]
        self.functions += [lambda x, w, b: ht.mm(x, w.t()) + b, lambda x, w, b: ht.addmm(b, x, w.t(), alpha=2),
                           lambda x, w, b: ht.bmm(x[None], w.t()[None])[0] + b,
                           lambda x, w, b: ht.grouped_mm(x, w.t()[None], offs=torch.tensor([len(x)]).int()) + b]
        self.leaves = [random(*shape, dtype=torch.bfloat16, grad=True) for shape in ((8, 16), (8, 16), (8,))]

    def gradients(self, result):
        for leaf in self.leaves:
            leaf.grad = None
        result.sum().backward()
        return [leaf.grad for leaf in self.leaves]

    def compare(self, run):
        """Gradients as without. run(function, leaves): the result, whose gradient is asked for after it has ended."""
        for i, function in enumerate(self.functions):
            with self.subTest(function=i):
                want = self.gradients(function(*self.leaves))
                torch.testing.assert_close(self.gradients(run(function, self.leaves)), want, rtol=0, atol=0)

    def test_checkpoints(self):
        for options in ({"use_reentrant": False}, {"use_reentrant": True},
                        {"use_reentrant": False, "early_stop": False}):
            self.compare(lambda f, leaves: checkpoint(f, *leaves, **options))

        def nested(function, leaves):
            return checkpoint(lambda *x: checkpoint(function, *x, use_reentrant=False), *leaves, use_reentrant=False)
        self.compare(nested)

    def test_hooks(self):
        def under(hooks):
            def run(function, leaves):
                with hooks():
                    return function(*leaves)
            return run

        for hooks in (once, save_on_cpu):
            self.compare(under(hooks))

    def test_compiled(self):
        function = torch.compile(lambda *x: checkpoint(self.functions[1], *x, use_reentrant=False), backend="aot_eager")
        want = self.gradients(self.functions[1](*self.leaves))
        torch.testing.assert_close(self.gradients(function(*self.leaves)), want)

    def test_memory_that_is_given_up_between(self):
        """As sharded parameters: their memory is gone after the forward pass, and there again before the gradient."""
        x, w, b = self.leaves
        want = self.gradients(ht.linear(x, w, b, "silu"))
        y, values, size = ht.linear(x, w, b, "silu"), w.detach().clone(), w.untyped_storage().size()

        def gather(grad):
            w.untyped_storage().resize_(size)
            with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(w):
                w.copy_(values)
            return grad

        w.untyped_storage().resize_(0)
        y.register_hook(gather)
        torch.testing.assert_close(self.gradients(y), want, rtol=0, atol=0)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.weight = torch.nn.Parameter(random(16, 16, dtype=torch.bfloat16))
        self.bias = torch.nn.Parameter(random(16, dtype=torch.bfloat16))

    def forward(self, x):
        return ht.linear(x, self.weight, self.bias, "gelu_tanh")


@contextlib.contextmanager
def group_of_one():
    with mock.patch.dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1"):
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()


@unittest.skipUnless(torch.distributed.is_available(), "this PyTorch is built without torch.distributed")
class Sharded(unittest.TestCase):
    def test_fully_shard(self):
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        x, gradients = random(8, 16, dtype=torch.bfloat16), []
        with group_of_one(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sharded in (False, True):
                layers = [Layer(), Layer()]
                if sharded:
                    layers = [fully_shard(checkpoint_wrapper(layer), mesh=init_device_mesh("cpu", (1,)))
                              for layer in layers]
                torch.nn.Sequential(*layers)(x).sum().backward()
                found = [p.grad for layer in layers for p in layer.parameters()]
                gradients.append([g.full_tensor() if sharded else g for g in found])
        torch.testing.assert_close(*gradients, rtol=0, atol=0)


class Gradients(unittest.TestCase):
    def test_sums_that_overflow(self):
        """The derivative of an activation where its stored argument is infinite, or its cube."""
        for dtype in DTYPES:
            great = 60000.0 if dtype == torch.float16 else 1e38
            for sign in (1, -1):
                x = torch.tensor([[great * sign]], dtype=dtype, requires_grad=True)
                for weight in (1.0, 4.0):  # finite; infinite
                    w, b = torch.full((1, 1), weight, dtype=dtype), torch.zeros(1, dtype=dtype)
                    for name in ("relu", "silu", "gelu_tanh", "gelu_erf"):
                        for create in (False, True):
                            with self.subTest(dtype=dtype, sign=sign, weight=weight, activation=name, create=create):
                                grad, = torch.autograd.grad(ht.linear(x, w, b, name), x, torch.ones(1, 1, dtype=dtype),
                                                            create_graph=create)
                                self.assertEqual(grad.item(), weight if sign > 0 else 0)

    def test_moderate_sums_are_as_before(self):
        for dtype in DTYPES:
            x = torch.linspace(-300, 300, 4001).to(dtype)[:, None].requires_grad_()
            w = torch.ones(1, 1, dtype=dtype)
            for name, function in ACTIVATIONS.items():
                ours, = torch.autograd.grad(ht.linear(x, w, None, name).sum(), x)
                y = x.detach().double().requires_grad_()
                theirs, = torch.autograd.grad(function(y).sum(), y)
                assert_close(ours, theirs)

    def test_nothing_of_input(self):
        """beta is 0: input is not read, and its gradient is 0, as torch's."""
        a, b = random(4, 8, grad=True), random(8, 5, grad=True)
        for shape in ((4, 5), (5,), (4, 1), ()):
            c = torch.full(shape, float("nan"), dtype=torch.float16, requires_grad=True)
            for function, arguments in ((ht.addmm, (a, b)), (ht.baddbmm, (a[None], b[None]))):
                result = function(c, *arguments, beta=0)
                grad, of_a = torch.autograd.grad(result.sum(), (c, a))
                self.assertEqual((grad.shape, grad.dtype, grad.any().item()), (c.shape, c.dtype, False))
                assert_close(of_a, b.detach().double().sum(1).expand(4, 8))
                self.assertTrue(function(c, *(x.detach() for x in arguments), beta=0).requires_grad)
                self.assertFalse(result.isnan().any())

    def test_groups(self):
        """Of any strides, and of any K and N."""
        ends = torch.tensor([3, 3, 9], dtype=torch.int32)
        for k, n in ((16, 8), (12, 10), (7, 5)):
            rows = random(9, k, dtype=torch.bfloat16)
            b = random(3, k, n, dtype=torch.bfloat16, grad=True)
            for a in (rows, rows.t().contiguous().t(), random(9, 2 * k, dtype=torch.bfloat16)[:, :k]):
                a = a.detach().requires_grad_()
                grad = random(9, n, dtype=torch.bfloat16)
                of_a, of_b = torch.autograd.grad(ht.grouped_mm(a, b, offs=ends), (a, b), grad)
                x, y, g = a.detach().double(), b.detach().double(), grad.double()
                assert_close(of_a, torch.cat([g[:3] @ y[0].t(), g[3:] @ y[2].t()]))
                assert_close(of_b, torch.stack([x[:3].t() @ g[:3], torch.zeros(k, n).double(), x[3:].t() @ g[3:]]))


class Transforms(unittest.TestCase):
    """Of torch.func, beside those of torch's own functions in fp64."""

    def compare(self, transform, ours, theirs, *arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch batches custom operators by loops, and says so
            found = transform(ours)(*arguments)
        right = transform(theirs)(*(x.double() for x in arguments))
        for our, their in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, right)), strict=True):
            torch.testing.assert_close(our.double(), their, rtol=0.02, atol=0.02)

    def test_gradients(self):
        from torch.func import grad, jacrev, vmap

        a, b, w, c = random(4, 8) / 2, random(8, 5) / 2, random(5, 8) / 2, random(5)
        both = lambda f: grad(lambda *x: f(*x).square().sum(), (0, 1))  # noqa: E731
        self.compare(both, ht.mm, torch.mm, a, b)
        self.compare(both, ht.bmm, torch.bmm, a[None], b[None])
        self.compare(both, lambda a, b: ht.addmm(c, a, b), lambda a, b: torch.addmm(c.double(), a, b), a, b)
        self.compare(lambda f: vmap(both(f), (0, None)), ht.mm, torch.mm, a[:, None], b)
        self.compare(lambda f: both(vmap(f, (0, None))), ht.mm, torch.mm, a[:, None], b)
        for name, function in ACTIVATIONS.items():
            pair = (lambda x, w: ht.linear(x, w, None, name), lambda x, w: function(functional.linear(x, w)))
            self.compare(both, *pair, a, w)
            self.compare(lambda f: vmap(both(f), (0, None)), *pair, a, w)
            self.compare(jacrev, *pair, a, w)
            self.compare(lambda f: both(lambda x, w: grad(lambda x: f(x, w).sum())(x)), *pair, a, w)
        ends = torch.tensor([1, 4], dtype=torch.int32)
        self.compare(both, lambda a, b: ht.grouped_mm(a, b, offs=ends),
                     lambda a, b: torch.cat([a[:1] @ b[0], a[1:] @ b[1]]),
                     a.bfloat16(), torch.stack([b, -b]).bfloat16())

    def test_no_forward_mode_over_gradients(self):
        b = random(8, 5)
        with self.assertRaisesRegex(NotImplementedError, "hgemm.torch has no forward-mode derivatives"):
            torch.func.hessian(lambda x: ht.mm(x, b).sum())(random(4, 8))


class Flops(unittest.TestCase):
    def count(self, function):
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            function()
        return counter.get_total_flops()

    def test_counter(self):
        a, b, w, c = random(4, 8), random(8, 5), random(5, 8, grad=True), random(4, 5)
        one, ends = 2 * 4 * 8 * 5, torch.tensor([4], dtype=torch.int32)
        for function in (lambda: ht.mm(a, b), lambda: ht.addmm(c, a, b), lambda: ht.bmm(a[None], b[None]),
                         lambda: ht.mm(a, b, out=c), lambda: ht.linear(a, w), lambda: ht.linear(a, w, None, "silu"),
                         lambda: ht.grouped_mm(a, b[None], offs=ends), lambda: torch.mm(a, b)):
            self.assertEqual(self.count(function), one)
        self.assertEqual(self.count(lambda: ht.linear(a, w, None, "silu").sum().backward()), 2 * one)
        self.assertEqual(self.count(lambda: ht.bmm(a.expand(3, 4, 8), b.expand(3, 8, 5))), 3 * one)


if __name__ == "__main__":
    unittest.main()
