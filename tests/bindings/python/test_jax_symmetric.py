"""hgemm.jax.syrk, syrkx and newton_schulz on JAX's default device: the CPU, or a GPU where JAX has one. And the example
that trains by them."""

import contextlib
import importlib.util
import io
import re
import sys
import unittest
from unittest import mock

# First: it sets what JAX reads, or skips.
from test_jax import DTYPES, ON_GPU, SOURCE, UNIT, bits, double, random, rng, turned

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

import hgemm
import hgemm.jax as hj

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def mirrored(d):
    """Its upper half, and that as the lower one."""
    return np.triu(d) + np.swapaxes(np.triu(d, 1), -1, -2)


def assert_symmetric(result, a, b, alpha=1.0, beta=0.0, c=0.0):
    """Bit for bit, and by the bound of fp32 sums that are rounded once: alpha and beta add two roundings."""
    a, b, added = double(a), np.swapaxes(double(b), -1, -2), beta * double(c)
    exact = mirrored(alpha * (a @ b) + added)
    scale = mirrored(abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(added))
    assert result.shape == exact.shape, (result.shape, exact.shape)
    np.testing.assert_array_equal(bits(result), np.swapaxes(bits(result), -1, -2))
    bound = UNIT[result.dtype.name] * np.abs(exact) + (a.shape[-1] + 3) * 2.0**-24 * scale + 2.0**-25
    assert (np.abs(double(result) - exact) <= bound).all(), np.abs(double(result) - exact).max()


def plain(a, b=None, c=None, alpha=1.0, beta=0.0):
    """By JAX itself, in fp32."""
    a, b = a.astype("float32"), (a if b is None else b).astype("float32")
    d = alpha * jnp.matmul(a, turned(b), precision="float32")
    return d if c is None else d + beta * c.astype("float32")


class Products(unittest.TestCase):
    def test_types_and_sizes(self):
        for dtype, other in (DTYPES, DTYPES[::-1]):
            for n, k in ((1, 1), (5, 33), (600, 24), (0, 4), (4, 0)):
                a, b, c = random(n, k, dtype=dtype), random(n, k, dtype=dtype), random(n, n, dtype=dtype)
                results = (hj.syrk(a), hj.syrk(a, alpha=-0.5, beta=2, c=c, out_dtype=jnp.float32),
                           hj.syrkx(a, b, alpha=2, beta=-1, c=c.astype("float32"), out_dtype=other))
                self.assertEqual([d.dtype.name for d in results], [dtype, "float32", other])
                assert_symmetric(results[0], a, a)
                assert_symmetric(results[1], a, a, -0.5, 2, c)
                assert_symmetric(results[2], a, b, 2, -1, c)

    def test_leading_dimensions(self):
        for leading in ((3,), (0,), (2, 1, 3)):
            a, b, c = random(*leading, 20, 8), random(*leading, 20, 8), random(*leading, 20, 20)
            assert_symmetric(hj.syrk(a), a, a)
            assert_symmetric(hj.syrk(a, c=c), a, a, 1, 1, c)
            assert_symmetric(hj.syrkx(a, b, alpha=0.5, beta=0.25, c=c), a, b, 0.5, 0.25, c)

    def test_products_of_matrices_that_commute(self):
        x = double(random(40, 40)) / 8
        s = x @ x.T
        cube = hj.syrkx(jnp.asarray(s, "float16"), jnp.asarray(s @ s, "float16"))
        np.testing.assert_allclose(double(cube), s @ s @ s, rtol=0.01, atol=0.02)

    def test_c_that_is_not_read(self):
        a = random(8, 16)
        assert_symmetric(hj.syrk(a, beta=0, c=jnp.full((8, 8), jnp.nan, "float16")), a, a)
        c = jnp.where(np.tri(8, k=-1, dtype=bool), jnp.inf, random(8, 8))
        assert_symmetric(hj.syrk(a, c=c), a, a, 1, 1, np.triu(c))
        for beta in (0, 2):
            gradient = jax.grad(lambda c: hj.syrk(a, beta=beta, c=c).astype("float32").sum())(random(8, 8))
            np.testing.assert_array_equal(double(gradient), np.full((8, 8), beta))


