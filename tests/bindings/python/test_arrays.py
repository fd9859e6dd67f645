"""hgemm.matmul(), syrk(), Handle and errors, on the host backend with numpy and whatever speaks DLPack."""

import pickle
import threading
import unittest

import ml_dtypes
import numpy as np

import hgemm

DTYPES = (np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))
# A result is the fp32 sum, rounded once: half a unit in the last place, and the error of the sum.
EPSILON = {DTYPES[0]: 2.0**-11, DTYPES[1]: 2.0**-8, np.dtype("float32"): 2.0**-22}
rng = np.random.default_rng(1)


def random(*shape, dtype=DTYPES[0]):
    return rng.standard_normal(shape).astype(dtype)


def close(result, exact, a, b):
    """Is it the exact result, but for the rounding of the result and of fp32 sums of k products?"""
    k = a.shape[-1]
    sums = k * 2.0**-23 * (np.abs(a.astype("float64")) @ np.abs(b.astype("float64"))) + 1e-6
    return np.all(np.abs(result.astype("float64") - exact) <= EPSILON[result.dtype] * np.abs(exact) + 2 * sums)


class DlpackOnly:
    """An array that speaks nothing else."""

    def __init__(self, array):
        self.array, self.exported = array, 0

    def __dlpack__(self, **options):
        capsule = self.array.__dlpack__(**options)
        self.exported += 1
        return capsule

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Matmul(unittest.TestCase):
    def check(self, a, b, **options):
        d = hgemm.matmul(a, b, **options)
        self.assertTrue(close(d, a.astype("float64") @ b.astype("float64"), a, b))
        return d

    def test_types(self):
        for dtype in DTYPES:
            for result in (None, dtype, "float32"):
                with self.subTest(dtype=dtype, result=result):
                    d = self.check(random(33, 65, dtype=dtype), random(65, 17, dtype=dtype), dtype=result)
                    self.assertEqual(d.dtype, result or dtype)

    def test_transposes_slices_and_columns(self):
        a, b = random(40, 24), random(24, 32)
        for left in (a, np.asfortranarray(a), a[3:, 2:], a.T[:, ::1].T, a[:1], a[:, :1], a[::3]):
            k = left.shape[1]
            for right in (b, np.asfortranarray(b), b[:, 5:], b[:, :1]):
                with self.subTest(left=left.strides, right=right.strides):
                    self.check(left, right[:k])

    def test_results_in_any_layout(self):
        a, b = random(12, 24), random(24, 10)
        exact = a.astype("float64") @ b.astype("float64")
        whole = np.full((20, 30), 7, "float16")
        for out in (np.empty((12, 10), "float16"), np.empty((12, 10), "float16", order="F"), whole[2:14, 3:13],
                    whole.T[2:14, 3:13]):
            whole[:] = 7
            self.assertIs(hgemm.matmul(a, b, out), out)
            self.assertTrue(close(out, exact, a, b))
            out[:] = 7
            self.assertTrue((whole == 7).all())

    def test_c_bias_activation_and_aux(self):
        a, b, c = random(9, 16), random(16, 12), random(9, 12)
        columns, rows = random(12), random(9, 1)
        product = a.astype("float64") @ b.astype("float64")
        d = hgemm.matmul(a, b, c=c, alpha=2, beta=-3, bias=columns, dtype="float32")
        np.testing.assert_allclose(d, 2 * product - 3 * c.astype("float64") + columns, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(hgemm.matmul(a, b, c=c, dtype="float32"), product + c, rtol=1e-5, atol=1e-4)
        aux = np.empty((9, 12), "float32")
        d = hgemm.matmul(a, b, bias=rows, activation="relu", aux=aux, dtype="float32")
        np.testing.assert_allclose(aux, product + rows, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(d, np.maximum(aux, 0))
        accumulator = c.astype("float32")
        hgemm.matmul(a, b, accumulator, c=accumulator)
        np.testing.assert_allclose(accumulator, product + c, rtol=1e-5, atol=1e-4)

    def test_gates(self):
        """By the members of Args; a gated result is half as wide."""
        a, b, out = random(9, 16), random(16, 12), np.empty((9, 6), "float32")
        product = a.astype("float64") @ b.astype("float64")
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
            for block in (1, 3, 6):
                args = hgemm.arguments(a, b, np.empty((9, 12), "float32"), activation="silu")
                args.d, args.ldd = out.ctypes.data, 6
                args.gate = hgemm.Gate(block=block, limit=1.5, slope=1.25)
                args.gate.offset = 0.5
                handle.gemm(args)
                gate, other = product.reshape(9, -1, 2, block).transpose(2, 0, 1, 3).reshape(2, 9, 6)
                gate, other = np.minimum(gate, 1.5), np.clip(other, -1.5, 1.5)
                np.testing.assert_allclose(out, gate / (1 + np.exp(-1.25 * gate)) * (other + 0.5), rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(ValueError, "^block: "):
            args.gate.block = 2**63

    def test_batches_and_shared_operands(self):
        a, b = random(3, 8, 16), random(3, 16, 4)
        self.check(a, b)
        self.check(a[0], b)
        self.check(a, b[1])
        self.check(a[::-1], b)
        self.assertEqual(hgemm.matmul(a, b, bias=random(4), activation="silu").shape, (3, 8, 4))

    def test_empty_matrices(self):
        for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)):
            d = hgemm.matmul(random(m, k), random(k, n))
            np.testing.assert_array_equal(d, np.zeros((m, n)))

    def test_dlpack(self):
        a, b = random(8, 16), random(16, 4)
        out = np.empty((8, 4), "float16")
        wrapped = DlpackOnly(a)
        hgemm.matmul(wrapped, DlpackOnly(b), DlpackOnly(out))
        self.assertTrue(close(out, a.astype("float64") @ b.astype("float64"), a, b))
        self.assertEqual(wrapped.exported, 1)
        hgemm.matmul(DlpackOnly(a[:, :8]), DlpackOnly(b.T[:, :8].T), out)
        self.assertTrue(close(out, a[:, :8].astype("float64") @ b[:8].astype("float64"), a[:, :8], b[:8]))

    def test_threads(self):
        a, b = random(64, 64), random(64, 64)
        want, wrong = hgemm.matmul(a, b).tobytes(), []

        def work():
            for _ in range(20):
                if hgemm.matmul(a, b).tobytes() != want:
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(wrong)


class Symmetric(unittest.TestCase):
    """syrk() and syrkx()."""

    def check(self, d, exact, a, b=None):
        """The upper half, and its mirror."""
        upper = np.triu(exact) + np.triu(exact, 1).swapaxes(-2, -1)
        self.assertEqual(d.tobytes(), np.ascontiguousarray(d.swapaxes(-2, -1)).tobytes())
        self.assertTrue(close(d, upper, a, (a if b is None else b).swapaxes(-2, -1)))

    def test_types_and_layouts(self):
        for dtype in DTYPES:
            for n, k in ((33, 65), (300, 16), (1, 8), (0, 3), (3, 0)):
                a = random(n, k, dtype=dtype)
                for left in (a, np.asfortranarray(a), random(n + 2, k + 3, dtype=dtype)[2:, 3:]):
                    for result in (None, "float32"):
                        d = hgemm.syrk(left, dtype=result)
                        self.assertEqual((d.shape, d.dtype), ((n, n), result or dtype))
                        self.check(d, left.astype("float64") @ left.T.astype("float64"), left)

    def test_c_and_out(self):
        a, b, c = random(40, 16), random(40, 16), random(40, 40)
        square, product = a.astype("float64") @ a.T.astype("float64"), a.astype("float64") @ b.T.astype("float64")
        self.check(hgemm.syrkx(a, b, c=c, beta=-3, alpha=2), 2 * product - 3 * c.astype("float64"), a, b)
        whole = np.full((50, 60), 7, "float32")
        for out in (np.empty((40, 40), "float16", order="F"), whole[5:45, 5:45], c):
            added = c.astype(out.dtype) if out is not c else c
            exact = square + added.astype("float64")
            added = np.asfortranarray(added) if out.flags.f_contiguous else added
            self.assertIs(hgemm.syrk(a, out, c=added), out)
            self.check(np.ascontiguousarray(out), exact, a)
        whole[5:45, 5:45] = 7
        self.assertTrue((whole == 7).all())

    def test_batches_and_dlpack(self):
        a, b = random(3, 20, 8), random(20, 8)
        exact = a.astype("float64") @ a.swapaxes(1, 2).astype("float64")
        self.check(hgemm.syrk(a), exact, a)
        self.check(hgemm.syrk(a[::-1]), exact[::-1], a[::-1])
        self.check(hgemm.syrkx(a, b), a.astype("float64") @ b.T.astype("float64"), a, b)
        out = np.empty((3, 20, 20), "float16")
        self.check(hgemm.syrk(DlpackOnly(a), out), exact, a)

    def test_work(self):
        """Part of it is saved, as the library's plan says."""
        a, out = random(1024, 64), np.empty((1024, 1024), "float16")
        args = hgemm.arguments(a, a.T, out)
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
            self.assertNotIn("triangle", handle.explain(args))
            args.uplo = hgemm.Uplo.BOTH
            self.assertIn("triangle and its mirror", handle.explain(args))
            handle.gemm(args)
            self.assertEqual(out.tobytes(), hgemm.syrk(a, handle=handle).tobytes())

    def test_wrong_arguments(self):
        a = random(8, 16)
        for kind, name, call in (
                (TypeError, "a", lambda: hgemm.syrk(None)), (ValueError, "a", lambda: hgemm.syrk(a[0])),
                (ValueError, "a", lambda: hgemm.syrk(a[:, ::2])), (TypeError, "a", lambda: hgemm.syrk(a.astype("f4"))),
                (ValueError, "b", lambda: hgemm.syrkx(a, a[:7])), (ValueError, "b", lambda: hgemm.syrkx(a, a.T)),
                (ValueError, "b", lambda: hgemm.syrkx(a, a[0])), (ValueError, "c", lambda: hgemm.syrk(a, beta=1)),
                (ValueError, "c", lambda: hgemm.syrk(a, c=a)), (ValueError, "out", lambda: hgemm.syrk(a, a.copy())),
                (ValueError, "dtype", lambda: hgemm.syrk(a, random(8, 8), dtype="float16")),
                (TypeError, "handle", lambda: hgemm.syrk(a, handle=1))):
            with self.subTest(name=name), self.assertRaisesRegex(kind, f"^{name}: "):
                call()


class WrongArguments(unittest.TestCase):
    """Each is an exception whose text begins with the argument's name."""

    def refused(self, kind, name, *args, **options):
        with self.assertRaisesRegex(kind, f"^{name}: "):
            hgemm.matmul(*args, **options)

    def test_arrays(self):
        a, b, out = random(8, 16), random(16, 4), np.empty((8, 4), "float16")
        self.refused(TypeError, "a", [[1.0]], b, out)
        self.refused(TypeError, "a", [[1.0]], b)
        self.refused(TypeError, "a", None, b)
        self.refused(TypeError, "a", a.astype("float64"), b)
        self.refused(TypeError, "a", a.astype(">f2"), b)
        self.refused(TypeError, "a", a.astype("float32"), b.astype("float32"))
        self.refused(TypeError, "b", a, b.astype(ml_dtypes.bfloat16))
        self.refused(ValueError, "a", a[0], b, out)
        self.refused(ValueError, "b", a, b[:, 0], out)
        self.refused(ValueError, "b", a, random(15, 4))
        self.refused(ValueError, "a", random(2, 2, 8, 16), b, out)
        self.refused(ValueError, "a", a[:, ::-1], b)
        self.refused(ValueError, "a", a[::-1], b)
        self.refused(ValueError, "b", a, random(32, 8)[::2, ::2])
        self.refused(ValueError, "a", np.broadcast_to(a[:1], (8, 16)), b)
        self.refused(ValueError, "out", random(3, 8, 16), b, out)
        self.refused(ValueError, "b", random(3, 8, 16), random(2, 16, 4), np.empty((3, 8, 4), "float16"))
        packed = np.zeros(8, dtype=[("x", "float16", 16), ("y", "u1")])["x"]
        self.refused(ValueError, "a", packed, b, out)

    def test_results(self):
        a, b, out = random(8, 16), random(16, 4), np.empty((8, 4), "float16")
        self.refused(ValueError, "out", a, b, out.T)
        self.refused(ValueError, "out", a, b, np.empty((8, 8), "float16")[:, ::2])
        read_only = out.copy()
        read_only.flags.writeable = False
        self.refused(ValueError, "out", a, b, read_only)
        self.refused(ValueError, "c", a, b, out, c=np.asfortranarray(out))
        self.refused(ValueError, "dtype", a, b, out, dtype="float32")
        self.refused(ValueError, "bias", a, b, bias=random(5))
        self.refused(ValueError, "bias", a, b, bias=random(8)[::2])
        self.refused(ValueError, "activation", a, b, activation="tanh")
        self.refused(TypeError, "aux", a, b, aux=np.empty((8, 4), "float32"))

    def test_what_the_library_refuses(self):
        a = random(8, 8)
        with self.assertRaisesRegex(hgemm.Error, "overlap") as caught:
            hgemm.matmul(a, a, a)
        self.assertEqual((caught.exception.status, caught.exception.argument), (hgemm.Status.INVALID_ARGUMENT, 2))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.status, str(again)), (caught.exception.status, str(caught.exception)))


