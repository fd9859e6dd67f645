"""hgemm.jax on JAX's default device: the CPU, or a GPU where JAX has one."""

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
import threading
import unittest
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
try:
    import jax
except ModuleNotFoundError:
    print("hgemm.jax: Skipped\nJAX is not installed")
    sys.exit(77)

import jax.export
import jax.numpy as jnp
import numpy as np

import hgemm
import hgemm.jax as hj
from hgemm.jax import _product

SOURCE = Path(os.environ.get("HGEMM_SOURCE", Path(__file__).parents[3]))
ON_GPU = jax.default_backend() != "cpu"
DTYPES = ("float16", "bfloat16")
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23}
ACTIVATIONS = {None: lambda x: x, "relu": jax.nn.relu, "silu": jax.nn.silu,
               "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False),
               "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True)}
rng = np.random.default_rng(1)


def random(*shape, dtype="float16"):
    return jnp.asarray(rng.standard_normal(shape), dtype)


def double(array):
    return np.asarray(array).astype("float64")


def bits(array):
    array = np.asarray(array)
    return array.view("uint16" if array.dtype.itemsize == 2 else "uint32")


def assert_product(result, a, b, added=0.0):
    """fp32 sums of k products may differ from exact ones by |A| |B| k 2^-24, and are rounded once."""
    a, b, added = double(a), double(b), double(added)
    exact, scale = a @ b + added, np.abs(a) @ np.abs(b) + np.abs(added)
    assert result.shape == exact.shape, (result.shape, exact.shape)
    bound = UNIT[result.dtype.name] * np.abs(exact) + (a.shape[-1] + 1) * 2.0**-24 * scale + 2.0**-25
    assert (np.abs(double(result) - exact) <= bound).all(), np.abs(double(result) - exact).max()


def turned(x):
    return jnp.swapaxes(x, -1, -2)


class Products(unittest.TestCase):
    def test_sizes_and_types(self):
        for dtype in DTYPES:
            for m, n, k in ((1, 1, 1), (33, 17, 65), (64, 128, 256), (7, 1, 513), (1, 300, 31)):
                a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
                for out_dtype in (None, *DTYPES, jnp.float32):
                    result = hj.matmul(a, b, out_dtype=out_dtype)
                    self.assertEqual(result.dtype, jnp.dtype(out_dtype or dtype))
                    assert_product(result, a, b)

    def test_leading_dimensions(self):
        for first, second in (((3,), (3,)), ((3,), ()), ((), (3,)), ((3,), (1,)), ((2, 1), (3,)), ((2, 3), (2, 3)),
                              ((2, 3), (1, 3)), ((4, 1, 2), (1, 3, 2)), ((2, 1, 3, 1), (1, 2, 1, 3)), ((0,), (1,))):
            for transpose_a in (False, True):
                for transpose_b in (False, True):
                    a, b = random(*first, 5, 9), random(*second, 9, 6)
                    left, right = turned(a) if transpose_a else a, turned(b) if transpose_b else b
                    result = hj.matmul(left, right, transpose_a=transpose_a, transpose_b=transpose_b)
                    assert_product(result, a, b)

    def test_sizes_of_zero(self):
        for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)):
            for first, second in (((), ()), ((2,), ()), ((2,), (2,))):
                result = hj.matmul(random(*first, m, k), random(*second, k, n))
                np.testing.assert_array_equal(np.asarray(result), np.zeros((*first, m, n), "float16"))
        bias = random(4)
        np.testing.assert_array_equal(hj.linear(random(3, 0), random(4, 0), bias), np.tile(bias, (3, 1)))

    def test_linear(self):
        weight = random(32, 16)
        for shape in ((16,), (5, 16), (2, 3, 16), (0, 16)):
            x = random(*shape)
            assert_product(hj.linear(x, weight), x, turned(weight))
            for bias in (random(32), random(32, dtype="float32")):
                assert_product(hj.linear(x, weight, bias), x, turned(weight), bias)
                for activation, function in ACTIVATIONS.items():
                    exact = function(jnp.asarray(double(x) @ double(weight).T + double(bias), "float32"))
                    np.testing.assert_allclose(double(hj.linear(x, weight, bias, activation)), double(exact),
                                               rtol=2.0**-10, atol=2.0**-12)

    def test_threads(self):
        a, b = random(65, 129), random(129, 33)
        want, wrong = bits(hj.matmul(a, b)), []

        def work():
            for _ in range(50):
                if not np.array_equal(bits(hj.matmul(a, b)), want):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if ON_GPU:
    class Gpus(unittest.TestCase):
        """tests/bindings/xla does the same with the handler itself, on the virtual GPU too."""

        def test_the_bits_of_a_row(self):
            for dtype in DTYPES:
                a, b = random(256, 1024, dtype=dtype), random(1024, 320, dtype=dtype)
                whole = bits(hj.matmul(a, b, batch_invariant=True))
                for rows in (1, 2, 3, 7, 16, 17, 64, 100, 128, 129, 255):
                    part = hj.matmul(a[:rows], b, batch_invariant=True)
                    np.testing.assert_array_equal(bits(part), whole[:rows])
                    mapped = jax.vmap(lambda row: hj.matmul(row[None], b, batch_invariant=True)[0])(a[:rows])
                    np.testing.assert_array_equal(bits(mapped), whole[:rows])
