"""hgemm.torch on CUDA tensors. Needs a GPU, or the virtual driver with its runtime in LD_PRELOAD.

Nothing here runs a kernel of PyTorch's own, which the virtual driver cannot: tensors are made and compared on the CPU.
"""

import ctypes
import sys
import threading
import unittest
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch on a device: Skipped\nPyTorch is not installed")
    sys.exit(77)
if not torch.backends.cuda.is_built() or not torch.cuda.is_available():
    print("hgemm.torch on a device: Skipped\nPyTorch finds no CUDA device")
    sys.exit(77)

import hgemm
import hgemm.torch as ht
from hgemm.torch import _handles
from torch.nn import functional

torch.manual_seed(1)
driver = ctypes.CDLL("libcuda.so.1")
DTYPES = (torch.float16, torch.bfloat16)


def random(*shape, dtype=torch.float16):
    return torch.randn(*shape).to(dtype)


def pair(*shape, dtype=torch.float16):
    """In fp64 on the CPU, and on the device."""
    values = random(*shape, dtype=dtype)
    return values.double(), values.cuda()


def assert_close(result, exact):
    tolerance = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-18}[result.dtype]
    torch.testing.assert_close(result.cpu().double(), exact, rtol=tolerance, atol=4 * tolerance)


def bits(tensor):
    return tensor.cpu().view(torch.int16).numpy().tobytes()


class Capture:
    """A graph. That of torch begins with a kernel of torch's."""

    def __init__(self, stream=None):
        self.stream = stream or torch.cuda.Stream()

    def __enter__(self):
        self.current = torch.cuda.stream(self.stream)
        self.current.__enter__()
        self.check(driver.cuStreamBeginCapture_v2(self.raw, ctypes.c_int(0)))
        return self

    def __exit__(self, *error):
        graph, self.executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(driver.cuStreamEndCapture(self.raw, ctypes.byref(graph)))
        self.check(driver.cuGraphInstantiateWithFlags(ctypes.byref(self.executable), graph, ctypes.c_uint64(0)))
        self.current.__exit__(*error)

    @property
    def raw(self):
        return ctypes.c_void_p(self.stream.cuda_stream)

    def replay(self):
        self.check(driver.cuGraphLaunch(self.executable, self.raw))
        torch.cuda.synchronize()

    @staticmethod
    def check(status):
        if status:
            raise RuntimeError(f"the CUDA driver answered {status}")