class Handles(unittest.TestCase):
    def test_settings(self):
        with hgemm.Handle(hgemm.DEVICE_HOST, workspace_bytes=4096) as handle:
            self.assertEqual((handle.device, handle.backend, handle.stream), (hgemm.DEVICE_HOST, "host", 0))
            self.assertEqual(handle.workspace[1], 4096)
            handle.sm_count = 1
            self.assertEqual((handle.sm_count, handle.mode), (1, hgemm.Mode.DEFAULT))
            for mode in (hgemm.Mode.BATCH_INVARIANT, hgemm.Mode.DEFAULT):
                handle.mode = mode
                self.assertEqual(handle.mode, mode)
            memory = np.empty(1 << 16, "uint8")
            start = -memory.ctypes.data % 256
            handle.workspace = memory.ctypes.data + start, 32768
            self.assertEqual(handle.workspace, (memory.ctypes.data + start, 32768))
            handle.workspace = 0, 0
            self.assertEqual(handle.workspace[1], 4096)
        self.assertIn("closed", repr(handle))
        with self.assertRaises(hgemm.Error) as caught:
            handle.sm_count = 2
        self.assertEqual(caught.exception.status, hgemm.Status.NOT_INITIALIZED)

    def test_a_product_by_its_arguments(self):
        a, b, out = random(8, 16), random(16, 4), np.empty((8, 4), "float16")
        args = hgemm.arguments(a, b, out)
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
            handle.gemm(args)
            np.testing.assert_array_equal(out, hgemm.matmul(a, b, handle=handle))
            self.assertIn("backend=host", handle.explain(args))
            self.assertGreaterEqual(handle.workspace_size(args), 0)
            self.assertEqual(handle.tune(args, max_rounds=9).candidates, 1)

    def test_groups(self):
        a, b, d = random(6, 16), random(2, 4, 16), np.zeros((6, 4), "float16")
        offsets = np.array([0, 2, 6], "int64")
        args = hgemm.GroupedArgs()
        args.group_count, args.m, args.n, args.k = 2, 6, 4, 16
        args.a, args.lda, args.b, args.ldb, args.stride_b = a.ctypes.data, 16, b.ctypes.data, 16, 64
        args.d, args.ldd, args.offsets = d.ctypes.data, 4, offsets.ctypes.data
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
            handle.grouped(args)
        np.testing.assert_array_equal(d, np.concatenate([hgemm.matmul(a[:2], b[0].T), hgemm.matmul(a[2:], b[1].T)]))

    def test_log(self):
        lines = []
        hgemm.set_logger(hgemm.LogLevel.PLAN, lines.append)
        try:
            with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
                hgemm.matmul(random(4, 4), random(4, 4), handle=handle)
        finally:
            hgemm.set_logger(hgemm.LogLevel.OFF, None)
        self.assertTrue(any("kernel=" in line for line in lines), lines)

    def test_functions_of_c(self):
        a, c = random(4, 4), np.empty((4, 4), "float16")
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
            hgemm.c.hgemm_tn(handle.raw, 4, 4, 4, 1, a.ctypes.data, 4, a.ctypes.data, 4, 0, c.ctypes.data, 4)
            np.testing.assert_array_equal(c.T, hgemm.matmul(a, a.T))
            for symmetric in (lambda *rest: hgemm.c.hsyrk(*rest, 1, a.ctypes.data, 4, 0, c.ctypes.data, 4),
                              lambda *rest: hgemm.c.hsyrkx(*rest, 1, a.ctypes.data, 4, a.ctypes.data, 4, 0,
                                                           c.ctypes.data, 4),
                              lambda *rest: hgemm.c.hsyrk_strided_batched(*rest, 1, a.ctypes.data, 4, 16, 0,
                                                                          c.ctypes.data, 4, 16, 1)):
                c[:] = 0
                symmetric(handle.raw, hgemm.Layout.ROW_MAJOR, hgemm.Uplo.BOTH, hgemm.Op.TRANS, 4, 4)
                np.testing.assert_array_equal(c, hgemm.syrk(a.T))
            with self.assertRaisesRegex(hgemm.Error, "lda"):
                hgemm.c.hgemm_tn(handle.raw, 4, 4, 4, 1, a.ctypes.data, 3, a.ctypes.data, 4, 0, c.ctypes.data, 4)


if __name__ == "__main__":
    unittest.main()