if not ON_GPU:
    class TheHost(unittest.TestCase):
        """What holds of it alone; its arrays are numpy's as well."""

        def test_the_bits_are_those_of_the_library(self):
            for n, k in ((33, 65), (600, 24)):
                a, b, c = np.asarray(random(n, k)), np.asarray(random(n, k)), np.asarray(random(n, n))
                np.testing.assert_array_equal(bits(hj.syrk(a)), bits(hgemm.syrk(a)))
                np.testing.assert_array_equal(bits(hj.syrkx(a, b, alpha=0.1, beta=0.3, c=c)),
                                              bits(hgemm.syrkx(a, b, alpha=0.1, beta=0.3, c=c)))
                whole = hj.matmul(a, b, transpose_b=True, batch_invariant=True)
                half = hj.syrkx(a, b, batch_invariant=True)
                np.testing.assert_array_equal(bits(half)[np.triu_indices(n)], bits(whole)[np.triu_indices(n)])


class Transformations(unittest.TestCase):
    def test_vmap(self):
        a, b, c = random(3, 10, 8), random(3, 10, 8), random(3, 10, 10)
        assert_symmetric(jax.vmap(hj.syrk)(a), a, a)
        assert_symmetric(jax.vmap(hj.syrk, 1)(jnp.moveaxis(a, 0, 1)), a, a)
        assert_symmetric(jax.jit(jax.vmap(lambda a, c: hj.syrk(a, beta=0.5, c=c), (0, None)))(a, c[0]), a, a, 1, 0.5,
                         c[0])
        for axes in ((0, 0, 0), (0, None, None), (None, 0, None), (None, None, 0), (0, None, 0), (0, 0, None)):
            chosen = [x if axis == 0 else x[0] for x, axis in zip((a, b, c), axes)]
            result = jax.vmap(lambda a, b, c: hj.syrkx(a, b, beta=2, c=c), axes)(*chosen)
            assert_symmetric(result, *chosen[:2], 1, 2, np.broadcast_to(chosen[2], c.shape))

    def compare(self, ours, theirs, *arguments):
        """Gradients of ours with those of theirs in fp32, of a sum with random weights."""
        value = jax.eval_shape(ours, *arguments)
        weights = jnp.asarray(rng.standard_normal(value.shape), "float32")
        every = tuple(range(len(arguments)))
        our = jax.jit(jax.grad(lambda *x: (ours(*x).astype("float32") * weights).sum(), every))(*arguments)
        their = jax.jit(jax.grad(lambda *x: (theirs(*x) * weights).sum(), every))(
            *(x.astype("float32") for x in arguments))
        for x, y, z in zip(our, their, arguments):
            self.assertEqual((x.dtype, x.shape), (z.dtype, z.shape))
            np.testing.assert_allclose(double(x), double(y), rtol=0.03, atol=0.03 * np.abs(double(y)).max(initial=0))

    def test_gradients(self):
        for dtype, leading, out_dtype in (("float16", (), None), ("bfloat16", (3,), "float32")):
            a, b, c = (random(*leading, *shape, dtype=dtype) for shape in ((6, 9), (6, 9), (6, 6)))
            self.compare(lambda a: hj.syrk(a, alpha=0.3, out_dtype=out_dtype), lambda a: plain(a, alpha=0.3), a)
            self.compare(lambda a, c: hj.syrk(a, alpha=-2, beta=0.3, c=c, out_dtype=out_dtype),
                         lambda a, c: plain(a, None, c, -2, 0.3), a, c)
            self.compare(lambda a, b, c: hj.syrkx(a, b, alpha=0.5, beta=3, c=c, out_dtype=out_dtype),
                         lambda a, b, c: plain(a, b, c, 0.5, 3), a, b, c)
        self.compare(jax.vmap(lambda a, c: hj.syrk(a, c=c), (0, None)), lambda a, c: plain(a, None, c, 1, 1),
                     random(3, 6, 9), random(6, 6))

    def test_gradients_of_gradients(self):
        def squared(function):
            return jax.grad(lambda a: jnp.square(function(a).astype("float32")).mean())

        self.compare(squared(lambda a: hj.syrk(a, alpha=0.5)), squared(lambda a: plain(a, alpha=0.5)), random(6, 9))

    def test_gradients_under_shard_map(self):
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("parts",))
        parts, shared = jax.sharding.PartitionSpec("parts"), jax.sharding.PartitionSpec()
        self.compare(jax.shard_map(lambda a, c: hj.syrk(a, c=c[None]), mesh=mesh, in_specs=(parts, shared),
                                   out_specs=parts), lambda a, c: plain(a, None, c, 1, 1),
                     random(len(mesh.devices), 6, 9), random(6, 6))

    def test_a_gradient_is_one_product_without_a_copy(self):
        def text(function, *operands):
            return jax.jit(function).lower(*operands).compile().as_text()

        a, gradient = random(6, 9), random(6, 6)
        backward = text(lambda a, g: jax.vjp(hj.syrk, a)[1](g)[0], a, gradient)
        self.assertEqual(len(re.findall(r'custom_call_target="hgemm_matmul"', backward)), 1)
        # Both factors are one array, of which the library knows that the product is symmetric.
        self.assertRegex(text(lambda a: hj.syrk(a), a), r"custom-call\((%\S+), \1\)")
        self.assertNotRegex(text(lambda a: hj.syrk(a), a), r"= \S+ (transpose|copy)\(")

    def test_exported_functions(self):
        """For both platforms, with a number of columns that is not known yet."""
        a, (columns,) = random(6, 8), jax.export.symbolic_shape("columns")
        exported = jax.export.export(jax.jit(hj.syrk), platforms=["cpu", "cuda"], disabled_checks=hj.EXPORT_CHECKS)(
            jax.ShapeDtypeStruct((6, columns), a.dtype))
        np.testing.assert_array_equal(bits(exported.call(a)), bits(hj.syrk(a)))


