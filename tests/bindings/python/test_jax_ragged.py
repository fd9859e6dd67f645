"""hgemm.jax.ragged_dot on JAX's default device: the CPU, or a GPU where JAX has one."""

import re
import unittest

from test_jax import DTYPES, ON_GPU, UNIT, bits, double, random, rng  # first: it sets what JAX reads, or skips

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

import hgemm
import hgemm.jax as hj

# (M, N, K) and the sizes of groups
CASES = (((1, 1, 1), [1]), ((33, 17, 65), [7, 0, 20, 6]), ((33, 17, 65), [0, 33, 0]), ((40, 24, 96), [1, 9, 0, 13]),
         ((64, 128, 256), [16, 16, 16, 16]), ((7, 1, 513), [3, 4]), ((12, 300, 31), [0, 0, 5]), ((5, 8, 16), [0, 0]),
         ((130, 40, 24), [129]))


def operands(m, n, k, sizes, dtype="float16"):
    return random(m, k, dtype=dtype), random(len(sizes), k, n, dtype=dtype), jnp.asarray(sizes, "int32")


def ranges(sizes):
    ends = np.cumsum(np.asarray(sizes, "int64"))
    return list(zip(ends - np.asarray(sizes), ends))


def by_rows(a, b, sizes):
    a, b = double(a), double(b)
    d = np.zeros((a.shape[0], b.shape[2]))
    for (first, last), matrix in zip(ranges(sizes), b):
        d[first:last] = a[first:last] @ matrix
    return d


def by_k(a, b, sizes):
    a, b = double(a), double(b)
    return np.array([a[first:last].T @ b[first:last] for first, last in ranges(sizes)])


def turned(x):
    return np.swapaxes(x, -1, -2)


def assert_sums(result, function, a, b, sizes, terms):
    """fp32 sums of so many products may differ from exact ones by |A| |B| terms 2^-24, and are rounded once."""
    exact, scale = function(a, b, sizes), function(np.abs(double(a)), np.abs(double(b)), sizes)
    assert result.shape == exact.shape, (result.shape, exact.shape)
    bound = UNIT[result.dtype.name] * np.abs(exact) + (terms + 1) * 2.0**-24 * scale
    bound += np.where(scale > 0, 2.0**-25, 0)  # what belongs to no group is 0
    assert (np.abs(double(result) - exact) <= bound).all(), np.abs(double(result) - exact).max()


def assert_ragged(result, a, b, sizes):
    assert_sums(result, by_rows, a, b, sizes, a.shape[-1])


def in_float32(a, b, sizes, **options):
    with jax.default_matmul_precision("float32"):
        return jax.lax.ragged_dot(a.astype("float32"), b.astype("float32"), sizes, **options)


