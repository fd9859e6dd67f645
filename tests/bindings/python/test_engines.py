"""The plug-ins for vLLM and SGLang, with small packages in the engines' places that are laid out as these are.

Their kernel is planted: it is not batch-invariant. Each test has a process of its own, since a plug-in holds for one.
"""

import importlib
import os
import subprocess
import sys
import unittest
from pathlib import Path

try:
    import torch
except ModuleNotFoundError:
    print("plug-ins for engines: Skipped\nPyTorch is not installed")
    sys.exit(77)

import hgemm
import hgemm.torch  # noqa: F401  before processes are forked
from hgemm import engines

sys.path.insert(0, str(Path(__file__).parent / "engines"))
from in_process import COUNT, CPU_IS_INVARIANT, Case, Engine  # noqa: E402


def differing(product, k=64, n=24):
    """Rows of results whose bits depend on how many rows there are."""
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(32, k, generator=generator).to(torch.bfloat16)
    weight = torch.randn(n, k, generator=generator).to(torch.bfloat16)
    whole = product(a, weight).view(torch.int16)
    return sum(bool((product(a[:m], weight).view(torch.int16) != whole[:m]).any()) for m in (1, 2, 3, 7, 8, 13))


class Replacing(Case):
    def test_off(self):
        def run(engine):
            before = engine.module.linear_batch_invariant
            engine.load()
            return engine.module.linear_batch_invariant is before, engine.log.lines
        for setting in ("", "off"):
            self.assertEqual(self.result(run, setting), (True, []))

    def test_off_costs_no_import_of_torch(self):
        program = "import sys, hgemm.engines.vllm as v, hgemm.engines.sglang as s; v.load(); s.load(); " \
                  "assert 'torch' not in sys.modules and 'vllm' not in sys.modules"
        environment = {name: value for name, value in os.environ.items() if name != "HGEMM_ENGINE"}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)

    def test_in_all_modules(self):
        def run(engine):
            importlib.import_module("vllm.model_executor.layers.linear")  # before the plug-in; the other one after
            own = engine.module.linear_batch_invariant
            module = engine.load()
            importlib.import_module("vllm.model_executor.layers.vocab_parallel_embedding")
            names = [name for name in sys.modules if name.startswith("vllm.")]
            have = {name: function for name in names
                    if (function := getattr(sys.modules[name], "linear_batch_invariant", None)) is not None}
            right = {name for name, function in have.items()
                     if function is module.linear_batch_invariant and function is not own}
            return len(have), len(right), module.matmul_persistent.__module__, module.mm_batch_invariant.__name__
        self.assertEqual(self.result(run)[:2], (3, 3))

    def test_planted_kernel_is_seen(self):
        def run(engine):
            return differing(engine.module.linear_batch_invariant)
        self.assertGreater(self.result(run), 0)

    def test_twice(self):
        def run(engine):
            module = engine.load()
            first = module.linear_batch_invariant
            engine.load()
            return module.linear_batch_invariant is first
        self.assertTrue(self.result(run))

    def test_line_of_the_log(self):
        def run(engine):
            engine.pretend_device()
            importlib.import_module("vllm.model_executor.layers.vocab_parallel_embedding")
            engine.start()
            engine.module.enable_batch_invariant_mode()
            return engine.log.lines, engine.module.started, os.environ["VLLM_USE_BREAKABLE_CUDAGRAPH"]
        lines, started, breakable = self.result(run)
        self.assertEqual((len(lines), started, breakable), (1, 2, "0"))
        for text in ("vllm 0.33.0", "a device by its kernels", "strictly", "linear_batch_invariant",
                     "model_executor.layers.vocab_parallel_embedding", "matmul_persistent", "bmm_batch_invariant"):
            self.assertIn(text, lines[0])

    def test_entry_points(self):
        from importlib.metadata import entry_points
        for group, module in (("vllm.general_plugins", "vllm"), ("sglang.srt.plugins", "sglang")):
            points = entry_points()
            found = points.select(group=group) if hasattr(points, "select") else points.get(group, ())
            (point,) = [one for one in found if one.name == "hgemm"]
            self.assertIs(point.load(), importlib.import_module(f"hgemm.engines.{module}").load)

    def test_on(self):
        def run(engine):
            own = engine.module.linear_batch_invariant
            engine.load()
            from hgemm.torch._overrides import mode
            return mode.now.key, mode.now.batch_invariant, mode.now.strict, engine.module.linear_batch_invariant is own
        if not torch.backends.cuda.is_built():
            self.assertIn("built without CUDA", self.refused(run, "on", VLLM_BATCH_INVARIANT="0"))
            return
        for setting, strict in (("on", True), ("on,count", False)):
            self.assertEqual(self.result(run, setting, VLLM_BATCH_INVARIANT="0"), ("CUDA", False, strict, True))


