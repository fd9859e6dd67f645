"""What the package refuses names the argument that the user wrote: numbers, handles, and values that are none."""

import copy
import ctypes
import pathlib
import pickle
import tempfile
import unittest

import numpy as np

import hgemm
from hgemm import c

A, B = np.ones((8, 16), "float16"), np.ones((16, 4), "float16")


class Refusals(unittest.TestCase):
    def refused(self, kind, name, function, *args, **options):
        with self.assertRaisesRegex(kind, f"^{name}: ") as caught:
            function(*args, **options)
        return str(caught.exception)


class Matmul(Refusals):
    def test_scalars(self):
        for name, more in (("alpha", {}), ("beta", {"c": np.ones((8, 4), "float16")})):
            for value in ("2", None if name == "alpha" else [1], 1j, np.ones(3), object()):
                self.refused(TypeError, name, hgemm.matmul, A, B, **{name: value}, **more)
            for value in (1e40, -1e40, 10**400, np.float64(3.5e38)):
                self.refused((ValueError, OverflowError), name, hgemm.matmul, A, B, **{name: value}, **more)
        for value in (2, True, np.float32(2), np.int8(2), np.array(2.0)):
            np.testing.assert_array_equal(hgemm.matmul(A, B, alpha=value), 16 * float(value) * np.ones((8, 4)))
        for value in (float("inf"), -3.4028235e38):
            hgemm.matmul(A, B, alpha=value)
        self.assertTrue(np.isnan(hgemm.matmul(A, B, alpha=float("nan"))).all())

    def test_beta_without_c(self):
        self.refused(ValueError, "c", hgemm.matmul, A, B, beta=1)
        hgemm.matmul(A, B, beta=0)

    def test_other_arguments(self):
        self.refused(TypeError, "handle", hgemm.matmul, A, B, handle=3)
        self.refused(TypeError, "stream", hgemm.matmul, A, B, stream="x")
        self.refused(ValueError, "stream", hgemm.matmul, A, B, stream=-1)
        self.refused(ValueError, "activation", hgemm.matmul, A, B, activation=[])
        self.refused(TypeError, "b", hgemm.matmul, A, [[1.0]])
        self.refused(TypeError, "a", hgemm.matmul, None, B)
        self.refused(TypeError, "out", hgemm.arguments, A, B, None)
        self.assertIn("its shape is (16,)", self.refused(ValueError, "a", hgemm.matmul, A[0], B))


class Handles(Refusals):
    def setUp(self):
        self.handle = hgemm.Handle(hgemm.DEVICE_HOST, workspace_bytes=4096)
        self.addCleanup(self.handle.close)

    def test_creation(self):
        for device in ("cpu", 1.5, None):
            self.refused(TypeError, "device", hgemm.Handle, device)
        for device in (2**32, 2**32 - 1, 2**40, -2**31 - 1):
            self.refused(ValueError, "device", hgemm.Handle, device)
        self.refused(ValueError, "mode", hgemm.Handle, hgemm.DEVICE_HOST, mode="batch_invariant")
        for size in (-1, 2**64):
            self.refused(ValueError, "workspace_bytes", hgemm.Handle, hgemm.DEVICE_HOST, workspace_bytes=size)

    def test_settings(self):
        for name, kind, value in (("sm_count", ValueError, 2**32 + 1), ("sm_count", TypeError, "1"),
                                  ("mode", ValueError, 2**32), ("workspace", TypeError, 5),
                                  ("workspace's bytes", ValueError, (256, -1)),
                                  ("workspace's address", ValueError, (2**64 + 256, 4096)), ("stream", TypeError, "x"),
                                  ("stream", ValueError, 2**64)):
            with self.subTest(name=name, value=value):
                self.refused(kind, name, setattr, self.handle, name.split("'")[0], value)
        with self.assertRaises(AttributeError):
            self.handle.nonsense = 1
        self.assertEqual((self.handle.sm_count, self.handle.workspace[1]), (0, 4096))

    def test_arguments_of_products(self):
        for function in (self.handle.gemm, self.handle.explain, self.handle.workspace_size, self.handle.tune,
                         self.handle.grouped):
            self.refused(TypeError, "args", function, None)
        self.refused(TypeError, "args", self.handle.gemm, c.GroupedArgs())

    def test_copies(self):
        for function in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, "Handle cannot be copied"):
                function(self.handle)
        self.assertEqual(self.handle.backend, "host")

    def test_paths_of_tuning_files(self):
        out = np.empty((8, 4), "float16")
        args = hgemm.arguments(A, B, out)
        with tempfile.TemporaryDirectory() as folder:
            self.handle.tune(args, max_rounds=9, write=True, path=pathlib.Path(folder) / "tuning")
        self.refused(TypeError, "path", self.handle.tune, args, path=3)
        self.refused(ValueError, "path", self.handle.tune, args, path="a\0b")
        self.refused(ValueError, "max_rounds", self.handle.tune, args, max_rounds=2**32 + 1)
        self.refused(TypeError, "max_seconds", self.handle.tune, args, max_seconds="1")