class Products(unittest.TestCase):
    def test_sizes_and_types(self):
        for dtype in DTYPES:
            for shape, sizes in CASES:
                a, b, counts = operands(*shape, sizes, dtype)
                for wanted in (None, *DTYPES, jnp.float32):
                    result = hj.ragged_dot(a, b, counts, preferred_element_type=wanted)
                    self.assertEqual(result.dtype, jnp.dtype(wanted or dtype))
                    assert_ragged(result, a, b, sizes)

    def test_as_jax_does(self):
        for shape, sizes in CASES:
            a, b, counts = operands(*shape, sizes)
            got = hj.ragged_dot(a, b, counts, preferred_element_type="float32")
            np.testing.assert_allclose(got, in_float32(a, b, counts), rtol=1e-5, atol=1e-5 * shape[2]**0.5)

    def test_types_of_sizes(self):
        a, b, _ = operands(9, 4, 5, [0] * 3)
        for sizes in ([2, 0, 5], (2, 0, 5), *(np.array([2, 0, 5], t) for t in ("int8", "int32", "uint32", "int64"))):
            sizes = sizes if isinstance(sizes, np.ndarray) else jnp.array(sizes)
            assert_ragged(hj.ragged_dot(a, b, sizes), a, b, sizes)
        long = random(260, 5)
        for dtype in ("int8", "uint8"):  # which have no such sum
            assert_ragged(hj.ragged_dot(long, b, np.array([100, 60, 100], dtype)), long, b, [100, 60, 100])
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
            wide = jnp.array([2, 0, 5], "int64")
            self.assertEqual(wide.dtype, "int64")
            assert_ragged(hj.ragged_dot(a, b, wide), a, b, [2, 0, 5])

    def test_sizes_of_zero(self):
        for m, n, k, groups in ((0, 3, 4, 2), (3, 0, 4, 2), (3, 4, 0, 2), (3, 4, 5, 0), (0, 0, 0, 0)):
            a, b, sizes = random(m, k), random(groups, k, n), jnp.full(groups, min(m, 1), "int32")
            result, pull = jax.vjp(lambda a, b: hj.ragged_dot(a, b, sizes), a, b)
            if k == 0 or groups == 0:
                np.testing.assert_array_equal(bits(result), np.zeros((m, n), "uint16"))
            self.assertEqual(result.shape, (m, n))
            grad_a, grad_b = pull(random(m, n))
            self.assertEqual((grad_a.shape, grad_b.shape), (a.shape, b.shape))
            if n == 0 or groups == 0:
                np.testing.assert_array_equal(bits(grad_a), np.zeros(a.shape, "uint16"))
            if m == 0:
                np.testing.assert_array_equal(bits(grad_b), np.zeros(b.shape, "uint16"))

    def test_rows_of_no_group(self):
        """They are zero, and their values count nowhere: neither those that are not finite."""
        a, b, sizes = operands(20, 8, 16, [4, 0, 7])
        a, weights = a.at[11:].set(jnp.nan), random(20, 8).at[11:].set(jnp.nan)
        result, pull = jax.vjp(lambda a, b: hj.ragged_dot(a, b, sizes), a, b)
        grad_a, grad_b = pull(weights)
        np.testing.assert_array_equal(bits(result[11:]), 0)
        np.testing.assert_array_equal(bits(grad_a[11:]), 0)
        assert_ragged(result[:11], a[:11], b, sizes)
        assert_sums(grad_b, by_k, a[:11], weights[:11], sizes, 11)

    def test_the_bits_of_a_row(self):
        """Depend neither on where the row lies nor on the sizes of groups."""
        for dtype in DTYPES:
            a, b = random(96, 200, dtype=dtype), random(1, 200, 72, dtype=dtype)
            run = jax.jit(lambda a, b, sizes: hj.ragged_dot(a, b, sizes, batch_invariant=True))
            whole = bits(run(a, b, jnp.array([96])))
            two = jnp.concatenate([random(1, 200, 72, dtype=dtype), b])
            for rows in (1, 2, 9, 33, 64, 95):
                np.testing.assert_array_equal(bits(run(a[:rows], b, jnp.array([rows]))), whole[:rows])
                np.testing.assert_array_equal(bits(run(a, two, jnp.array([rows, 96 - rows])))[rows:], whole[rows:])
                np.testing.assert_array_equal(bits(run(a, b, jnp.array([rows])))[:rows], whole[:rows])


if ON_GPU:
    class Gpus(unittest.TestCase):
        def test_sizes_that_do_not_fit_are_cut_off(self):
            a, b, sizes = operands(9, 4, 5, [2, 4, 8])
            assert_ragged(hj.ragged_dot(a, b, sizes), a, b, [2, 4, 3])
else:
    class TheHost(unittest.TestCase):
        def test_sizes_that_do_not_fit_are_refused(self):
            a, b, _ = operands(9, 4, 5, [0] * 3)
            for sizes, text in (([2, 0, 8], "has 2 and 10 for group 2"), ([3, -1, 2], "has 3 and 2 for group 1")):
                with self.assertRaisesRegex(Exception, f"hgemm_grouped_ex: .*ends_i32.* {text}, must not decrease"):
                    jax.block_until_ready(hj.ragged_dot(a, b, jnp.array(sizes)))

        def test_the_bits_are_those_of_the_library(self):
            a, b, sizes = operands(33, 17, 65, [7, 0, 20, 6])
            result = hj.ragged_dot(a, b, sizes)
            for (first, last), matrix in zip(ranges(sizes), b):
                np.testing.assert_array_equal(bits(result[first:last]),
                                              bits(hgemm.matmul(np.asarray(a[first:last]), np.asarray(matrix))))


