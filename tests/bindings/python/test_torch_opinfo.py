"""Torch's own samples of the operators that reach products: with hgemm.torch enabled all is as without.

usage: test_torch_opinfo.py [--device cpu|cuda] [<arguments of unittest>...]
"""

import argparse
import importlib.util
import sys
import unittest
from collections import Counter

missing = [name for name in ("torch", "expecttest") if importlib.util.find_spec(name) is None]
if missing:
    print(f"hgemm.torch by torch's samples: Skipped\n{' and '.join(missing)} not installed")
    sys.exit(77)

import hgemm.torch as ht
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
options, for_unittest = parser.parse_known_args()
DEVICE, HALF = options.device, (torch.float16, torch.bfloat16)
# How far a result may be off depends on what computes it: one product, whose sum is rounded once; several, or sums of
# what is rounded; or what is not linear in each tensor. Of addr the gradient alone is a product.
ONE = ("mm", "bmm", "mv", "addmm", "addmm.decomposed", "baddbmm", "addmv", "matmul", "__rmatmul__")
SEVERAL = ("nn.functional.linear", "addbmm", "addr", "einsum", "tensordot", "linalg.multi_dot",
           "nn.functional.bilinear")
OTHER = ("cov", "corrcoef", "matrix_exp", "nn.functional.multi_head_attention_forward")
OPERATORS = [op for op in op_db if op.full_name in ONE + SEVERAL + OTHER]
seen = Counter()
served = lambda: ht.counts().get("served", 0)  # noqa: E731
seed = torch.cuda.manual_seed if DEVICE == "cuda" else torch.default_generator.manual_seed


def by_columns(x):
    return x.detach().mT.contiguous().mT.requires_grad_(x.requires_grad) if x.dim() > 1 else x


class Call:
    """An operator with its arguments. Tensors that require a gradient are what it is differentiated by."""

    def __init__(self, op, sample):
        self.op = op
        self.values, self.form = tree_flatten((sample.input, sample.args, sample.kwargs))

    def where(self, change):
        """With other tensors."""
        other = Call.__new__(Call)
        other.op, other.form = self.op, self.form
        other.values = [change(x) if isinstance(x, torch.Tensor) else x for x in self.values]
        return other

    def run(self, function=None, **keywords):
        input, args, kwargs = tree_unflatten(self.values, self.form)
        seed(1)  # of dropout
        result = (function or self.op)(input, *args, **kwargs, **keywords)
        return [x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, torch.Tensor)]

    def in_place(self):
        return self.run(lambda input, *args, **kwargs: self.op.get_inplace()(input.clone(), *args, **kwargs))

    def gradients(self, convert=lambda x: x):
        results = [x for x in self.run() if x.requires_grad]
        weights = [convert((torch.arange(x.numel(), device=DEVICE) % 7 - 3).to(x.dtype).view(x.shape)) for x in results]
        inputs = [x for x in self.values if isinstance(x, torch.Tensor) and x.requires_grad]
        found = torch.autograd.grad(results, inputs, weights, allow_unused=True) if results else ()
        return [x for x in found if x is not None]

    def exact(self, gradients):
        """In fp64; and the same of absolute values, to which rounding is proportional."""
        def wide(convert):
            call = self.where(lambda x: convert(x.detach().double()).requires_grad_(x.requires_grad)
                              if x.is_floating_point() else x if x.dtype == torch.bool else convert(x))
            call.values = [convert(torch.tensor(x)).item() if isinstance(x, float) else x for x in call.values]
            return call.gradients(convert) if gradients else call.run()

        right = wide(lambda x: x)
        if self.op.full_name in OTHER:
            return zip(right, [x.abs().max().expand(x.shape) if x.numel() else x for x in right])
        return zip(right, wide(torch.abs), strict=True)

    def changed(self):
        """Calls like this one, of which many are wrong."""
        yield self.where(lambda x: x[None])
        changes = [lambda x: x[..., :-1] if x.dim() else x, lambda x: torch.cat([x, x]) if x.dim() else x,
                   lambda x: x[None], lambda x: x[0] if x.dim() and len(x) else x]
        changes += [lambda x, other=other: x.to(other) for other in (*HALF, torch.float32, torch.int64)]
        for value in self.values:
            if isinstance(value, torch.Tensor):
                yield from (self.where(lambda x: change(x) if x is value else x) for change in changes)


