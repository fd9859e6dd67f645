"""Layers of experts by the plug-in for vLLM. In its place is a small package whose kernel is not batch-invariant."""

import importlib
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

try:
    import torch
except ModuleNotFoundError:
    print("experts of engines: Skipped\nPyTorch is not installed")
    sys.exit(77)

import hgemm
import hgemm.torch  # noqa: F401  before processes are forked
from hgemm import engines

sys.path.insert(0, str(Path(__file__).parent / "engines"))
from in_process import COUNT, CPU_IS_INVARIANT, Case  # noqa: E402

PACKAGE = "vllm.model_executor.layers.fused_moe"
NAME = "model.layers.3.mlp.experts"
EXPERTS, HIDDEN, INNER, TOP_K = 8, 64, 32, 3
MINIMAX = {"gemm1_clamp_limit": 1.5, "gemm1_alpha": 1.702, "gemm1_beta": 1.0}
FORMS = (("SILU", {}), ("SILU", {"gemm1_clamp_limit": 1.0, "gemm1_alpha": 3.0, "gemm1_beta": 2.0}), ("GELU", {}),
         ("GELU_TANH", {}), ("SWIGLUOAI", MINIMAX), ("SWIGLUOAI_UNINTERLEAVE", MINIMAX))
OPERATORS = [f"hgemm.{name}.default" for name in ("route", "gather_rows", "grouped_gated_mm", "grouped_mm",
                                              "combine_rows")]
invariant_only = unittest.skipUnless(CPU_IS_INVARIANT, "this CPU has no batch-invariant mode")


def module(name):
    return importlib.import_module(f"{PACKAGE}.{name}")


def layer_of(activation="SILU", dtype=torch.bfloat16, config=(), quant=(), **others):
    """Of vLLM's class; config, quant: what differs in its FusedMoEConfig and FusedMoEQuantConfig."""
    config = SimpleNamespace(**{
        "num_experts": EXPERTS, "hidden_dim": HIDDEN, "intermediate_size": INNER, "has_bias": False,
        "is_lora_enabled": False, "activation": module("activation").MoEActivation[activation], **dict(config)})
    quant = SimpleNamespace(**{**dict.fromkeys(("quant_dtype", "weight_quant_dtype", "w1_bias", "w2_bias",
                                                "gemm1_clamp_limit", "gemm1_alpha", "gemm1_beta")), **dict(quant)})
    return module("routed_experts").RoutedExperts(NAME, dtype, config, quant, **others)


def with_biases(dtype=torch.bfloat16):
    """As gpt-oss has them, arguments of layer_of()."""
    generator = torch.Generator().manual_seed(8)
    b13, b2 = (torch.randn(EXPERTS, n, generator=generator).to(dtype) for n in (2 * INNER, HIDDEN))
    return {"config": {"has_bias": True}, "quant": {"w1_bias": b13, "w2_bias": b2}}


def tokens(count=40, dtype=torch.bfloat16):
    """x, weights and indices of a router. The last expert has no tokens."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(count, HIDDEN, generator=generator).to(dtype)
    weights, ids = torch.randn(count, EXPERTS - 1, generator=generator).softmax(1).topk(TOP_K)
    return x, weights, ids.int()


def by_tokens(layer, x, weights, ids, half=None):
    """In float64. half: the type in which vLLM's kernels hand results on."""
    def rounded(x):
        return x if half is None else x.to(half)
    w13, w2 = layer.w13_weight.double(), layer.w2_weight.double()
    experts, activate = layer.quant_method.experts, module("activation").apply_moe_activation
    results = torch.zeros(TOP_K, *x.shape, dtype=torch.float64)
    b13, b2 = (torch.zeros(EXPERTS, n, dtype=torch.float64) if bias is None else bias.double()
               for n, bias in ((2 * INNER, experts.w1_bias), (HIDDEN, experts.w2_bias)))
    for k in range(TOP_K):
        product = rounded(torch.einsum("th,tfh->tf", x.double(), w13[ids[:, k]]) + b13[ids[:, k]])
        inner = activate(layer.activation, experts.activation_config, product).double()
        product = torch.einsum("tf,thf->th", inner, w2[ids[:, k]]) + b2[ids[:, k]]
        results[k] = rounded(product * weights[:, k, None].double())
    return rounded(results.sum(0)).double()