class NewtonSchulz(unittest.TestCase):
    def exact(self, x, steps=5, coefficients=COEFFICIENTS):
        """In float64."""
        y, (a, b, c) = double(x), coefficients
        y = y / np.linalg.norm(y, axis=(-2, -1), keepdims=True)
        for _ in range(steps):
            gram = y @ np.swapaxes(y, -1, -2)
            y = a * y + (b * gram + c * gram @ gram) @ y
        return y

    def test_orthogonal_matrices(self):
        for shape, dtype in (((48, 200), "float32"), ((200, 48), "float16"), ((300, 520), "bfloat16"),
                             ((256, 512), "float16"), ((2, 2, 60, 24), "float32"), ((0, 8, 8), "float32")):
            ours = hj.newton_schulz(random(*shape, dtype=dtype))
            self.assertEqual((ours.dtype, ours.shape), (jnp.bfloat16, shape))
            values = np.linalg.svd(double(ours), compute_uv=False)
            self.assertTrue((values > 0.6).all() and (values < 1.3).all(), values)

    def test_as_exact_steps(self):
        for shape, steps in (((24, 60), 5), ((60, 24), 2), ((3, 24, 60), 1), ((3, 60, 24), 0)):
            x = random(*shape, dtype="float32") * 1e-3
            error = double(hj.newton_schulz(x, steps)) - self.exact(x, steps)
            bound = 0.03 * np.linalg.norm(self.exact(x, steps), axis=(-2, -1))
            self.assertTrue((np.linalg.norm(error, axis=(-2, -1)) < bound).all())

    def test_coefficients_of_zero(self):
        x = random(6, 9, dtype="float32")
        for coefficients in ((0, 1.5, 0), (0, 0, 2), (2, 0, 1), (1, 0, 0), (1, 2, 0)):
            exact = self.exact(x, 1, coefficients)
            np.testing.assert_allclose(double(hj.newton_schulz(x, 1, coefficients)), exact, rtol=0.03,
                                       atol=0.03 * np.abs(exact).max())

    def test_zeros(self):
        result, pull = jax.vjp(lambda x: hj.newton_schulz(x, 1), jnp.zeros((4, 8)))
        self.assertFalse(result.any() or hj.newton_schulz(jnp.zeros((4, 8), "float16")).any())
        self.assertTrue(np.isfinite(pull(result)[0]).all())

    def test_gradients_and_jit(self):
        x, weights = random(6, 10, dtype="float32"), random(6, 10, dtype="float32")

        def theirs(x):
            y = x / jnp.linalg.norm(x)
            for _ in range(2):
                gram = y @ y.T
                y = COEFFICIENTS[0] * y + (COEFFICIENTS[1] * gram + COEFFICIENTS[2] * gram @ gram) @ y
            return y

        def gradient(function):
            return double(jax.jit(lambda x: jax.vjp(function, x)[1](weights.astype(jax.eval_shape(function, x).dtype)))(
                x)[0])

        with jax.default_matmul_precision("float32"):
            got, want = gradient(lambda x: hj.newton_schulz(x, 2)), gradient(theirs)
        self.assertLess(np.linalg.norm(got - want) / np.linalg.norm(want), 0.05)
        both = jnp.stack([x, weights])
        np.testing.assert_array_equal(bits(jax.vmap(lambda x: hj.newton_schulz(x, 1))(both)),
                                      bits(hj.newton_schulz(both, 1)))


