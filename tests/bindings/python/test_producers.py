"""hgemm.matmul() with arrays of other libraries: what DLPack and the array interfaces say of them, and new results."""

import ctypes
import sys
import types
import unittest
from unittest import mock

import ml_dtypes
import numpy as np

import hgemm
from hgemm import _arrays

try:
    import torch
except ModuleNotFoundError:
    torch = None
try:
    import jax.numpy as jnp
    import jax
except ModuleNotFoundError:
    jax = None

rng = np.random.default_rng(1)


def random(*shape, dtype="float16"):
    return rng.standard_normal(shape).astype(dtype)


def bits(array):
    return np.asarray(array).view("uint8").tobytes()


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """An array that speaks DLPack alone. version: the newest that it knows, None: that before 1.0. strides, of
    elements, and flags are as they are given, or those of the array."""

    def __init__(self, array, version=(1, 0), strides=None, flags=0):
        self.array, self.version = array, version
        if strides is None:
            strides = [stride // array.itemsize for stride in array.strides]
        self.shape, self.strides = ((ctypes.c_int64 * array.ndim)(*values) for values in (array.shape, strides))
        self.exported = _arrays._DlVersioned(*(version or (0, 0)), None, None, flags | (not array.flags.writeable))
        tensor = self.exported.tensor
        tensor.data, tensor.device_type, tensor.ndim = array.ctypes.data, 1, array.ndim
        tensor.code, tensor.bits, tensor.lanes = 4 if array.dtype == ml_dtypes.bfloat16 else 2, 8 * array.itemsize, 1
        integers = ctypes.POINTER(ctypes.c_int64)
        tensor.shape, tensor.strides = ctypes.cast(self.shape, integers), ctypes.cast(self.strides, integers)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        if self.version is None and options:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        if options.get("max_version") is not None:
            return new_capsule(ctypes.addressof(self.exported), b"dltensor_versioned", None)
        if self.exported.flags:
            raise BufferError("DLPack before 1.0 has no flags")
        return new_capsule(ctypes.addressof(self.exported.tensor), b"dltensor", None)


def read_only(array):
    array.flags.writeable = False
    return array


class Opaque:
    """As numkong's tensors: the array interface has a type string that says nothing, DLPack says bfloat16."""

    def __init__(self, array, dlpack=True):
        self.array, self.dtype = array, "bf16"
        self.__array_interface__ = {**array.__array_interface__, "typestr": "<V2", "descr": [("", "<V2")]}
        if dlpack:
            self.__dlpack_device__ = Producer(array).__dlpack_device__
            self.__dlpack__ = Producer(array).__dlpack__


class Dlpack(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.out = random(8, 16), random(16, 4), np.zeros((8, 4), "float16")
        self.want = bits(hgemm.matmul(self.a, self.b))

    def refused(self, name, *arguments, **options):
        with self.assertRaisesRegex(ValueError, f"^{name}: "):
            hgemm.matmul(*arguments, **options)

    def test_versions(self):
        for version in (None, (1, 0), (1, 3)):
            self.out[:] = 0
            hgemm.matmul(Producer(self.a, version), Producer(self.b, version), Producer(self.out, version))
            self.assertEqual(bits(self.out), self.want)
        self.refused("a", Producer(self.a, (2, 0)), self.b)

    def test_read_only_inputs(self):
        for array in (self.a, self.b):
            read_only(array)
        hgemm.matmul(Producer(self.a), Producer(self.b), self.out)
        self.assertEqual(bits(self.out), self.want)

    def test_read_only_results(self):
        out = read_only(self.out)
        self.refused("out", self.a, self.b, Producer(out))
        self.refused("aux", self.a, self.b, np.empty((8, 4), "float16"), aux=Producer(out))
        self.assertFalse(out.any())
        copied = np.zeros((8, 4), "float16")
        self.refused("out", self.a, self.b, Producer(copied, flags=_arrays._COPIED))

    def test_immutable_classes(self):
        class Tensor(Producer):
            pass

        with mock.patch.dict(sys.modules, tensorflow=types.SimpleNamespace(Tensor=Tensor)):
            self.refused("out", self.a, self.b, Tensor(self.out, None))
            hgemm.matmul(Tensor(self.a, None), self.b, self.out)
        self.assertEqual(bits(self.out), self.want)

    def test_bfloat16_of_an_opaque_type_string(self):
        a, b = (array.astype(ml_dtypes.bfloat16) for array in (self.a, self.b))
        self.assertEqual(bits(hgemm.matmul(Opaque(a), Opaque(b))), bits(hgemm.matmul(a, b)))
        out = np.zeros((8, 4), ml_dtypes.bfloat16)
        hgemm.matmul(Producer(a), Opaque(b), Opaque(out))
        self.assertEqual(bits(out), bits(hgemm.matmul(a, b)))
        with self.assertRaisesRegex(TypeError, "^a: its elements are bf16"):
            hgemm.matmul(Opaque(a, dlpack=False), b)

    def test_a_producer_that_fails(self):
        class Failing(Producer):
            def __dlpack__(self, **_):
                raise BufferError("not today")

        self.refused("b", self.a, Failing(self.b))
        structured = np.zeros((8, 16), [("x", "float16")])
        with self.assertRaisesRegex(TypeError, "^a: its elements are"):
            hgemm.matmul(structured, self.b)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_tensors_that_pytorch_does_not_hand_out(self):
        tensor = torch.from_numpy(self.a)
        for a in (tensor.clone().requires_grad_(), tensor.to("meta"), tensor.to_sparse()):
            self.refused("a", a, self.b)

    @unittest.skipIf(jax is None, "JAX is not installed")
    def test_a_traced_array(self):
        with self.assertRaisesRegex(TypeError, "^a: is traced by JAX.*hgemm.jax.matmul"):
            jax.jit(lambda a: hgemm.matmul(a, self.b))(jnp.asarray(self.a))


class Batches(unittest.TestCase):
    def test_reversed_and_every_second(self):
        """CuPy divides the bytes of a negative stride by the size as unsigned numbers."""
        for dtype in ("float16", ml_dtypes.bfloat16):
            a, b = random(6, 8, 16, dtype=dtype), random(6, 16, 4, dtype=dtype)
            for step in (slice(None, None, -1), slice(None, None, 2), slice(None, None, -2)):
                left, right, c = a[step], b[step], random(6, 8, 4, dtype=dtype)[step]
                want = np.stack([hgemm.matmul(x, y, c=z, dtype="float32") for x, y, z in zip(left, right, c)])
                out = np.zeros((6, 8, 4), "float32")[step]
                hgemm.matmul(*map(self.as_cupy, (left, right)), self.as_cupy(out), c=self.as_cupy(c))
                self.assertEqual(bits(out.copy()), bits(want))

    @staticmethod
    def as_cupy(array):
        return Producer(array, None, [stride % 2**64 // array.itemsize for stride in array.strides])

    def test_empty_batches(self):
        """Strides of an empty array are zero in CuPy."""
        def as_cupy(*shape):
            return Producer(np.zeros(shape, "float16"), None, [0] * len(shape))

        out = as_cupy(0, 2, 5)
        self.assertIs(hgemm.matmul(as_cupy(0, 2, 7), as_cupy(0, 7, 5), out), out)
        self.assertIs(hgemm.matmul(random(2, 7), as_cupy(0, 7, 5), out, bias=random(5), c=as_cupy(0, 2, 5)), out)
        hgemm.matmul(as_cupy(0, 7), random(7, 5), as_cupy(0, 5))

    def test_reversed_rows_are_refused_with_their_strides(self):
        a = random(8, 16)[::-1]
        with self.assertRaisesRegex(ValueError, r"^a: its strides \(-16, 1\)"):
            hgemm.matmul(self.as_cupy(a), random(16, 4), np.empty((8, 4), "float16"))


class Interfaces(unittest.TestCase):
    def with_interface(self, kind, array, **more):
        return types.SimpleNamespace(**{kind: {**array.__array_interface__, **more}})

    def test_masks(self):
        a, b = random(8, 16), random(16, 4)
        with self.assertRaisesRegex(TypeError, "^a: is a masked array"):
            hgemm.matmul(np.ma.masked_array(a, mask=a > 0), b)
        with self.assertRaisesRegex(TypeError, "^c: is a masked array"):
            hgemm.matmul(a, b, c=np.ma.zeros((8, 4), "float16"))
        with self.assertRaisesRegex(TypeError, "^b: has a mask"):
            hgemm.matmul(a, self.with_interface("__array_interface__", b, mask=b > 0))

    def test_without_an_address(self):
        with self.assertRaisesRegex(TypeError, "^a: its array interface has no address"):
            hgemm.matmul(self.with_interface("__array_interface__", random(8, 16), data=None), random(16, 4))

    def test_a_gpu_without_a_driver(self):
        try:
            ctypes.CDLL("libcuda.so.1")
            self.skipTest("there is a CUDA driver")
        except OSError:
            pass
        with self.assertRaisesRegex(ValueError, "^a: .*no CUDA driver: libcuda.so.1"):
            hgemm.matmul(self.with_interface("__cuda_array_interface__", random(8, 16)), random(16, 4))


class Results(unittest.TestCase):
    """Without out: of the library of a."""

    def setUp(self):
        self.a, self.b = random(3, 8, 16), random(16, 4)

    def test_dtypes(self):
        for dtype in ("float32", np.float32, np.dtype("float32"), "f4"):
            self.assertEqual(hgemm.matmul(self.a, self.b, dtype=dtype).dtype, "float32")
        self.assertEqual(hgemm.matmul(self.a, self.b, dtype="bfloat16").dtype, ml_dtypes.bfloat16)
        for dtype in ("float64", np.int8, "float", 3):
            with self.assertRaisesRegex(TypeError, "^dtype: "):
                hgemm.matmul(self.a, self.b, dtype=dtype)

    def test_of_a_library_that_is_not_known(self):
        with self.assertRaisesRegex(TypeError, "^out: must be given where a is of a type such as Producer"):
            hgemm.matmul(Producer(self.a), self.b)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_pytorch(self):
        for dtype in (torch.float16, torch.bfloat16):
            a, b = (torch.from_numpy(x).to(dtype) for x in (self.a, self.b))
            out = torch.empty(3, 8, 4, dtype=torch.float32)
            hgemm.matmul(a, b, out)
            for wanted in (None, torch.float32, "float32"):
                d = hgemm.matmul(a, b, dtype=wanted)
                self.assertIs(type(d), torch.Tensor)
                self.assertEqual((d.dtype, d.device), (dtype if wanted is None else torch.float32, a.device))
                self.assertTrue(torch.equal(d, out.to(d.dtype)))
        self.assertEqual(hgemm.matmul(self.a, self.b, dtype=torch.float32).dtype, "float32")

    @unittest.skipIf(jax is None, "JAX is not installed")
    def test_jax(self):
        cpu = jax.devices("cpu")[0]
        for dtype in (jnp.float16, jnp.bfloat16):
            a, b = (jax.device_put(jnp.asarray(x, dtype), cpu) for x in (self.a, self.b))
            want = np.empty((3, 8, 4), "float32")
            hgemm.matmul(a, b, want)
            for wanted in (None, jnp.float32):
                d = hgemm.matmul(a, b, dtype=wanted)
                self.assertIsInstance(d, jax.Array)
                self.assertEqual(bits(hgemm.syrk(a)), bits(hgemm.syrk(np.asarray(a))))
                self.assertEqual((d.dtype, d.devices()), (dtype if wanted is None else "float32", {cpu}))
                self.assertEqual(bits(d), bits(want.astype(d.dtype)))

    @unittest.skipIf(jax is None, "JAX is not installed")
    def test_jax_is_immutable(self):
        cpu = jax.devices("cpu")[0]
        a, out = (jax.device_put(jnp.full((8, 8), value, jnp.bfloat16), cpu) for value in (1, 0))
        alias = jax.device_put(out, cpu)
        for name in ("out", "aux"):
            given = {name: out, **({"out": np.empty((8, 8), ml_dtypes.bfloat16)} if name == "aux" else {})}
            with self.assertRaisesRegex(ValueError, f"^{name}: is read-only"):
                hgemm.matmul(a, a, **given)
        self.assertFalse(np.asarray(out).any() or np.asarray(alias).any())


if __name__ == "__main__":
    unittest.main()
