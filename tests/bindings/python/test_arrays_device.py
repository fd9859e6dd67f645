"""hgemm on arrays in GPU memory, by CUDA's array interface and DLPack. Needs a CUDA driver, such as the virtual one."""

import ctypes
import sys
import types
import unittest
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from unittest import mock

import ml_dtypes
import numpy as np

import hgemm
from hgemm import _arrays, _matmul

try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    print("device arrays: Skipped\nThere is no CUDA driver")
    sys.exit(77)


def check(status):
    if status:
        raise RuntimeError(f"the CUDA driver answered {status}")


context = c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
rng = np.random.default_rng(1)


class DeviceArray:
    """A copy of numpy's array on the GPU, with the same strides."""

    def __init__(self, array, stream=None):
        self.dtype, self.shape, self.strides, self.stream = array.dtype, array.shape, array.strides, stream
        self.host = array if array.base is None else array.base
        self.memory = c_uint64()
        check(cuda.cuMemAlloc_v2(byref(self.memory), c_size_t(self.host.nbytes)))
        check(cuda.cuMemcpyHtoD_v2(self.memory, c_void_p(self.host.ctypes.data), c_size_t(self.host.nbytes)))
        self.address = self.memory.value + array.ctypes.data - self.host.ctypes.data

    def __del__(self):
        cuda.cuMemFree_v2(self.memory)

    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": self.shape, "strides": self.strides, "typestr": self.dtype.str,
                "data": (self.address, False), "stream": self.stream}

    def get(self):
        check(cuda.cuCtxSynchronize())
        copy = np.empty(self.host.nbytes, "uint8")
        check(cuda.cuMemcpyDtoH_v2(c_void_p(copy.ctypes.data), self.memory, c_size_t(copy.nbytes)))
        start = self.address - self.memory.value
        return np.ndarray(self.shape, self.dtype, copy, start, self.strides)


class DlpackDevice(DeviceArray):
    """The same by DLPack alone."""
    __cuda_array_interface__ = property()
    streams = []

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream):
        self.streams.append(stream)
        capsule = np.zeros(self.shape, self.dtype).__dlpack__()  # as dlpack.h has it, but for where it lies
        tensor = _arrays._DlTensor.from_address(_arrays._capsule_pointer(capsule, b"dltensor"))
        tensor.data, tensor.device_type = self.address, 2
        return capsule


def new_stream(non_blocking=True):
    stream = c_void_p()
    check(cuda.cuStreamCreate(byref(stream), int(non_blocking)))
    return stream.value


class Graph:
    """Of what a function puts on the stream."""

    def __init__(self, stream, function, mode=0):
        graph, self.executable = c_void_p(), c_void_p()
        check(cuda.cuStreamBeginCapture_v2(c_void_p(stream), mode))
        function()
        check(cuda.cuStreamEndCapture(c_void_p(stream), byref(graph)))
        check(cuda.cuGraphInstantiateWithFlags(byref(self.executable), graph, c_uint64(0)))
        check(cuda.cuGraphDestroy(graph))

    def __del__(self):
        cuda.cuGraphExecDestroy(self.executable)

    def launch(self, stream):
        check(cuda.cuGraphLaunch(self.executable, c_void_p(stream)))


def random(*shape, dtype="float16"):
    return rng.standard_normal(shape).astype(dtype)


def assert_close(result, a, b):
    tolerance = 2.0**-7 if result.dtype == ml_dtypes.bfloat16 else 2.0**-10
    exact = a.astype("float64") @ b.astype("float64")
    np.testing.assert_allclose(result.astype("float64"), exact, tolerance, tolerance)