class Graphs(Case):
    def test_the_operator_stays(self):
        def run(engine):
            layer = engine.layers.LinearBase(64, 24, torch.bfloat16)  # has imported the function
            engine.load()
            graphs, shapes, errors = [], [], []

            def backend(graph, inputs):
                graphs.append(graph)
                return graph.forward
            compiled = torch.compile(lambda x: layer(x * 2), backend=backend, fullgraph=True, dynamic=True)
            for m in (8, 2048, 3, 77):
                try:
                    shapes.append(compiled(torch.ones(m, 64, dtype=torch.bfloat16)).shape)
                except hgemm.Error as error:
                    errors.append(str(error))
            targets = [str(node.target) for graph in graphs for node in graph.graph.nodes]
            symbols = [node for node in graphs[0].graph.nodes if node.op == "placeholder"
                       and isinstance(node.meta.get("example_value"), torch.SymInt)]
            return targets.count("hgemm.gemm.default"), len(graphs), len(symbols), shapes, errors
        operators, graphs, symbols, shapes, errors = self.result(run)
        self.assertEqual((operators, graphs, symbols), (1, 1, 1))
        if CPU_IS_INVARIANT:
            self.assertEqual([shape[0] for shape in shapes], [8, 2048, 3, 77])
        else:  # at each run, by name
            self.assertEqual((shapes, len(errors)), ([], 4))
            self.assertIn("no batch-invariant mode", errors[0])

    def test_not_served_while_tracing(self):
        def run(engine):
            layer = engine.layers.LinearBase(64, 24, torch.float32)
            engine.load()
            compiled = torch.compile(layer, backend="eager", fullgraph=True, dynamic=True)
            return tuple(compiled(torch.ones(8, 64)).shape), engines.counts()
        kind, text, _ = self.run_in_process(run)
        self.assertIsNotNone(kind)
        self.assertIn("linear_batch_invariant of vllm is not served by libhgemm: the product is of torch.float32", text)
        shape, counts = self.result(run, COUNT)
        self.assertEqual((shape, sum(counts.values())), ((8, 24), 1))