class Transformations(unittest.TestCase):
    def test_one_compiled_function_for_any_sizes(self):
        a, b, _ = operands(20, 8, 16, [0] * 3)
        run = jax.jit(hj.ragged_dot)
        for sizes in ([20, 0, 0], [0, 0, 20], [5, 6, 7], [0, 0, 0]):
            assert_ragged(run(a, b, jnp.array(sizes, "int32")), a, b, sizes)
        square, sizes = random(3, 16, 16) / 4, jnp.array([4, 3, 9])
        got = jax.jit(lambda a: jax.lax.scan(lambda x, s: (hj.ragged_dot(x, square, s), None), a,
                                             jnp.stack([sizes] * 3))[0])(random(16, 16))
        self.assertEqual(got.shape, (16, 16))

    def test_vmap(self):
        a, b = random(4, 10, 9), random(4, 3, 9, 6)
        sizes = jnp.array([[10, 0, 0], [3, 0, 5], [0, 0, 0], [2, 3, 4]])
        for axes in np.ndindex(2, 2, 2):
            if not any(axes):
                continue
            chosen = [x if batched else x[1] for x, batched in zip((a, b, sizes), axes)]
            got = jax.vmap(hj.ragged_dot, tuple(0 if batched else None for batched in axes))(*chosen)
            grad_of = jax.vmap(lambda w, *x: jax.vjp(lambda a, b: hj.ragged_dot(a, b, x[2]), *x[:2])[1](w),
                               (0, *(0 if batched else None for batched in axes)))
            weights = random(4, 10, 6)
            grad_a, grad_b = grad_of(weights, *chosen)
            for i in range(4):
                one = [x[i] if batched else x for x, batched in zip(chosen, axes)]
                assert_ragged(got[i], *one)
                assert_ragged(grad_a[i], weights[i], turned(one[1]), one[2])
                assert_sums(grad_b[i], by_k, one[0], weights[i], one[2], 10)
        got = jax.vmap(hj.ragged_dot, (1, 3, 1), out_axes=1)(jnp.moveaxis(a, 0, 1), jnp.moveaxis(b, 0, 3), sizes.T)
        np.testing.assert_array_equal(bits(got.swapaxes(0, 1)), bits(jax.vmap(hj.ragged_dot)(a, b, sizes)))
        pairs = jax.jit(jax.vmap(jax.vmap(hj.ragged_dot, (None, 0, None)), (0, None, 0)))(a, b, sizes)
        for i, j in np.ndindex(4, 4):
            assert_ragged(pairs[i, j], a[i], b[j], sizes[i])
        self.assertEqual(jax.vmap(hj.ragged_dot)(a[:0], b[:0], sizes[:0]).shape, (0, 10, 6))

    def test_gradients(self):
        """Against exact sums: the gradient that comes in is one of half precision."""
        for dtype in DTYPES:
            for (m, n, k), sizes in CASES:
                a, b, counts = operands(m, n, k, sizes, dtype)
                weights = random(m, n, dtype=dtype)
                for wanted in (None, "float32"):
                    _, pull = jax.vjp(lambda a, b: hj.ragged_dot(a, b, counts, preferred_element_type=wanted), a, b)
                    grad_a, grad_b = pull(weights.astype(wanted or dtype))
                    self.assertEqual((grad_a.dtype, grad_b.dtype), (a.dtype, b.dtype))
                    assert_ragged(grad_a, weights, turned(b), sizes)
                    assert_sums(grad_b, by_k, a, weights, sizes, m)

    def compare(self, ours, theirs, *arguments):
        """Gradients of ours with those of theirs in fp32, of a sum with random weights."""
        weights = jnp.asarray(rng.standard_normal(jax.eval_shape(ours, *arguments).shape), "float32")
        every = tuple(range(len(arguments)))
        our = jax.grad(lambda *x: (ours(*x).astype("float32") * weights).sum(), every)(*arguments)
        their = jax.grad(lambda *x: (theirs(*x) * weights).sum(), every)(*(x.astype("float32") for x in arguments))
        for x, y, z in zip(our, their, arguments):
            self.assertEqual((x.dtype, x.shape), (z.dtype, z.shape))
            np.testing.assert_allclose(double(x), double(y), rtol=0.03, atol=0.06)

    def test_gradients_as_those_of_jax(self):
        for dtype in DTYPES:
            for shape, sizes in CASES[:4]:
                a, b, counts = operands(*shape, sizes, dtype)
                self.compare(lambda a, b: hj.ragged_dot(a, b, counts), lambda a, b: in_float32(a, b, counts), a, b)

    def test_gradients_of_gradients(self):
        a, b, sizes = operands(20, 6, 9, [4, 0, 9])
        groups = jnp.zeros((20, 3)).at[:4, 0].set(1).at[4:13, 2].set(1)

        def dense(a, b, _):  # JAX has no such gradients of its ragged_dot
            return jnp.einsum("mk,gkn,mg->mn", a, b, groups, precision="float32")

        def squared(function, argument):
            return jax.grad(lambda a, b: jnp.square(function(a, b, sizes).astype("float32")).mean(), argument)

        for argument in (0, 1):
            self.compare(squared(hj.ragged_dot, argument), squared(dense, argument), a, b)

    def test_gradients_under_shard_map(self):
        """Each device has rows and sizes of its own; the gradient of what is shared is summed over the mesh."""
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("rows",))
        rows, shared = jax.sharding.PartitionSpec("rows"), jax.sharding.PartitionSpec()
        a, b, _ = operands(16, 6, 9, [0] * 3)
        sizes = jnp.array([[3, 0, 4], [1, 5, 2]])
        devices = len(mesh.devices)
        parts = sizes[:devices] if devices == 2 else jnp.array([[7, 0, 6]])

        def ours(a, b):
            return jax.shard_map(lambda a, b, s: hj.ragged_dot(a, b, s[0]), mesh=mesh, in_specs=(rows, shared, rows),
                                 out_specs=rows)(a, b, parts)

        def theirs(a, b):
            each = 16 // devices
            return jnp.concatenate([in_float32(a[i * each:(i + 1) * each], b, parts[i]) for i in range(devices)])

        np.testing.assert_allclose(double(ours(a, b)), double(theirs(a, b)), rtol=0.01, atol=0.01)
        self.compare(ours, theirs, a, b)

        def experts(a, b, s):  # each device has all rows, and experts of its own
            return jax.shard_map(lambda a, b, s: hj.ragged_dot(a, b, s[0])[None], mesh=mesh,
                                 in_specs=(shared, rows, rows), out_specs=rows)(a, b, s).astype("float32").sum(0)

        many = jnp.concatenate([b] * devices)
        self.compare(lambda a, b: experts(a, b, parts), lambda a, b: sum(
            in_float32(a, b[3 * i:3 * i + 3], parts[i]) for i in range(devices)), a, many)

    def test_gradients_are_two_products_without_a_copy(self):
        sizes = jnp.array([3, 5])
        text = jax.jit(lambda a, b, g: jax.vjp(lambda a, b: hj.ragged_dot(a, b, sizes), a, b)[1](g)).lower(
            random(8, 16), random(2, 16, 4), random(8, 4)).compile().as_text()
        self.assertEqual(len(re.findall(r'custom_call_target="hgemm_grouped"', text)), 2)  # D itself is not used
        self.assertNotRegex(text, r"= f16\S+ (transpose|copy)\(")


