"""Which of torch's operators multiply matrices: hgemm.torch serves or refuses each, or it is listed here why not."""

import re
import unittest
import warnings

from test_torch import assert_close, functional, ht, random, torch
from hgemm.torch import _overrides

if torch.distributed.is_available():
    import torch.distributed._symmetric_memory  # noqa: F401  has operators of its own

# What looks like a product: by its name, or by those of its arguments.
NAME = re.compile(r"mm(_|$)|mv(_|$)|matmul|dot(_|$)|gemm|einsum|linear|conv|attention|rnn|lstm|gru|multi_head|encoder"
                  r"|matrix_(exp|power)|inner|outer|ger$|addr|kron|cdist|mm_plus")
ARGUMENTS = re.compile(r"\b(mat\d?|mat_[ab]|matrix\d?|vec\d?|batch\d|mat1_meta|packed_weight) *[,=)*]")

# By the operator's name without its overload; those of aten without "aten::".
#: What torch computes by others of these names, or by those that are served.
MADE_OF_OTHERS = set("""
    linear linear_backward matmul matmul_backward linalg_matmul mv addbmm addbmm_ einsum tensordot inner bilinear
    chain_matmul linalg_multi_dot matrix_power linalg_matrix_power matrix_exp linalg_matrix_exp matrix_exp_backward
    _compute_linear_combination linalg_vecdot rnn_tanh_cell rnn_relu_cell lstm_cell gru_cell
    _native_multi_head_attention _transformer_encoder_layer_fwd inductor::_mm_plus_mm _triton_multi_head_attention
    scaled_dot_product_attention _scaled_dot_product_attention_math symm_mem::fused_all_gather_matmul
    symm_mem::fused_matmul_reduce_scatter""".split())
#: Their products are of whole tensors to torch: attention, convolutions and recurrent layers; TORCH.md says so.
NO_PRODUCTS_TO_TORCH = re.compile(r"attention|conv|rnn|lstm|gru")
#: Elements of the result that are one product of two numbers, or a result that is one sum: there are no other rows.
ONE_SUM_OR_NONE = set("dot vdot kron addr addr_ outer ger cdist _cdist_forward _cdist_backward _trilinear".split())
#: float8 or int8: no operand is of half precision.
OTHER_TYPES = set("""_int_mm _scaled_mm _scaled_mm_v2 _scaled_grouped_mm _scaled_grouped_mm_v2
    symm_mem::fused_all_gather_scaled_matmul symm_mem::fused_scaled_matmul_reduce_scatter""".split())
#: Of tensors that are not dense, at keys of their own.
SPARSE = set("""_sparse_addmm _sparse_mm _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward
    _sparse_sparse_matmul hspmm smm sspaddmm sparse_sampled_addmm _cslt_sparse_mm_search""".split())
#: No kernel for CUDA devices.
CPU_ALONE = re.compile(r"fbgemm|mkldnn|_for_cpu|for_mps|_dyn_quant|_wrapped_|quantized|with_scales_and_zeros")
NO_MATRICES = re.compile(r"upsample|_foreach|hamming|convert|inner_tensor|prelu|embedding|batch_norm")
OURS = {name.split(".")[0] for name in _overrides._OPERATORS}


def operators():
    """The names of torch's operators that look like products, without overloads."""
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::") if "::" in schema.name else ("aten", schema.name)
        if namespace not in ("aten", "inductor", "symm_mem"):
            continue
        text = str(schema)
        arguments = text[text.index("("):text.index("->")]
        if "Tensor" in arguments and (NAME.search(name) or ARGUMENTS.search(arguments)):
            yield name if namespace == "aten" else f"{namespace}::{name}"


def known(name):
    return (name in OURS | MADE_OF_OTHERS | ONE_SUM_OR_NONE | OTHER_TYPES | SPARSE
            or NO_MATRICES.search(name) or CPU_ALONE.search(name) or NO_PRODUCTS_TO_TORCH.search(name))


class All(unittest.TestCase):
    def test_each_is_known(self):
        found = set(operators())
        self.assertGreater(len(found), 100)
        self.assertLess({"mm", "_addmm_activation", "_grouped_mm", "convolution", "_weight_int8pack_mm"}, found)
        unknown = sorted(name for name in found if not known(name))
        self.assertEqual(unknown, [], "is it a product that enable() has to serve or, if strict, to refuse?")


