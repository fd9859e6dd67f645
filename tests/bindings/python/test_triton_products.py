"""The Triton products of the example: as compiled for sm_90, and what they compute by Triton's interpreter."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

missing = [name for name in ("torch", "triton", "numpy") if importlib.util.find_spec(name) is None]
if missing:
    print(f"Triton products of the example: Skipped\n{' and '.join(missing)} not installed")
    sys.exit(77)

SOURCE = Path(os.environ.get("HGEMM_SOURCE", Path(__file__).parents[3]))
sys.path.insert(0, str(SOURCE / "bindings/python/examples"))
import torch  # noqa: E402
import triton  # noqa: E402
import triton_products  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DTYPE = torch.float16 if INTERPRETED else torch.bfloat16  # Triton's interpreter multiplies no bfloat16


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(DTYPE)


def let_numpy_index():
    """Triton 3.6 makes integers of arrays with one element, which NumPy 2.4 does not do any more."""
    from triton.runtime import interpreter
    before = interpreter._patch_lang_tensor

    def patch(tensor, scope):
        before(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())
    interpreter._patch_lang_tensor = patch


def let_numpy_add_in_any_order():
    """Its BLAS may add in another order for another row of a tile. In float64 sums of a tile's products are exact."""
    import numpy
    from triton.runtime import interpreter

    def create_dot(self, a, b, d, *_):
        sums = numpy.matmul(a.data, b.data, dtype=numpy.float64)
        return interpreter.TensorHandle(sums.astype(d.data.dtype) + d.data, d.dtype.scalar)
    interpreter.InterpreterBuilder.create_dot = create_dot


class Call:
    """In place of a kernel: keeps its arguments."""
    def __getitem__(self, grid):
        def launch(*positional, **named):
            self.positional, self.named = positional, named
        return launch


def compiled(name, *operands):
    """PTX of the kernel for such operands, with what Triton knows of them: that they are 1, or multiples of 16."""
    kernel, call = getattr(triton_products, name), Call()
    setattr(triton_products, name, call)
    try:
        (triton_products.grouped_product if len(operands) == 3 else triton_products.product)(*operands)
    finally:
        setattr(triton_products, name, kernel)
    options = {key: call.named.pop(key) for key in triton_products.LAUNCH}
    signature, constants, attributes = {}, dict(call.named), {}
    for i, (key, value) in enumerate(zip(kernel.arg_names, call.positional)):
        special = kernel.params[i].do_not_specialize is False
        if isinstance(value, torch.Tensor):
            signature[key] = "*bf16" if value.dtype == torch.bfloat16 else "*i32"
        elif special and value == 1:
            constants[key] = 1
        else:
            signature[key] = "i32"
        if signature.get(key, "i32")[0] == "*" or special and value % 16 == 0:
            attributes[i,] = [["tt.divisibility", 16]]
    signature |= {key: "constexpr" for key in constants}
    signature = {key: signature[key] for key in kernel.arg_names}
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]


class OnSm90(unittest.TestCase):
    def test_aligned_operands(self):
        """Loads of 16 bytes, asynchronous, and wgmma, for one row as well as for many."""
        calls = {
            "a linear layer": ("_product", random(7, 256), random(384, 256).t()),
            "one row": ("_product", random(1, 256), random(384, 256).t()),
            "keys": ("_product", random(4, 7, 128), random(4, 256, 128).transpose(1, 2)),
            "values": ("_product", random(4, 7, 256), random(4, 256, 128)),
            "experts": ("_grouped_product", random(7, 256), random(3, 384, 256).transpose(1, 2),
                        torch.tensor([2, 2, 7], dtype=torch.int32)),
        }
        texts = {name: compiled(*call) for name, call in calls.items()}
        for name, text in texts.items():
            with self.subTest(name):
                sizes = re.findall(r"cp\.async\.c[ag]\.[^;]*?, 0x(\w+)", text)
                self.assertEqual({int(size, 16) for size in sizes}, {16})
                self.assertNotIn("ld.global.b16", text)
                self.assertIn("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", text)
        self.assertEqual(texts["a linear layer"], texts["one row"])

    def test_results(self):
        """In a process of its own, as the interpreter must be chosen before Triton is imported."""
        done = subprocess.run([sys.executable, __file__], env=os.environ | {"TRITON_INTERPRET": "1"}, text=True,
                              stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)


class Interpreted(unittest.TestCase):
    def check(self, d, expected):
        torch.testing.assert_close(d.float(), expected, rtol=2**-10, atol=1e-5 * float(expected.abs().max()))

    def test_layouts(self):
        for m, n, k in ((1, 1, 1), (1, 130, 65), (129, 257, 63), (1100, 300, 70)):
            for a in (random(m, k), random(k, m).t()):
                for b in (random(k, n), random(n, k).t()):
                    self.check(triton_products.product(a, b), a.float() @ b.float())

    def test_batches(self):
        for count, m, n, k in ((1, 3, 5, 7), (5, 130, 17, 33), (3, 1, 256, 128)):
            for a in (random(count, m, k), random(m, count, k).transpose(0, 1)):
                for b in (random(count, k, n), random(count, n, k).transpose(1, 2)):
                    self.check(triton_products.product(a, b), a.float() @ b.float())

    def test_groups(self):
        for counts in ([0, 3, 0, 200, 1, 129, 0], [1], [0, 0, 1]):
            a, b = random(sum(counts), 72), random(len(counts), 150, 72).transpose(1, 2)
            ends = torch.tensor(counts).cumsum(0).int()
            expected = torch.cat([rows.float() @ weights.float() for rows, weights in zip(a.split(counts), b)])
            self.check(triton_products.grouped_product(a, b, ends), expected)

    def test_rows_alone(self):
        a, b = random(300, 200), random(200, 150)
        whole = triton_products.product(a, b)
        for start, end in ((0, 1), (17, 18), (5, 150)):
            self.assertTrue(torch.equal(triton_products.product(a[start:end], b), whole[start:end]))


if __name__ == "__main__":
    if INTERPRETED:
        let_numpy_index()
        let_numpy_add_in_any_order()
    unittest.main(defaultTest="Interpreted" if INTERPRETED else "OnSm90")
