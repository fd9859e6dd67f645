"""hgemm.torch where something lies between a tensor and its numbers, or other threads are at work."""

import sys
import threading
import unittest

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