class Served(unittest.TestCase):
    def setUp(self):
        ht.enable(dispatch_key="CPU", strict=True)
        self.addCleanup(ht.disable)
        self.before = ht.counts().get("served", 0)

    def served(self):
        return ht.counts().get("served", 0) - self.before

    def test_addmm_activation(self):
        """Torch's GELU here is by erf on the CPU, by tanh on CUDA devices."""
        a, b, v, c = random(4, 8), random(8, 5), random(5), random(4, 5)
        exact = a.double() @ b.double()
        for added in (v, c):
            for gelu, function in ((False, functional.relu), (True, functional.gelu)):
                right = function(2 * exact + added.double())
                assert_close(torch._addmm_activation(added, a, b, alpha=2, use_gelu=gelu), right)
                for out in (torch.empty(4, 5).half(), torch.empty(0).half(), torch.empty(5, 4).half().t()):
                    result = torch.ops.aten._addmm_activation.out(added, a, b, alpha=2, use_gelu=gelu, out=out)
                    self.assertIs(result, out)
                    assert_close(out, right)
        self.assertEqual(self.served(), 16)
        ht.disable()
        for gelu in (False, True):
            assert_close(torch._addmm_activation(v, a, b, use_gelu=gelu),
                         (functional.gelu if gelu else functional.relu)(exact + v.double()))

    def test_a_transformer_in_one_operator(self):
        """In eval() nn.TransformerEncoderLayer is one operator of torch's, of six products."""
        torch.manual_seed(2)
        for activation in ("relu", "gelu"):
            layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation=activation).half().eval()
            x = random(2, 3, 16)
            with torch.inference_mode(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                before = self.served()
                ours = layer(x)
                self.assertEqual(self.served() - before, 6)
                ht.disable()
                torch.testing.assert_close(ours, layer(x), rtol=0.01, atol=0.01)
                ht.enable(dispatch_key="CPU", strict=True)

    def test_what_it_refuses(self):
        x, quantized, scales = random(4, 32, dtype=torch.bfloat16), torch.ones(8, 32, dtype=torch.int8), torch.ones(8)
        with self.assertRaisesRegex(RuntimeError, "aten::_weight_int8pack_mm is not served by libhgemm, and strict"):
            torch._weight_int8pack_mm(x, quantized, scales.bfloat16())
        ht.enable(dispatch_key="CPU")
        before = ht.counts().get("a product of quantized or sparse matrices", 0)
        result = torch._weight_int8pack_mm(x, quantized, scales.bfloat16())
        torch.testing.assert_close(result.double(), x.double() @ quantized.double().t(), rtol=0.02, atol=0.02)
        self.assertEqual(ht.counts()["a product of quantized or sparse matrices"], before + 1)

    def test_results_without_elements(self):
        """Torch resizes them."""
        a, b, v = random(4, 8), random(8, 5), random(8)
        cases = [lambda out: torch.mm(a, b, out=out), lambda out: torch.addmm(b[0], a, b, out=out),
                 lambda out: torch.bmm(a[None], b[None], out=out), lambda out: torch.mv(a, v, out=out),
                 lambda out: torch.baddbmm(b[:4, :5], a[None], b[None], out=out),
                 lambda out: torch.addmv(a[:, 0], a, v, out=out), lambda out: torch.mm(a[:0], b, out=out)]
        for i, case in enumerate(cases):
            with self.subTest(case=i):
                out = torch.empty(0, dtype=torch.float16)
                self.assertIs(case(out), out)
                self.assertEqual(self.served(), i + 1)
                ht.disable()
                assert_close(out, case(torch.empty(0, dtype=torch.float16)))
                ht.enable(dispatch_key="CPU", strict=True)
        nothing = torch.empty(0, dtype=torch.float16)
        for wrong in (lambda: torch.mm(a, b[:7], out=nothing), lambda: nothing.addmv_(a, v),
                      lambda: torch.empty(1, 0).half().addmm_(a, b[:, :0])):
            with self.assertRaises(RuntimeError):
                wrong()


class OtherDevices(unittest.TestCase):
    def setUp(self):
        if not torch.backends.cuda.is_built():
            self.skipTest("enable() refuses a PyTorch that is built without CUDA")
        self.addCleanup(ht.disable)

    def test_strict_does_not_pass_over_tensors_of_the_cpu(self):
        x, layer = random(4, 8), torch.nn.Linear(8, 5).half()
        with self.assertRaisesRegex(RuntimeError, "aten::addmm of CPU tensors is not served .* act on CUDA tensors"):
            with ht.batch_invariant(strict=True):
                layer(x)
        ht.enable(strict=True)
        for function in (lambda: x @ x.t(), lambda: layer(x), lambda: torch.bmm(x[None], x.t()[None]),
                         lambda: torch._addmm_activation(x[:, 0], x, x.t())):
            with self.assertRaisesRegex(RuntimeError, "of CPU tensors is not served by libhgemm, and strict is set"):
                function()
        x.float() @ x.float().t()
        ht.enable()
        x @ x.t()
        ht.disable()
        x @ x.t()


if __name__ == "__main__":
    unittest.main()