class Platforms(unittest.TestCase):
    def test_the_workspace_is_in_the_memory_that_xla_plans(self):
        """As compiled for either platform, of which one need not be there."""
        a, b, sizes = operands(8, 4, 16, [3, 5])
        for platform, bytes in (("cpu", 0), ("cuda", 32 << 20)):
            text = jax.jit(hj.ragged_dot).trace(a, b, sizes).lower(lowering_platforms=(platform,)).as_text()
            found = re.findall(r"custom_call @hgemm_grouped.*-> \(tensor<8x4xf16>, tensor<(\d+)xui8>\)", text)
            self.assertEqual(found, [str(bytes)])

    def test_exported_functions(self):
        a, b, sizes = operands(8, 4, 16, [3, 4])
        rows, = jax.export.symbolic_shape("rows")
        exported = jax.export.export(jax.jit(hj.ragged_dot), platforms=["cpu", "cuda"],
                                     disabled_checks=hj.EXPORT_CHECKS)(
            jax.ShapeDtypeStruct((rows, 16), a.dtype), b, sizes)
        np.testing.assert_array_equal(bits(exported.call(a, b, sizes)), bits(hj.ragged_dot(a, b, sizes)))


class WrongArguments(unittest.TestCase):
    def refused(self, kind, name, *args, **options):
        with self.assertRaisesRegex(kind, f"^{name}: "):
            hj.ragged_dot(*args, **options)

    def test_each_is_named(self):
        a, b, sizes = operands(8, 4, 16, [3, 5])
        self.refused(TypeError, "lhs", a.astype("float32"), b, sizes)
        self.refused(TypeError, "rhs", a, b.astype("float32"), sizes)
        self.refused(TypeError, "rhs", a, b.astype("bfloat16"), sizes)
        self.refused(TypeError, "group_sizes", a, b, sizes.astype("float32"))
        self.refused(TypeError, "group_sizes", a, b, jnp.array([True, False]))
        self.refused(ValueError, "lhs", a[0], b, sizes)
        self.refused(ValueError, "lhs", a[None], b, sizes)
        self.refused(ValueError, "rhs", a, b[0], sizes)
        self.refused(ValueError, "rhs", a, b[None], sizes)
        self.refused(ValueError, "rhs", a, b[:, :15], sizes)
        self.refused(ValueError, "group_sizes", a, b, sizes[:1])
        self.refused(ValueError, "group_sizes", a, b, sizes[None])
        self.refused(ValueError, "precision", a, b, sizes, jax.lax.Precision.HIGHEST)
        self.refused(TypeError, "preferred_element_type", a, b, sizes, preferred_element_type="float64")
        self.refused(ValueError, "group_offset", a, b, sizes, group_offset=jnp.array([0]))


if __name__ == "__main__":
    unittest.main()