class WrongArguments(unittest.TestCase):
    def test_each_is_named(self):
        a, c = random(4, 8), random(4, 4)
        for call, kind, text in (
                (lambda: hj.syrk(a.astype("float32")), TypeError, "a: its elements are float32"),
                (lambda: hj.syrk(a[0]), ValueError, "a: 1 dimensions"),
                (lambda: hj.syrk(a, beta=1), ValueError, "c: must be given where beta is not 0"),
                (lambda: hj.syrk(a, c=a), ValueError, r"c: its shape is \(4, 8\), must be \(4, 4\)"),
                (lambda: hj.syrk(a[None], c=c), ValueError, r"c: its shape is \(4, 4\), must be \(1, 4, 4\)"),
                (lambda: hj.syrk(a, c=c.astype("int32")), TypeError, "c: its elements are int32"),
                (lambda: hj.syrk(a, out_dtype="float64"), TypeError, "out_dtype: is float64"),
                (lambda: hj.syrk(a, alpha=1e39), ValueError, "alpha: is 1e[+]39, which is infinite in float32"),
                (lambda: hj.syrk(a, alpha="x"), TypeError, "alpha: must be a number"),
                (lambda: jax.jit(lambda s: hj.syrk(a, beta=s, c=c))(1.0), TypeError, "beta: must be a number that is"),
                (lambda: hj.syrkx(a, a.astype("bfloat16")), TypeError, "b: its elements are bfloat16"),
                (lambda: hj.syrkx(a, a[:3]), ValueError, r"b: its shape is \(3, 8\), must be \(4, 8\)"),
                (lambda: hj.syrkx(a, a[None]), ValueError, r"b: its shape is \(1, 4, 8\), must be \(4, 8\)"),
                (lambda: hj.newton_schulz(a[0]), ValueError, "x: 1 dimensions, must be 2 or more"),
                (lambda: hj.newton_schulz(a.astype("int32")), TypeError, "x: its elements are int32"),
                (lambda: hj.newton_schulz(a, 5, (1, 2)), ValueError, "coefficients: 2 of them, must be 3")):
            with self.subTest(text), self.assertRaisesRegex(kind, f"^{text}"):
                call()


@unittest.skipUnless(importlib.util.find_spec("optax"), "optax is not installed")
class Example(unittest.TestCase):
    def test_a_network_learns_both_ways(self):
        from optax.contrib import _muon
        with mock.patch.object(sys, "path", [str(SOURCE / "bindings/python/examples"), *sys.path]):
            import optax_muon
        printed = io.StringIO()
        with mock.patch.object(_muon, "orthogonalize_via_newton_schulz", _muon.orthogonalize_via_newton_schulz), \
                mock.patch.object(hj, "newton_schulz", wraps=hj.newton_schulz) as products, \
                contextlib.redirect_stdout(printed):
            optax_muon.main(["--steps", "12", "--width", "64"])
        self.assertEqual(products.call_count, 3)  # once for each matrix, when the step is traced
        rows = [[float(x) for x in line.split()] for line in printed.getvalue().splitlines()[1:]]
        self.assertEqual([row[0] for row in rows], [*range(12)])
        self.assertEqual(rows[0][1], rows[0][2])
        for _, optaxs, ours in rows:
            self.assertLess(abs(optaxs - ours), 0.02 * optaxs)
        self.assertLess(rows[-1][2], 0.9 * rows[0][2])


if __name__ == "__main__":
    unittest.main()