else:
    class TheHost(unittest.TestCase):
        """What holds of it alone; its arrays are numpy's as well."""

        def test_the_bits_of_a_row(self):
            for dtype in DTYPES:
                a, b = random(130, 300, dtype=dtype), random(300, 40, dtype=dtype)
                whole = bits(hj.matmul(a, b, batch_invariant=True))
                for rows in (1, 2, 9, 64, 129):
                    np.testing.assert_array_equal(bits(hj.matmul(a[:rows], b, batch_invariant=True)), whole[:rows])

        def test_the_bits_are_those_of_the_library(self):
            for dtype in DTYPES:
                for shape in ((33, 17, 65), (128, 64, 512), (5, 1, 40)):
                    m, n, k = shape
                    a, b, bias = random(m, k, dtype=dtype), random(n, k, dtype=dtype), random(n, dtype=dtype)
                    for activation in ACTIVATIONS:
                        want = hgemm.matmul(np.asarray(a), np.asarray(b).T, bias=np.asarray(bias),
                                            activation=activation)
                        np.testing.assert_array_equal(bits(hj.linear(a, b, bias, activation)), bits(want))
                    both = hj.matmul(turned(a), b, transpose_a=True, transpose_b=True)
                    want = hgemm.matmul(np.asarray(turned(a)).T, np.asarray(b).T)
                    np.testing.assert_array_equal(bits(both), bits(want))
                    np.testing.assert_array_equal(bits(hj.matmul(a, b, transpose_b=True)),
                                                  bits(hgemm.matmul(np.asarray(a), np.asarray(b).T)))
                    batch = np.asarray(random(3, m, k, dtype=dtype)), np.asarray(random(3, k, n, dtype=dtype))
                    np.testing.assert_array_equal(bits(hj.matmul(*batch)), bits(hgemm.matmul(*batch)))