class Arrays(unittest.TestCase):
    def test_cuda_array_interface(self):
        for dtype in ("float16", ml_dtypes.bfloat16):
            a, b = random(24, 40, dtype=dtype), random(33, 48, dtype=dtype).T[:40]
            for result in (dtype, "float32"):
                out = DeviceArray(np.zeros((24, 33), result))
                self.assertIs(hgemm.matmul(DeviceArray(a), DeviceArray(b), out), out)
                assert_close(out.get(), a, b)

    def test_dlpack(self):
        a, b, out = random(8, 16), random(16, 8), DlpackDevice(np.zeros((8, 8), "float16"))
        hgemm.matmul(DlpackDevice(a), DlpackDevice(b), out)
        assert_close(out.get(), a, b)
        self.assertEqual(set(DlpackDevice.streams), {1})
        stream = new_stream()
        hgemm.matmul(DlpackDevice(a), DlpackDevice(b), out, stream=stream)
        self.assertEqual(DlpackDevice.streams[3:], [stream] * 3)

    def test_bfloat16_that_dlpack_lacks(self):
        class Array(DeviceArray):
            def __dlpack_device__(self):
                return 2, 0

            def __dlpack__(self, **_):
                raise BufferError("dtype is not supported for dlpack export")

        a, b = random(8, 16, dtype=ml_dtypes.bfloat16), random(16, 8, dtype=ml_dtypes.bfloat16)
        out = Array(np.zeros((8, 8), ml_dtypes.bfloat16))
        hgemm.matmul(Array(a), Array(b), out)
        assert_close(out.get(), a, b)
        with self.assertRaisesRegex(ValueError, "^a: dtype is not supported"):
            hgemm.matmul(Array(random(8, 16)), Array(b), out)

    def test_streams(self):
        class TorchStream:
            cuda_stream = new_stream()

        a, b, stream = random(8, 16), random(16, 8), new_stream()
        for given in (stream, TorchStream):
            out = DeviceArray(np.zeros((8, 8), "float16"))
            hgemm.matmul(DeviceArray(a), DeviceArray(b), out, stream=given)
            assert_close(out.get(), a, b)
        out = DeviceArray(np.zeros((8, 8), "float16"), stream)
        hgemm.matmul(DeviceArray(a, stream), DeviceArray(b), out)
        assert_close(out.get(), a, b)
        with hgemm.Handle(0) as handle:
            handle.stream = stream
            hgemm.matmul(DeviceArray(a), DeviceArray(b), out, handle=handle)
            self.assertEqual(handle.stream, stream)
            check(cuda.cuCtxSynchronize())
        with self.assertRaisesRegex(ValueError, "^stream: "):
            hgemm.matmul(DeviceArray(a, stream), DeviceArray(b, new_stream()), out)

    def test_places_are_not_mixed(self):
        a, b, out = random(8, 16), random(16, 8), np.zeros((8, 8), "float16")
        with self.assertRaisesRegex(ValueError, "^a: lies on CUDA device 0, and out on the CPU"):
            hgemm.matmul(DeviceArray(a), b, out)
        with self.assertRaisesRegex(TypeError, "^out: must be given"):
            hgemm.matmul(DeviceArray(a), DeviceArray(b))
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle, self.assertRaisesRegex(ValueError, "^handle: "):
            hgemm.matmul(DeviceArray(a), DeviceArray(b), DeviceArray(out), handle=handle)

    def test_batches_of_any_order(self):
        a, b = random(6, 8, 16), random(6, 16, 8)
        for step in (slice(None, None, -1), slice(None, None, 2), slice(None, None, -2)):
            out = DeviceArray(np.zeros((6, 8, 8), "float16")[step])
            hgemm.matmul(DeviceArray(a[step]), DeviceArray(b[step]), out)
            assert_close(out.get(), a[step], b[step])

    def test_a_new_result_of_cupy(self):
        """By a stand-in: memory on the device and the stream of the product."""
        streams = []

        class Array(DeviceArray):
            pass

        class Context:
            null = None

            def __init__(self, name):
                self.name = name

            def __enter__(self):
                streams.append(self.name)

            def __exit__(self, *_):
                pass

        Context.null = Context("null")
        cuda_module = types.SimpleNamespace(Device=Context, ExternalStream=Context, Stream=Context)
        cupy = types.SimpleNamespace(ndarray=Array, cuda=cuda_module,
                                     empty=lambda shape, dtype: Array(np.zeros(shape, dtype)))
        a, b, stream = random(8, 16), random(16, 8), new_stream()
        with mock.patch.dict(sys.modules, cupy=cupy):
            for given, dtype in ((None, "float16"), (stream, "float32")):
                d = hgemm.matmul(Array(a), Array(b), dtype=dtype, stream=given)
                self.assertEqual((type(d), d.dtype), (Array, dtype))
                assert_close(d.get(), a, b)
        self.assertEqual(streams, [0, "null", 0, stream])