def error(result, right):
    return float((result.double() - right).norm() / right.norm())


def differing(layer):
    """Of some numbers of tokens: how many give a token other bits than all tokens together."""
    x, weights, ids = tokens()
    whole = layer(x, weights, ids)
    parts = [slice(0, m) for m in (1, 2, 3, 7, 8, 13)] + [slice(5, 33)]
    return sum(not torch.equal(layer(x[part], weights[part], ids[part]), whole[part]) for part in parts)


def attempt(function, *arguments, **others):
    try:
        function(*arguments, **others)
        return ""
    except engines.Refused as refused:
        return str(refused)


class Served(Case):
    @invariant_only
    def test_right(self):
        """As near to the exact result as with vLLM's kernels, at least."""
        def run(engine):
            engine.start()
            errors = []
            for dtype in (torch.bfloat16, torch.float16):
                for activation, quant in FORMS:
                    layer, operands = layer_of(activation, dtype, quant=quant), tokens(dtype=dtype)
                    right = by_tokens(layer, *operands)
                    errors.append((activation, error(layer(*operands), right),
                                   error(by_tokens(layer, *operands, half=dtype), right)))
                for wider in (dtype, torch.float32):
                    layer, operands = layer_of("SWIGLUOAI", dtype, **with_biases(wider)), tokens(dtype=dtype)
                    right = by_tokens(layer, *operands)
                    errors.append(("biases", error(layer(*operands), right),
                                   error(by_tokens(layer, *operands, half=dtype), right)))
            return errors, engines.counts()
        errors, counts = self.result(run)
        self.assertEqual((len(errors), counts), (16, {}))
        for activation, ours, theirs in errors:
            self.assertLess(0, ours, activation)
            self.assertLess(ours, theirs, activation)

    @invariant_only
    def test_batch_invariance(self):
        def run(engine):
            planted = differing(layer_of())
            engine.start()
            layers = layer_of(), layer_of("SWIGLUOAI"), layer_of("SWIGLUOAI", **with_biases())
            return planted, [differing(layer) for layer in layers]
        planted, ours = self.result(run)
        self.assertGreater(planted, 0)
        self.assertEqual(ours, [0, 0, 0])

    @invariant_only
    def test_outputs(self):
        """Of each layout and type, and only of the right shape."""
        def run(engine):
            engine.start()
            layer, (x, weights, ids) = layer_of(), tokens()
            whole = layer(x, weights, ids)

            def into(output):
                workspace = torch.empty(0)
                layer.quant_method.experts.apply(
                    output, x, layer.w13_weight, layer.w2_weight, weights, ids, layer.activation, EXPERTS, None, None,
                    None, workspace, workspace, None, False)
                return output
            count = len(x)
            outputs = (torch.empty_like(x), torch.empty(count, 2 * HIDDEN, dtype=x.dtype)[:, ::2],
                       torch.empty(HIDDEN, count, dtype=x.dtype).t(), torch.empty(count, HIDDEN))
            equal = [torch.equal(into(output), whole.to(output.dtype)) for output in outputs]
            try:
                into(torch.empty(count - 1, HIDDEN, dtype=x.dtype))
            except RuntimeError as error:
                return equal, str(error)
        equal, refused = self.result(run)
        self.assertEqual(equal, [True] * 4)
        self.assertIn("size", refused)

    @invariant_only
    def test_ranks(self):
        """Each has a part of every expert. vLLM adds up their results."""
        def run(engine):
            engine.start()
            layer, operands = layer_of(), tokens()
            right, total = by_tokens(layer, *operands), 0.0
            w13, w2 = layer.w13_weight.unflatten(1, (2, INNER)), layer.w2_weight
            for rank in range(2):
                part = slice(rank * INNER // 2, (rank + 1) * INNER // 2)
                layer.w13_weight = torch.nn.Parameter(w13[:, :, part].flatten(1, 2), requires_grad=False)
                layer.w2_weight = torch.nn.Parameter(w2[:, :, part].contiguous(), requires_grad=False)
                total = total + layer(*operands).double()
            return error(total, right)
        self.assertLess(self.result(run), 4e-3)

    @invariant_only
    def test_experts_of_ranks(self):
        """Each has some experts (expert_map). vLLM adds up their results."""
        def run(engine):
            engine.start()
            layer, operands = layer_of(), tokens()
            right, total = by_tokens(layer, *operands), 0.0
            for own in (slice(0, 3), slice(3, EXPERTS)):
                expert_map = torch.full((EXPERTS,), -1, dtype=torch.int32)
                expert_map[own] = torch.arange(own.stop - own.start, dtype=torch.int32)
                part = layer_of(expert_map=expert_map)
                part.w13_weight, part.w2_weight = (torch.nn.Parameter(w[own].clone(), requires_grad=False)
                                                   for w in (layer.w13_weight, layer.w2_weight))
                total = total + part(*operands).double()
            return error(total, right), engines.counts()
        differs, counts = self.result(run)
        self.assertLess(differs, 4e-3)
        self.assertEqual(counts, {})

    def test_graph(self):
        def run(engine):
            engine.pretend_device()
            engine.start()
            layer, graphs, shapes, errors = layer_of(), [], [], []

            def backend(graph, inputs):
                graphs.append(graph)
                return graph.forward
            compiled = torch.compile(lambda x, *router: layer(x * 2, *router), backend=backend, fullgraph=True,
                                     dynamic=True)
            for count in (8, 300, 3, 77):
                try:
                    shapes.append(compiled(*tokens(count)).shape[0])
                except hgemm.Error as failed:
                    errors.append(str(failed))
            nodes = [node for node in graphs[0].graph.nodes if "hgemm" in str(node.target)]
            invariant = [node.args[8] for node in nodes if "gated" in str(node.target)]
            invariant += [node.args[4] for node in nodes if ".grouped_mm." in str(node.target)]
            aot = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
            same = CPU_IS_INVARIANT and torch.equal(aot(*tokens()), layer(*tokens()))
            return [str(node.target) for node in nodes], invariant, len(graphs), shapes, errors, same
        operators, invariant, graphs, shapes, errors, same = self.result(run)
        self.assertEqual((operators, invariant, graphs), (OPERATORS, [True, True], 1))
        if CPU_IS_INVARIANT:
            self.assertEqual((shapes, errors, same), ([8, 300, 3, 77], [], True))
        else:  # at each run, by name
            self.assertEqual((shapes, len(errors)), ([], 4))
            self.assertIn("no batch-invariant mode", errors[0])

    def test_when_it_is_replaced(self):
        """vLLM's module is heavy, and processes that compute nothing do not start the mode."""
        def run(engine):
            engine.pretend_device()
            engine.load()
            before = f"{PACKAGE}.experts.triton_moe" in sys.modules
            own = module("experts.triton_moe").TritonExperts.apply
            engine.start()
            experts = module("experts.triton_moe")
            return (before, experts.TritonExperts.apply is own, own.__qualname__,
                    experts.Int4EmulationTritonExperts.apply.__module__, engine.log.lines)
        before, is_own, name, other, (line,) = self.result(run)
        self.assertEqual((before, is_own, name, other),
                         (False, False, "TritonExperts.apply", f"{PACKAGE}.experts.triton_moe"))
        self.assertIn("TritonExperts.apply in model_executor.layers.fused_moe.experts.triton_moe", line)


def other_methods():
    base = module("routed_experts").UnquantizedFusedMoEMethod
    return [type(name, (base,), {}) for name in ("Fp8MoEMethod", "MuseSparkUnquantizedFusedMoE")]


class Refusing(Case):
    LAYERS = (({}, ""), ({"dtype": torch.float32}, "the experts are torch.float32"),
              ({"apply_router_weight_on_input": True}, "router weights are applied to the input"),
              ({"config": {"is_lora_enabled": True}}, "the experts may have LoRA adapters"),
              ({"activation": "SWIGLUSTEP"}, "the activation is swiglustep, which is none of silu, gelu, gelu_tanh, "
                                             "swigluoai, swigluoai_uninterleave"),
              ({"activation": "RELU2_NO_MUL"}, "the activation is relu2_no_mul"))

    def test_layers(self):
        """By name, as they are made."""
        def run(engine):
            engine.pretend_device()
            engine.start()
            forms = [form for form, _ in self.LAYERS] + [{"method": method} for method in other_methods()]
            return [attempt(layer_of, **form) for form in forms], engines.counts()
        found, _ = self.result(run)
        texts = [text for _, text in self.LAYERS] + [
            f"the experts are quantized, or a kind of their own, by {name}"
            for name in ("Fp8MoEMethod", "MuseSparkUnquantizedFusedMoE")]
        self.assertEqual(found[0], "")
        for text, why in zip(texts[1:], found[1:]):
            self.assertIn(f"layer {NAME} of vllm is not served by libhgemm: {text}", why)
        found, counts = self.result(run, COUNT)
        self.assertEqual((set(found), sorted(counts.values())), ({""}, [1] * 7))

    def test_layers_that_were_made_before(self):
        def run(engine):
            engine.pretend_device()
            kept = layer_of(config={"is_lora_enabled": True})
            return attempt(engine.start), kept is not None
        self.assertIn(f"layer {NAME} of vllm is not served", self.result(run)[0])

    @staticmethod
    def calls(engine):
        """Layers that look as if they were served. Returns what a call raises, and by how much its result is wrong."""
        engine.pretend_device()
        engine.start()
        x, weights, ids = tokens()
        served = layer_of()
        changed = [(served, (x, weights, ids)), (served, (x, weights, ids.to(torch.uint8))),
                   (served, (x, weights.double(), ids)),
                   (layer_of(quant={"quant_dtype": torch.int8}), (x, weights, ids)),
                   (layer_of(quant={"w2_bias": torch.zeros(EXPERTS, HIDDEN).double()}), (x, weights, ids)),
                   (layer_of(experts_cls=module("experts.triton_moe").Int4EmulationTritonExperts), (x, weights, ids))]
        for name in ("_lora_context", "post_gemm2_hook"):
            layer = layer_of()
            setattr(layer.quant_method.experts, name, object())
            changed.append((layer, (x, weights, ids)))
        layer = layer_of()
        layer.apply_router_weight_on_input = True
        changed.append((layer, (x, weights, ids)))
        found = []
        for layer, operands in changed:
            try:
                found.append(error(layer(*operands), by_tokens(layer, x, weights, ids)))
            except engines.Refused as refused:
                found.append(str(refused))
        return found, engines.counts()

    @invariant_only
    def test_calls(self):
        texts = ("the experts' numbers are torch.uint8", "the router weights are torch.float64",
                 "the experts are quantized", "the product is of torch.bfloat16 and biases of torch.float64",
                 "Int4EmulationTritonExperts prepare the weights first", "the experts may have LoRA adapters",
                 "the model adds up the experts' results itself", "router weights are applied to the input")
        (served, *found), _ = self.result(self.calls)
        self.assertLess(served, 1e-2)
        for text, why in zip(texts, found, strict=True):
            self.assertIn(f"TritonExperts.apply of vllm is not served by libhgemm: {text}", why)
        found, counts = self.result(self.calls, COUNT)
        self.assertEqual(counts, {f"TritonExperts.apply: {text}": 1 for text in texts})
        int4 = found.pop(5)  # weights of twice the size
        self.assertLess(max(found), 2e-2)
        self.assertGreater(int4, 0.5)

    def test_what_the_library_refuses(self):
        """Here, since the test plants it; without a batch-invariant mode on the CPU, by itself."""
        def run(engine):
            engine.pretend_device()
            from hgemm.torch import _handles

            def fail(*_):
                raise hgemm.Error(hgemm.Status.NOT_SUPPORTED, "no batch-invariant mode, says the test")
            engine.start()
            _handles.call = fail
            layer, operands = layer_of(), tokens()
            return error(layer(*operands), by_tokens(layer, *operands)), engines.counts()
        self.assertIn("TritonExperts.apply of vllm is not served by libhgemm", self.refused(run))
        wrong, counts = self.result(run, COUNT)
        self.assertLess(wrong, 2e-2)
        self.assertEqual([name.split(":")[0] for name in counts], ["TritonExperts.apply"])

    def start(self, engine):
        engine.pretend_device()
        engine.start()

    def test_drift(self):
        edits = (("triton_moe.py", "        apply_router_weight_on_input: bool,\n    ):",
                  "        apply_router_weight_on_input: bool,\n        scale=1,\n    ):",
                  "should be: TritonExperts.apply has the arguments (self, output, hidden_states, w1, w2, "
                  "topk_weights, topk_ids, activation, global_num_experts, expert_map, a1q_scale, a2_scale, "
                  "workspace13, workspace2, expert_tokens_meta, apply_router_weight_on_input, scale=1), not (self, "),
                 ("triton_moe.py", "    def apply(\n", "    def compute(\n", "has no function TritonExperts.apply"),
                 ("triton_moe.py", "from planted", "from planted_elsewhere", "cannot be imported: No module named"),
                 ("routed_experts.py", "class RoutedExperts(", "class Experts(",
                  "routed_experts has no class RoutedExperts"))
        for file, before, after, text in edits:
            self.assertIn(text, self.refused(self.start, edit=[(file, before, after)]))

    def test_what_differs_in_an_unknown_version(self):
        edit = [("METADATA", "0.33.0", "0.34.0"), ("triton_moe.py", "    def apply(\n", "    def compute(\n")]
        text = self.refused(lambda engine: engine.load(), edit=edit)
        self.assertIn(f"what differs: {PACKAGE}.experts.triton_moe has no function TritonExperts.apply", text)

    def test_another_plugin(self):
        def before(engine):
            module("experts.triton_moe").TritonExperts.apply = lambda self, output, *others: None
            self.start(engine)
        self.assertIn("TritonExperts.apply has the arguments (self, output, *others), not", self.refused(before))

        def same_arguments(engine):
            experts = module("experts.triton_moe").TritonExperts
            exec(compile(OTHER, "another_plugin.py", "exec"), {"experts": experts})
            self.start(engine)
        self.assertIn("TritonExperts.apply is not vllm's own any more: another plug-in has replaced it, by one in "
                      "another_plugin.py", self.refused(same_arguments))

    def test_what_stays_after_a_refusal(self):
        def run(engine):
            def refuse(plugin):
                raise engines.Refused("no device")
            own = module("experts.triton_moe").TritonExperts.apply
            engine.load()
            sys.modules["hgemm.engines._plugin"].Plugin.device = refuse
            engine.module.enable_batch_invariant_mode()
            return module("experts.triton_moe").TritonExperts.apply is own
        self.assertTrue(self.result(run, COUNT))


OTHER = """
def apply(self, output, hidden_states, w1, w2, topk_weights, topk_ids, activation, global_num_experts, expert_map,
          a1q_scale, a2_scale, workspace13, workspace2, expert_tokens_meta, apply_router_weight_on_input):
    pass
experts.apply = apply
"""

if __name__ == "__main__":
    unittest.main()