class Transformations(unittest.TestCase):
    def test_jit_and_loops(self):
        a, b = random(16, 16) / 4, random(16, 16) / 4

        @jax.jit
        def powers(a):
            return jax.lax.scan(lambda x, _: (hj.matmul(x, b), None), a, None, length=3)[0]

        want = a
        for _ in range(3):
            want = hj.matmul(want, b)
        np.testing.assert_array_equal(bits(powers(a)), bits(want))

    def test_vmap(self):
        a, b = random(4, 5, 9), random(4, 9, 6)
        assert_product(jax.vmap(hj.matmul)(a, b), a, b)
        assert_product(jax.vmap(hj.matmul, (0, None))(a, b[0]), a, b[0])
        assert_product(jax.vmap(hj.matmul, (None, 0))(a[0], b), a[0], b)
        assert_product(jax.vmap(hj.matmul, (1, 2))(jnp.moveaxis(a, 0, 1), jnp.moveaxis(b, 0, 2)), a, b)
        assert_product(jax.vmap(hj.matmul, (0, None), out_axes=1)(a, b[0]).swapaxes(0, 1), a, b[0])
        every_pair = jax.jit(jax.vmap(jax.vmap(hj.matmul, (None, 0)), (0, None)))(a, b)
        assert_product(every_pair, a[:, None], b[None])
        assert_product(jax.vmap(hj.matmul)(a[:, None], b[:, None]), a[:, None], b[:, None])
        x, weight, bias = random(5, 9), random(6, 9), random(4, 6)
        biased = jax.vmap(hj.linear, (None, None, 0))(x, weight, bias)
        assert_product(biased, np.broadcast_to(x, (4, 5, 9)), turned(weight), bias[:, None])

    def compare(self, ours, theirs, *arguments):
        """Gradients of ours with those of theirs in fp32, of a sum with random weights."""
        value = jax.eval_shape(ours, *arguments)
        weights = jnp.asarray(rng.standard_normal(value.shape), "float32")
        every = tuple(range(len(arguments)))

        def total(function):
            return lambda *x: (function(*x).astype("float32") * weights).sum()

        our = jax.grad(total(ours), every)(*arguments)
        with jax.default_matmul_precision("float32"):
            their = jax.grad(total(theirs), every)(*(x.astype("float32") for x in arguments))
        for x, y, z in zip(our, their, arguments):
            self.assertEqual((x.dtype, x.shape), (z.dtype, z.shape))
            np.testing.assert_allclose(double(x), double(y), rtol=0.03, atol=0.06)

    def test_gradients(self):
        for dtype in DTYPES:
            for first, second in (((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 1), (3,))):
                a, b = random(*first, 5, 9, dtype=dtype), random(*second, 9, 6, dtype=dtype)
                for out_dtype in (None, "float32"):
                    self.compare(lambda a, b: hj.matmul(a, b, out_dtype=out_dtype), jnp.matmul, a, b)
                self.compare(lambda a, b: hj.matmul(a, b, transpose_a=True, transpose_b=True),
                             lambda a, b: turned(a) @ turned(b), turned(a), turned(b))
                self.compare(lambda a, b: hj.matmul(a, b, transpose_a=True), lambda a, b: turned(a) @ b,
                             turned(a), b)
        self.compare(jax.vmap(hj.matmul, (0, None)), jnp.matmul, random(3, 5, 9), random(9, 6))
        self.compare(jax.jit(hj.matmul), jnp.matmul, random(0, 9), random(9, 6))

    def test_gradients_of_linear(self):
        for activation, function in ACTIVATIONS.items():
            self.compare(lambda *x: hj.linear(*x, activation), lambda x, w, b: function(x @ w.T + b),
                         random(2, 5, 16), random(8, 16), random(8))

    def test_gradients_of_great_sums(self):
        """Whose cubes half precision does not have, where XLA does not compute in a wider type by itself."""
        for sum_, slope in ((160, 1), (-160, 0)):
            operands = (jnp.ones((1, 1), "float16"), jnp.full((1, 1), sum_, "float16"), None)
            with jax.disable_jit():
                gradient, _, _ = _product._backward(
                    _product.Setting("float16", activation="gelu_tanh"), (*operands, operands[1]), [operands[0]])
            self.assertEqual(float(gradient[0, 0]), slope * sum_)

    def test_gradients_of_sums_that_overflow(self):
        """The derivative of an activation where its stored argument is infinite, or its cube."""
        for dtype, great in (("float16", 60000), ("bfloat16", 1e38)):
            for sign in (1, -1):
                for weight in (1, 4):  # the sum is finite; infinite
                    x, w = jnp.full((1, 1), sign * great, dtype), jnp.full((1, 1), weight, dtype)
                    for activation in ACTIVATIONS:
                        slope = weight if sign > 0 or activation is None else 0
                        total = lambda x: hj.linear(x, w, None, activation).astype("float32").sum()  # noqa: E731
                        self.assertEqual(float(jax.grad(total)(x)[0, 0]), slope, (dtype, sign, weight, activation))
                        again = jax.grad(lambda x: jax.grad(total)(x).astype("float32").sum())(x)
                        self.assertEqual(float(again[0, 0]), 0)

    def test_gradients_of_gradients(self):
        def squared(function):
            def run(x, w, b):
                return jax.grad(lambda x: jnp.square(function(x, w, b).astype("float32")).mean())(x)
            return run

        for activation, function in ACTIVATIONS.items():
            self.compare(squared(lambda x, w, b: hj.linear(x, w, b, activation)),
                         squared(lambda x, w, b: function(x @ w.T + b)), random(5, 16), random(8, 16), random(8))

    def test_gradients_by_example(self):
        w, x = random(8, 16), random(4, 3, 16)

        def loss(function):
            return jax.vmap(jax.grad(lambda w, x: function(x, w).astype("float32").sum()), (None, 0))

        ours = loss(hj.linear)(w, x)
        their = loss(lambda x, w: x @ w.T)(w.astype("float32"), x.astype("float32"))
        np.testing.assert_allclose(double(ours), double(their), rtol=0.01, atol=0.01)

    def test_gradients_under_shard_map(self):
        """Those of what is shared are summed over the mesh."""
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("rows",))
        rows, shared = jax.sharding.PartitionSpec("rows"), jax.sharding.PartitionSpec()

        def sharded(function):
            return jax.shard_map(function, mesh=mesh, in_specs=(rows, shared, shared), out_specs=rows)

        self.compare(sharded(lambda x, w, b: hj.linear(x, w, b, "silu")), lambda x, w, b: jax.nn.silu(x @ w.T + b),
                     random(8, 16), random(4, 16), random(4))
        self.compare(sharded(lambda x, w, b: hj.matmul(x, w, transpose_b=True)), lambda x, w, b: x @ w.T,
                     random(8, 16), random(4, 16), random(4))

    def test_gradients_are_two_products_without_a_copy(self):
        def loss(a, b):
            return hj.matmul(a, b, out_dtype="float32").astype("float16")

        text = jax.jit(lambda a, b, g: jax.vjp(loss, a, b)[1](g)).lower(
            random(8, 16), random(16, 4), random(8, 4)).compile().as_text()
        self.assertEqual(len(re.findall(r'custom_call_target="hgemm_matmul"', text)), 2)  # D itself is not used
        self.assertNotRegex(text, r"= \S+ (transpose|copy)\(")


