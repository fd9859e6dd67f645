"""The plug-in for SGLang, with a small package in its place: what differs from test_engines.py, which has vLLM's."""

import importlib
import sys
import unittest
from pathlib import Path

try:
    import torch
except ModuleNotFoundError:
    print("plug-in for SGLang: Skipped\nPyTorch is not installed")
    sys.exit(77)

import hgemm.torch  # noqa: F401  before processes are forked

sys.path.insert(0, str(Path(__file__).parent / "engines"))
from in_process import COUNT, Case  # noqa: E402


class Sglang(Case):
    engine = "sglang"

    def test_replaced(self):
        def run(engine):
            engine.pretend_device()
            package = importlib.import_module("sglang.srt.batch_invariant_ops")
            own = package.matmul_persistent
            engine.start()
            return package.matmul_persistent is engine.module.matmul_persistent is not own, engine.log.lines
        replaced, (line,) = self.result(run)
        self.assertTrue(replaced)
        self.assertIn("sglang 0.5.23", line)
        self.assertIn("matmul_persistent in srt.batch_invariant_ops, srt.batch_invariant_ops.batch_invariant_ops", line)

    def test_result_in_float32(self):
        def run(engine):
            a, b = torch.ones(4, 8, dtype=torch.bfloat16), torch.ones(8, 4, dtype=torch.bfloat16)
            graphs = []
            matmul = engine.load().matmul_persistent

            def backend(graph, inputs):
                graphs.append(graph)
                return lambda *_: (torch.zeros(4, 4),)
            torch.compile(lambda x, y: matmul(x, y, out_dtype=torch.float32), backend=backend, fullgraph=True)(a, b)
            return [node.args[7] for node in graphs[0].graph.nodes if "hgemm.gemm" in str(node.target)]
        self.assertEqual(self.result(run), [torch.float32])

    def test_result_in_another_type(self):
        """The planted kernel converts; the library has none of float16 for operands of bfloat16."""
        def run(engine):
            a, out = torch.ones(2, 4, 4, dtype=torch.bfloat16), torch.zeros(2, 4, 4, dtype=torch.float16)
            engine.load().bmm_batch_invariant(a, a, out=out)
            return float(out[0, 0, 0])
        self.assertIn("bmm_batch_invariant of sglang is not served by libhgemm: the result is to be torch.float16",
                      self.refused(run))
        self.assertEqual(self.result(run, COUNT), 4.0)

    def test_refusals_end_the_process(self):
        """SGLang goes on where a plug-in raises an exception."""
        def run(engine):
            importlib.import_module("sglang.srt.plugins").load_plugins()
            return engine.module.matmul_persistent.__code__.co_filename
        edit = [("METADATA", "0.5.23", "0.6.0")]
        self.assertIn("hgemm: sglang 0.6.0 is not known, 0.5.23 are", self.refused(run, kind="SystemExit", edit=edit))
        self.assertIn("batch_invariant_ops", self.result(run, COUNT, edit=edit))
        edit = [("batch_invariant_ops.py", "def matmul_persistent(", "def matmul(")]  # its package imports that
        self.assertIn("cannot be imported: cannot import name 'matmul_persistent'",
                      self.refused(run, kind="SystemExit", edit=edit))
        self.assertIn("hgemm", self.result(run))

    def test_layer(self):
        def run(engine):
            engine.pretend_device()
            engine.start()
            engine.layers.LinearBase(8, 8, torch.bfloat16, lambda layer: type("Fp8LinearMethod", (), {})(), "model.o")
        self.assertIn("layer model.o of sglang", self.refused(run))


if __name__ == "__main__":
    unittest.main()