class Samples(unittest.TestCase):
    def assert_close(self, our, their, right, size, once):
        self.assertEqual((our.shape, our.dtype, our.stride()), (their.shape, their.dtype, their.stride()))
        if our.dtype not in HALF:
            torch.testing.assert_close(our, their, equal_nan=True)
            return
        finite = their.isfinite() & right.isfinite()
        torch.testing.assert_close(our[~finite], their[~finite], rtol=0, atol=0, equal_nan=True)
        info, in_fp32 = torch.finfo(our.dtype), 2**-17  # of sums of 20 products, where tensor cores truncate
        our, their, right, size = (x[finite].double() for x in (our, their, right, size))
        unit = info.eps * (size + info.tiny)
        if once:
            bound = info.eps / 2 * right.abs() + in_fp32 * size + info.eps * info.tiny
        else:  # one unit of what is added up more than torch itself is off
            bound = unit * (1 + max(((their - right).abs() / unit).tolist(), default=0))
        if not ((our - right).abs() <= bound).all():
            self.fail(f"{our}\ntorch: {their}\nexact: {right}")

    def same(self, call, function, gradients=False):
        """What a function returns or raises, by torch and with hgemm. True if it returns."""
        outcomes, before = [], served()
        for switch in (ht.disable, lambda: ht.enable(dispatch_key=DEVICE.upper())):
            switch()
            try:
                outcomes.append(function())
            except Exception as error:
                outcomes.append(error)
        ht.disable()
        theirs, ours = outcomes
        if isinstance(theirs, Exception) or isinstance(ours, Exception):
            self.assertEqual((type(ours), str(ours)), (type(theirs), str(theirs)))
            seen["refused"] += 1
            return False
        once = call.op.full_name in ONE and served() > before and not gradients
        for our, their, (right, size) in zip(ours, theirs, call.exact(gradients), strict=True):
            self.assert_close(our, their, right, size, once)
        return True

    def check(self, call):
        seen["calls"] += 1
        if self.same(call, call.run):
            self.same(call, call.gradients, gradients=True)
        if call.op.get_inplace():
            self.same(call, call.in_place)

    def check_out(self, call):
        """Results where there is room for them, and where there is not."""
        call = call.where(torch.Tensor.detach)
        x, = call.run()
        for new in (lambda: torch.empty_like(x), lambda: by_columns(torch.empty_like(x)), lambda: x.new_empty(0),
                    lambda: x.new_empty(*x.shape, 2)[..., 0], lambda: x.new_empty(2, *x.shape), lambda: x.float()):
            def written():
                out = new()
                call.run(out=out)
                return [out]
            seen["calls"] += 1
            self.same(call, written)

    def test_operators_of_torch(self):
        """Both types get each sample. What is changed and often wrong gets them in turn."""
        for op in OPERATORS:
            before = served()
            for turn, dtype in enumerate(HALF):
                for number, sample in enumerate(op.sample_inputs(DEVICE, dtype, requires_grad=True)):
                    with self.subTest(op=op.full_name, dtype=dtype, sample=sample.summary()):
                        seen["samples"] += 1
                        calls = [Call(op, sample), Call(op, sample).where(by_columns), Call(op, sample.noncontiguous())]
                        for call in calls:
                            self.check(call)
                            if op.supports_out:
                                self.check_out(call)
                        for call in calls[0].changed() if op.full_name not in OTHER and number % 2 == turn else ():
                            self.check(call)
            self.assertGreater(served(), before, op.full_name)

    def test_errors(self):
        for op in OPERATORS:
            for error in op.error_inputs(DEVICE) if op.error_inputs_func else ():
                for dtype in HALF:
                    call = Call(op, error.sample_input).where(lambda x: x.to(dtype) if x.is_floating_point() else x)
                    self.assertFalse(self.same(call, call.run))

    def test_opcheck(self):
        """The types in turn: the operator does not tell them apart."""
        for op in OPERATORS:
            for turn, dtype in enumerate(HALF) if op.full_name in ("mm", "bmm", "addmm", "baddbmm") else ():
                for sample in list(op.sample_inputs(DEVICE, dtype, requires_grad=True))[turn::2]:
                    for call in (Call(op, sample), Call(op, sample.noncontiguous())):
                        *added, a, b = (x for x in call.values if isinstance(x, torch.Tensor))
                        c = added[0].expand(*a.shape[:-1], b.shape[-1]) if added else None
                        scalars = sample.kwargs.get("alpha", 1.0), sample.kwargs.get("beta", 1.0), "none"
                        with self.subTest(op=op.full_name, dtype=dtype, sample=sample.summary()):
                            torch.library.opcheck(torch.ops.hgemm.gemm.default, (a, b, c, None, *scalars, None, False))


def tearDownModule():
    print(f"on {DEVICE}: {seen['samples']} samples; {seen['calls']} calls of these, their results' places and changed "
          f"ones, of which torch refuses {seen['refused']}; products: {ht.counts()}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *for_unittest], warnings="ignore")