class Platforms(unittest.TestCase):
    def test_the_workspace_is_in_the_memory_that_xla_plans(self):
        """As compiled for either platform, of which one need not be there."""
        a, b = random(8, 16), random(16, 4)
        for platform, bytes in (("cpu", 0), ("cuda", 32 << 20)):
            text = jax.jit(jax.vmap(hj.matmul)).trace(a[None], b[None]).lower(lowering_platforms=(platform,)).as_text()
            found = re.findall(r"custom_call @hgemm_matmul.*-> \(tensor<1x8x4xf16>, tensor<(\d+)xui8>\)", text)
            self.assertEqual(found, [str(bytes)])


class WrongArguments(unittest.TestCase):
    def refused(self, kind, name, function, *args, **options):
        with self.assertRaisesRegex(kind, f"^{name}: "):
            function(*args, **options)

    def test_each_is_named(self):
        a, b = random(8, 16), random(16, 4)
        self.refused(TypeError, "a", hj.matmul, a.astype("float32"), b)
        self.refused(TypeError, "b", hj.matmul, a, b.astype("bfloat16"))
        self.refused(ValueError, "b", hj.matmul, a, b[:15])
        self.refused(ValueError, "b", hj.matmul, a, b, transpose_b=True)
        self.refused(ValueError, "a", hj.matmul, a[0], b)
        self.refused(ValueError, "b", hj.matmul, jnp.stack([a] * 2), jnp.stack([b] * 3))
        self.refused(TypeError, "out_dtype", hj.matmul, a, b, out_dtype="float64")
        self.refused(ValueError, "weight", hj.linear, a, b)
        self.refused(ValueError, "weight", hj.linear, a, b[0])
        self.refused(TypeError, "weight", hj.linear, a, b.T.astype("bfloat16"))
        self.refused(ValueError, "bias", hj.linear, a, b.T, random(5))
        self.refused(ValueError, "bias", hj.linear, a, b.T, jnp.float16(1))
        self.refused(ValueError, "activation", hj.linear, a, b.T, None, "tanh")