class Numbers(Refusals):
    """Nothing that C's types cannot hold is wrapped."""

    def test_members_of_structs(self):
        args = c.Args()
        for name, value in (("m", 2**63), ("lda", -2**63 - 1), ("layout", 2**32 + 101), ("flags", 2**32), ("flags", -1),
                            ("a", 2**64), ("a", -1), ("alpha", 1e39), ("size", -1)):
            self.refused(ValueError, name, setattr, args, name, value)
        for name, value in (("m", "3"), ("m", 3.0), ("alpha", "1"), ("layout", None)):
            self.refused(TypeError, name, setattr, args, name, value)
        with self.assertRaisesRegex(AttributeError, "Args has no member transA"):
            args.transA = 111
        args.m, args.a, args.layout, args.alpha = np.int64(2**40), None, c.Layout.ROW_MAJOR, 3
        self.assertEqual((args.m, args.a, args.layout, args.alpha), (2**40, None, 101, 3))
        for struct in (c.GroupedArgs, c.TuneOptions, c.TuneReport):
            self.refused(ValueError, "size", setattr, struct(), "size", 2**64)

    def test_every_argument_of_every_function(self):
        """The value is the first that C's type cannot hold."""
        largest = {**{kind: most + 1 for kind, (_, most) in c._INTEGERS.items()}, ctypes.c_float: 1e39}
        seen = 0
        for name, function in vars(c).items():
            if isinstance(function, type) or not hasattr(function, "argtypes"):
                continue
            kinds = [kind.__mro__[1] if kind.__name__ == "Checked" else kind for kind in function.argtypes]
            for i, kind in enumerate(kinds):
                if kind in largest:
                    given = [0 if each in largest else each() for each in kinds]
                    given[i] = largest[kind]
                    with self.subTest(name, argument=i):
                        self.assertRaisesRegex(ctypes.ArgumentError, f"argument {i + 1}:", function, *given)
                    seen += 1
        self.assertGreater(seen, 200)

    def test_what_is_not_wrapped_is_passed(self):
        a, d = np.ones((4, 4), "float16"), np.empty((4, 4), "float16")
        address = np.uint64(a.ctypes.data)
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
            c.hgemm_nn(handle.raw, np.int32(4), 4, 4, np.float32(1), address, 4, address, 4, 0, d.ctypes.data, 4)
            np.testing.assert_array_equal(d, np.full((4, 4), 4))
            with self.assertRaisesRegex(ctypes.ArgumentError, "argument 2.*from -9223372036854775808"):
                c.hgemm_nn(handle.raw, 2**63, 4, 4, 1, address, 4, address, 4, 0, d.ctypes.data, 4)


if __name__ == "__main__":
    unittest.main()