class Refusing(Case):
    def load(self, engine):
        engine.load()

    def left_alone(self, engine):
        own = engine.module.linear_batch_invariant
        engine.load()
        return engine.module.linear_batch_invariant is own, list(engines.counts()), engine.log.lines

    def test_setting(self):
        for setting in ("yes", "batch-invariant,fast", "on;count"):
            self.assertIn("must be off, batch-invariant or on", self.refused(self.load, setting))

    def test_versions(self):
        edit = [("METADATA", "0.33.0", "0.34.1")]
        text = self.refused(self.load, edit=edit)
        self.assertIn("vllm 0.34.1 is not known, 0.32.0 and 0.33.0 are; what differs: nothing", text)
        alone, (counted,), (line,) = self.result(self.left_alone, COUNT, edit=edit)
        self.assertTrue(alone)
        self.assertIn("0.34.1", counted)
        self.assertIn("All is left to vllm", line)
        self.result(self.load, edit=[("METADATA", "0.33.0", "0.32.0")])
        self.result(self.load, edit=[("METADATA", "0.33.0", "0.33.0+cu129")])

    def test_what_differs_in_an_unknown_version(self):
        edit = [("METADATA", "0.33.0", "0.34.0"),
                ("batch_invariant.py", "(a, b, bias=None)", "(a, b, bias=None, scale=1)")]
        self.assertIn("matmul_persistent has the arguments (a, b, bias=None, scale=1), not (a, b, bias=None)",
                      self.refused(self.load, edit=edit))

    def test_drift(self):
        for before, after, text in (
                ("def bmm_batch_invariant(a, b, *, out=None)", "def bmm_batch_invariant(a, b, out=None)",
                 "bmm_batch_invariant has the arguments (a, b, out=None), not (a, b, *, out=None)"),
                ("def linear_batch_invariant(", "def linear_invariant(", "has no function linear_batch_invariant"),
                ("def enable_batch_invariant_mode(", "def enable(", "has no function enable_batch_invariant_mode")):
            self.assertIn(text, self.refused(self.load, edit=[("batch_invariant.py", before, after)]))

    def test_moved(self):
        def run(engine):
            folder = Path(sys.path[0], "vllm/model_executor")
            (folder / "determinism").rename(folder / "invariance")
            engine.load()
        self.assertIn("vllm.model_executor.determinism.batch_invariant cannot be imported: No module named",
                      self.refused(run))

    def test_mode_of_vllm(self):
        self.assertIn("is for vLLM with VLLM_BATCH_INVARIANT=1", self.refused(self.load, VLLM_BATCH_INVARIANT="0"))
        self.assertIn("is for vLLM without VLLM_BATCH_INVARIANT=1", self.refused(self.load, "on"))

    def test_another_plugin(self):
        def before(engine):
            engine.module.matmul_persistent = lambda a, b, bias=None: None
            engine.load()
        self.assertIn("matmul_persistent is not vllm's own any more: another plug-in has replaced it, by one in",
                      self.refused(before))

        def after(engine):
            engine.load()
            engine.module.matmul_persistent = lambda a, b, bias=None: None
            engine.module.enable_batch_invariant_mode()
        self.assertIn("another plug-in has replaced matmul_persistent after that of libhgemm", self.refused(after))

    def test_both_engines(self):
        def run(engine):
            engine.load()
            sys.path.insert(0, str(Path(sys.path[1], "sglang")))
            other = Engine("sglang")
            own = other.module.matmul_persistent
            other.load()
            return other.module.matmul_persistent is own, list(engines.counts())
        self.assertIn("the plug-in for vllm is active in this process, and that for sglang is the second",
                      self.refused(run, kind="SystemExit"))
        alone, (counted,) = self.result(run, COUNT)
        self.assertTrue(alone)
        self.assertIn("is the second", counted)

    def test_cpu_alone(self):
        def run(engine):
            own = engine.module.linear_batch_invariant
            engine.start()
            return engine.module.linear_batch_invariant is own, list(engines.counts())
        if CPU_IS_INVARIANT:
            self.assertEqual(self.result(run), (False, []))
            return
        self.assertIn("on the CPU there are no batch-invariant products", self.refused(run))
        alone, (counted,) = self.result(run, COUNT)
        self.assertTrue(alone)
        self.assertIn("on the CPU", counted)

    def test_products(self):
        """Which the library does not have, or not here."""
        def run(engine):
            module, found = engine.load(), []
            for dtype, bias in ((torch.float32, None), (torch.bfloat16, torch.float64), (torch.bfloat16, None)):
                a, b = torch.ones(4, 8, dtype=dtype), torch.ones(8, 4, dtype=dtype)
                bias = None if bias is None else torch.ones(4, dtype=bias)
                try:
                    found.append(float(module.matmul_persistent(a, b, bias)[0, 0]))
                except engines.Refused as refused:
                    found.append(str(refused))
            return found, engines.counts()
        texts = ["matmul_persistent of vllm is not served by libhgemm: the product is of torch.float32",
                 "the bias is torch.float64, and the product of torch.bfloat16", "no batch-invariant mode"]
        results, _ = self.result(run)
        for text, result in zip(texts[:2 if CPU_IS_INVARIANT else 3], results):
            self.assertIn(text, result)
        results, counts = self.result(run, COUNT)
        self.assertEqual(results, [8.0, 9.0, 8.0])
        self.assertEqual(sum(counts.values()), 2 if CPU_IS_INVARIANT else 3)

    def test_layers(self):
        """Quantized ones call kernels that the plug-in never sees."""
        def run(engine):
            engine.pretend_device()
            engine.start()
            schemes = (("Fp8LinearMethod", None), ("CompressedTensorsLinearMethod", True),
                       ("CompressedTensorsLinearMethod", False))  # of vLLM 0.32.0, which knows no such mode
            found = []
            for method, invariant in schemes:
                def configure(layer):
                    if invariant is not None:
                        layer.scheme = type("CompressedTensorsWNA16", (), {"use_batch_invariant": invariant})()
                    return type(method, (), {})()
                found.append(self.made(engine, "layers.0.qkv", torch.bfloat16, configure))
            found.append(self.made(engine, "layers.0.gate", torch.float32, None))
            found.append(self.made(engine, "layers.0.o", torch.float16, None))
            return found, list(engines.counts())
        (quantized, served, another, wide, half), _ = self.result(run)
        self.assertIn("by CompressedTensorsLinearMethod", another)
        self.assertIn("layer layers.0.qkv of vllm is not served by libhgemm: its weights are quantized, by "
                      "Fp8LinearMethod", quantized)
        self.assertIn("layer layers.0.gate of vllm is not served by libhgemm: its weights are torch.float32", wide)
        self.assertEqual((served, half), ("", ""))
        found, counted = self.result(run, COUNT)
        self.assertEqual((found, len(counted)), ([""] * 5, 3))

    def test_layers_that_were_made_before(self):
        def run(engine):
            kept = engine.layers.LinearBase(8, 8, torch.bfloat16, lambda layer: type("Fp8LinearMethod", (), {})(), "o")
            engine.pretend_device()
            engine.load()
            errors = []
            for _ in range(2):  # a refused start stays refused
                try:
                    engine.module.enable_batch_invariant_mode()
                except engines.Refused as refused:
                    errors.append(str(refused))
            return errors, kept is not None
        errors, _ = self.result(run)
        self.assertEqual(["layer o of vllm is not served" in error for error in errors], [True, True])

    def test_heads_and_kernels_of_layers(self):
        def run(engine):
            engine.pretend_device()
            engine.start()
            found = []
            heads = importlib.import_module("vllm.model_executor.layers.vocab_parallel_embedding")
            own = type("DeepSeekV2FusedQkvAProjLinear", (engine.layers.LinearBase,), {})
            for make in (lambda: heads.ParallelLMHead(heads.UnquantizedEmbeddingMethod(), "head"),
                         lambda: heads.ParallelLMHead(type("Fp8LinearMethod", (), {})(), "lm_head"),
                         lambda: own(8, 8, torch.bfloat16, None, "fused_qkv_a")):
                try:
                    make()
                    found.append("")
                except engines.Refused as refused:
                    found.append(str(refused))
            return found
        head, quantized, own = self.result(run)
        self.assertEqual(head, "")
        self.assertIn("layer lm_head of vllm is not served by libhgemm: its weights are quantized", quantized)
        self.assertIn("layer fused_qkv_a of vllm is not served by libhgemm: DeepSeekV2FusedQkvAProjLinear calls", own)

    def test_what_stays_after_a_refusal(self):
        """Nothing: neither a variable of the engine, nor a function that the engine registers as it starts."""
        def run(engine):
            own = engine.module.matmul_persistent
            engine.load()
            return os.environ.get("VLLM_USE_BREAKABLE_CUDAGRAPH"), engine.module.matmul_persistent is own
        self.assertEqual(self.result(run, COUNT, edit=[("METADATA", "0.33.0", "0.34.1")]), (None, True))

        def start(engine):
            def refuse(plugin):
                raise engines.Refused("no device")
            own = engine.module.matmul_persistent
            engine.load()
            sys.modules["hgemm.engines._plugin"].Plugin.device = refuse
            engine.module.enable_batch_invariant_mode()
            return [one is own for one in engine.module.registered]
        edit = [("batch_invariant.py", "started = 0", "registered = []\nstarted = 0"),
                ("batch_invariant.py", "    started += 1", "    registered.append(matmul_persistent)\n    started += 1")]
        self.assertEqual(self.result(start, COUNT, edit=edit), [True])

    @staticmethod
    def made(engine, prefix, dtype, configure):
        try:
            engine.layers.LinearBase(8, 8, dtype, configure, prefix)
            return ""
        except engines.Refused as refused:
            return str(refused)


if __name__ == "__main__":
    unittest.main()