class Export(unittest.TestCase):
    def test_exported_functions(self):
        """Also with a number of rows that is not known yet, for both platforms, and with gradients."""
        def layer(x, weight):
            return hj.linear(x, weight, activation="silu")

        def total(function):
            return jax.grad(lambda x, weight: function(x, weight).astype("float32").sum(), (0, 1))

        x, weight = random(4, 8), random(6, 8)
        rows, = jax.export.symbolic_shape("rows")
        shape = jax.ShapeDtypeStruct((rows, 8), x.dtype)
        exported = jax.export.export(jax.jit(layer), platforms=["cpu", "cuda"],
                                     disabled_checks=hj.EXPORT_CHECKS)(shape, weight)
        if importlib.util.find_spec("flatbuffers") is not None:  # without it JAX writes no files
            exported = jax.export.deserialize(exported.serialize(vjp_order=1))
        np.testing.assert_array_equal(exported.call(x, weight), layer(x, weight))
        for got, want in zip(total(exported.call)(x, weight), total(layer)(x, weight)):
            np.testing.assert_array_equal(got, want)
        with self.assertRaisesRegex(ValueError, "hgemm_matmul"):
            jax.export.export(jax.jit(layer))(x, weight)


class Imports(unittest.TestCase):
    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr

    def test_what_is_wanted_is_said(self):
        self.assertIn("hgemm.jax needs JAX, which is not installed",
                      self.run_python("import sys; sys.modules['jax'] = None; import hgemm.jax"))
        self.assertIn("hgemm.jax needs JAX 0.6.2 or newer, and 0.6.1 is installed", self.run_python(
            "import jax; jax.__version__, jax.__version_info__ = '0.6.1', (0, 6, 1); import hgemm.jax"))

    def test_jax_is_imported_where_it_is_asked_for(self):
        self.assertEqual(self.run_python("import sys, hgemm; assert 'jax' not in sys.modules"), "")


class Interface(unittest.TestCase):
    def test_the_handler_for_gpus_asks_xla(self):
        """Which knows a device on the CPU, but no stream."""
        library = ctypes.CDLL(str(Path(hgemm.c.PACKAGE) / "lib/libhgemm_xla.so"))
        jax.ffi.register_ffi_target("for_gpus", jax.ffi.pycapsule(library.hgemm_xla_matmul_cuda), platform="cpu")
        a = jax.device_put(random(4, 4), jax.devices("cpu")[0])
        results = [jax.ShapeDtypeStruct((4, 4), a.dtype), jax.ShapeDtypeStruct((0,), "uint8")]
        attributes = {name: np.int32(0)
                      for name in ("transpose_a", "transpose_b", "symmetric", "batch_invariant", "activation")}
        attributes |= {"alpha": np.float32(1), "beta": np.float32(0)}
        with self.assertRaisesRegex(Exception, "XLA does not say which stream the call is for"):
            jax.block_until_ready(jax.jit(lambda a: jax.ffi.ffi_call("for_gpus", results)(a, a, **attributes))(a))

    def test_our_declarations_are_those_of_jaxlib(self):
        compiler = os.environ.get("CXX", "c++")
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{jax.ffi.include_dir()}", f"-I{SOURCE}",
                               str(SOURCE / "tests/bindings/xla/declarations.cpp")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