class Products(unittest.TestCase):
    def test_functions(self):
        for dtype in DTYPES:
            (a, da), (b, db), (c, dc), (v, dv) = (pair(*s, dtype=dtype) for s in ((24, 64), (64, 40), (24, 40), (40,)))
            transposed = random(40, 64, dtype=dtype)
            assert_close(ht.mm(da, db), a @ b)
            assert_close(ht.mm(da, db, torch.float32), a @ b)
            assert_close(ht.mm(da, transposed.cuda().t()), a @ transposed.double().t())
            assert_close(ht.addmm(dc, da, db, alpha=2, beta=-1), 2 * (a @ b) - c)
            assert_close(ht.addmm(dv, da, db), a @ b + v)
            assert_close(ht.linear(da, transposed.cuda(), dv, "silu"),
                         functional.silu(functional.linear(a, transposed.double(), v)))
            assert_close(ht.bmm(da[None], db[None])[0], a @ b)
            assert_close(ht.baddbmm(dc[None], da[None], db[None])[0], a @ b + c)
            out = torch.empty(40, 24, dtype=dtype, device="cuda").t()
            self.assertIs(ht.mm(da, db, out=out), out)
            assert_close(out, a @ b)

    def test_gradients(self):
        (a, da), (b, db), (g, dg) = pair(24, 64), pair(64, 40), pair(24, 40)
        da.requires_grad_(), db.requires_grad_()
        for product in (ht.mm, torch.mm):
            ht.enable(strict=True)
            self.addCleanup(ht.disable)
            grads = torch.autograd.grad(product(da, db), (da, db), dg)
            assert_close(grads[0], g @ b.t())
            assert_close(grads[1], a.t() @ g)

    def test_grouped_mm(self):
        def pad(tensor, sizes, original=functional.pad):
            return original(tensor.cpu(), sizes).cuda()

        (a, da), (b, db) = pair(10, 64, dtype=torch.bfloat16), pair(3, 64, 40, dtype=torch.bfloat16)
        ends = torch.tensor([3, 3, 10]).cuda()
        exact = torch.cat([a[:3] @ b[0], a[3:] @ b[2]])
        transposed = db.cpu().transpose(1, 2).contiguous().cuda().transpose(1, 2)
        with mock.patch.object(functional, "pad", pad):  # where kernels of torch's would run
            assert_close(ht.grouped_mm(da, db, offs=ends), exact)
            assert_close(ht.grouped_mm(da, transposed, offs=ends), exact)

    def test_grouped_mm_over_k(self):
        """Of operands that are not copied, which would take kernels of torch's."""
        (a, da), (b, db) = pair(20, 64, dtype=torch.bfloat16), pair(20, 40, dtype=torch.bfloat16)
        exact = torch.stack([a[:3].t() @ b[:3], torch.zeros(64, 40).double(), a[3:17].t() @ b[3:17]])
        for ends in (torch.tensor([3, 3, 17]), torch.tensor([3, 3, 17], dtype=torch.int32)):
            assert_close(ht.grouped_mm(da.t(), db, offs=ends.cuda()), exact)

    def test_tensors_of_two_places(self):
        a, b = random(8, 16), random(16, 8)
        for left, right in ((a.cuda(), b), (a, b.cuda())):
            with self.assertRaisesRegex(ValueError, "^mat2: is on "):
                ht.mm(left, right)

    def test_arrays(self):
        (a, da), (b, db) = pair(24, 64), pair(64, 40)
        stream = torch.cuda.Stream()
        for options in ({}, {"stream": stream}):
            out = torch.empty(24, 40, dtype=torch.float16, device="cuda")
            hgemm.matmul(da, db, out, **options)
            torch.cuda.synchronize()
            assert_close(out, a @ b)


class Overrides(unittest.TestCase):
    def setUp(self):
        self.addCleanup(ht.disable)

    def test_operators_of_torch(self):
        (a, da), (b, db), (v, dv) = pair(24, 64), pair(64, 40), pair(40)
        before = ht.counts().get("served", 0)
        ht.enable(strict=True)
        assert_close(da @ db, a @ b)
        assert_close(torch.addmm(dv, da, db), a @ b + v)
        assert_close(functional.linear(da, db.t(), dv), a @ b + v)
        assert_close(torch.bmm(da[None], db[None])[0], a @ b)
        assert_close(torch.mm(da, db, out_dtype=torch.float32), a @ b)
        self.assertEqual(ht.counts()["served"] - before, 5)

    def test_activations(self):
        """Torch's GELU here is by tanh."""
        (a, da), (b, db), (v, dv) = pair(24, 64), pair(64, 40), pair(40)
        ht.enable(strict=True)
        total = a @ b + v
        for gelu, right in ((False, functional.relu(total)), (True, functional.gelu(total, approximate="tanh"))):
            assert_close(torch._addmm_activation(dv, da, db, use_gelu=gelu), right)

    def test_products_that_strict_refuses(self):
        x, quantized = random(16, 64).cuda(), torch.ones(64, 64, dtype=torch.int8).cuda()
        ht.enable(strict=True)
        for function in (lambda: torch.ops.aten._mixed_dtypes_linear(x, quantized, x[0]),
                         lambda: torch.ops.aten._weight_int8pack_mm(x, quantized, x[0]),
                         lambda: torch.ops.aten._cslt_sparse_mm(x, x.t()),
                         lambda: torch.ops.symm_mem._async_input_mm(x, x.t(), quantized, 0)):
            with self.assertRaisesRegex(RuntimeError, "is not served by libhgemm, and strict is set: a product"):
                function()

    def test_batch_invariance(self):
        for dtype in DTYPES:
            a, weight = random(40, 512, dtype=dtype).cuda(), random(48, 512, dtype=dtype).cuda()
            with ht.batch_invariant(strict=True):
                whole = ht.linear(a, weight)
                for m in (1, 2, 7, 16, 17, 33):
                    self.assertEqual(bits(ht.linear(a[:m], weight)), bits(whole[:m]))
                    self.assertEqual(bits(functional.linear(a[:m], weight)), bits(whole[:m]))