class Graphs(unittest.TestCase):
    """With K = 2049 a product copies operands or adds up slices of K, in a workspace."""

    def test_first_product_of_a_stream(self):
        a, b = random(24, 2049), random(2049, 40)
        for non_blocking in (True, False):
            for mode in (0, 1, 2):  # global, thread-local, relaxed
                stream, out = new_stream(non_blocking), DeviceArray(np.zeros((24, 40), "float16"))
                arrays = DeviceArray(a), DeviceArray(b), out
                graph = Graph(stream, lambda: hgemm.matmul(*arrays, stream=stream), mode)
                graph.launch(stream)
                assert_close(out.get(), a, b)

    def test_workspaces(self):
        """Each graph has its own, as has each stream; that of a stream which is gone is not that of the next one, which
        may have its address."""
        stream, used, graphs = new_stream(), [], []
        operands = [(random(24, 2049), random(2049, 40), DeviceArray(np.zeros((24, 40), "float16"))) for _ in range(4)]
        arrays = [(DeviceArray(a), DeviceArray(b), out) for a, b, out in operands]

        def product(i):
            hgemm.matmul(*arrays[i], stream=stream)
            handle, = _matmul._pool._idle[0, stream]
            used.append(handle.workspace[0])

        graphs = [Graph(stream, lambda: product(0)), Graph(stream, lambda: product(1))]
        product(2)
        check(cuda.cuStreamDestroy_v2(c_void_p(stream)))
        stream = new_stream()
        product(3)
        self.assertEqual(len(set(used)), 4, used)
        self.assertNotIn(0, used)
        for graph in graphs:
            graph.launch(stream)
        for a, b, out in operands:
            assert_close(out.get(), a, b)


class Modes(unittest.TestCase):
    def test_batch_invariant_rows(self):
        a, b = random(9, 256), DeviceArray(random(256, 16))
        with hgemm.Handle(0, mode=hgemm.Mode.BATCH_INVARIANT) as handle:
            rows = []
            for m in (1, 9):
                out = DeviceArray(np.zeros((m, 16), "float16"))
                hgemm.matmul(DeviceArray(a[:m].copy()), b, out, handle=handle)
                rows.append(out.get()[0].tobytes())
            self.assertEqual(handle.mode, hgemm.Mode.BATCH_INVARIANT)
        self.assertEqual(*rows)

    def test_a_captured_product(self):
        a, b, out = random(8, 16), random(16, 8), DeviceArray(np.zeros((8, 8), "float16"))
        device_a, device_b, stream = DeviceArray(a), DeviceArray(b), c_void_p(new_stream())
        graph, executable = c_void_p(), c_void_p()
        with hgemm.Handle(0) as handle:
            check(cuda.cuStreamBeginCapture_v2(stream, c_int(0)))
            hgemm.matmul(device_a, device_b, out, handle=handle, stream=stream.value)
            check(cuda.cuStreamEndCapture(stream, byref(graph)))
            self.assertFalse(out.get().any())
            check(cuda.cuGraphInstantiateWithFlags(byref(executable), graph, c_uint64(0)))
            check(cuda.cuGraphLaunch(executable, stream))
            assert_close(out.get(), a, b)


if __name__ == "__main__":
    unittest.main()