class Handles(unittest.TestCase):
    def handles_of(self, stream):
        return _handles._pool._idle[0, stream.cuda_stream, False]

    def test_streams(self):
        (a, da), (b, db) = pair(24, 2049), pair(2049, 40)  # which needs a workspace
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            results = [ht.mm(da, db) for _ in range(3)]
        stream.synchronize()
        for result in results:
            assert_close(result, a @ b)
        handle, = self.handles_of(stream)
        self.assertEqual(handle.workspace_per_stream, _handles.WORKSPACE_BYTES)
        self.assertNotEqual(handle.workspace[0], 0)

    def test_workspace_in_no_pool(self):
        """torch.compile's CUDA graphs let nothing of a handle stay in their pools."""
        (a, da), (b, db) = pair(24, 64), pair(64, 40)
        pool = torch.cuda.MemPool()
        with torch.cuda.stream(torch.cuda.Stream()) as _, torch.cuda.use_mem_pool(pool):
            assert_close(ht.mm(da, db), a @ b)
        held = sum(segment["total_size"] for segment in pool.snapshot())
        self.assertTrue(0 < held < _handles.WORKSPACE_BYTES, held)

    def test_memory_that_runs_out(self):
        """What torch's allocator holds and nobody uses is given back before."""
        (a, da), (b, db) = pair(24, 2049), pair(2049, 40)  # which needs a workspace
        out, lacking = torch.empty(24, 40, dtype=torch.float16, device="cuda"), []
        multiply = hgemm.c.hgemm_gemm_ex

        def lack(handle, args):
            if lacking.pop():
                raise hgemm.Error(hgemm.c.Status.ALLOC_FAILED, "cuMemAlloc answered 2")
            return multiply(handle, args)

        with mock.patch.object(hgemm.c, "hgemm_gemm_ex", lack), mock.patch.object(torch.cuda, "empty_cache") as empty:
            lacking[:] = [False, True]
            ht.mm(da, db, out=out)
            assert_close(out, a @ b)
            self.assertEqual((lacking, empty.call_count), ([], 1))
            lacking[:] = [True, True]
            with self.assertRaisesRegex(torch.cuda.OutOfMemoryError, "a workspace: cuMemAlloc answered 2"):
                ht.mm(da, db, out=out)

    def test_threads(self):
        a, b = random(24, 256).cuda(), random(256, 40).cuda()
        want, wrong = bits(ht.mm(a, b)), []

        def work():
            with torch.cuda.stream(torch.cuda.Stream()) as _:
                for _ in range(5):
                    result = ht.mm(a, b)
                    torch.cuda.current_stream().synchronize()
                    if bits(result) != want:
                        wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(wrong)

    def test_graphs_share_no_workspace(self):
        (a, da), (b, db) = pair(24, 2049), pair(2049, 40)
        graphs, used = [], []
        stream = torch.cuda.Stream()
        for _ in range(2):
            with Capture(stream) as graph:
                graph.result = ht.mm(da, db)
                handle, = self.handles_of(stream)
                used.append(handle.workspace[0])
            graphs.append(graph)
        self.assertEqual(len({0, *used}), 3, used)
        for graph in graphs:
            graph.replay()
            assert_close(graph.result, a @ b)

    def test_captures(self):
        """On a stream without a handle; of products that use a workspace, too."""
        for shapes in (((24, 64), (64, 40), (16, 40)), ((8, 4096), (4096, 64), (64, 64))):
            a, b, weight = (random(*shape).cuda() for shape in shapes)
            torch.cuda.synchronize()
            with Capture() as graph:
                y = ht.mm(a, b)
                z = ht.linear(y, weight)
            for _ in range(2):
                a.copy_(random(*shapes[0]))
                graph.replay()
                self.assertEqual(bits(y), bits(ht.mm(a, b)))
                self.assertEqual(bits(z), bits(ht.linear(ht.mm(a, b), weight)))
                assert_close(y, a.cpu().double() @ b.cpu().double())


if __name__ == "__main__":
    unittest.main()
