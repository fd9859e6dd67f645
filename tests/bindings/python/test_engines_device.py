"""The plug-ins on CUDA tensors. Needs a GPU, or the virtual driver with its runtime in LD_PRELOAD.

The engines' places are taken by packages that are laid out as these are, whose kernel is not batch-invariant. Tensors
are made and compared on the CPU, since the virtual driver runs no kernel of PyTorch's.
"""

import logging
import os
import sys
import unittest
from pathlib import Path

try:
    import torch
except ModuleNotFoundError:
    print("plug-ins for engines on a device: Skipped\nPyTorch is not installed")
    sys.exit(77)
if not torch.backends.cuda.is_built() or not torch.cuda.is_available():
    print("plug-ins for engines on a device: Skipped\nPyTorch finds no CUDA device")
    sys.exit(77)

FAKES = Path(__file__).parent / "engines/fakes"
os.environ |= {"HGEMM_ENGINE": "batch-invariant", "VLLM_BATCH_INVARIANT": "1"}
sys.path[:0] = [str(FAKES / "vllm"), str(FAKES)]
from hgemm.engines import counts, vllm  # noqa: E402
from planted import split_by_rows  # noqa: E402
from vllm.model_executor.determinism import batch_invariant as module  # noqa: E402
from vllm.model_executor.layers.linear import LinearBase  # noqa: E402

LINES = []
handler = logging.Handler()
handler.emit = lambda record: LINES.append(record.getMessage())
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.INFO)


def setUpModule():
    vllm.load()
    module.init_batch_invariance()


def random(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)


def differing(product, k=320):
    """Of some numbers of rows: how many give a row other bits than all rows together."""
    a, weight = random(40, k), random(24, k, seed=2)
    whole = product(a, weight).view(torch.int16)
    return sum(bool((product(a[:m], weight).view(torch.int16) != whole[:m]).any()) for m in (1, 3, 7, 8, 13, 32))


def on_device(function):
    return lambda *tensors: function(*(tensor.cuda() for tensor in tensors)).cpu()


class Device(unittest.TestCase):
    def test_rows(self):
        self.assertGreater(differing(lambda a, weight: split_by_rows(a, weight.t())), 0)
        self.assertEqual(differing(on_device(lambda a, weight: module.matmul_persistent(a, weight.t()))), 0)
        self.assertEqual(differing(on_device(module.linear_batch_invariant)), 0)
        self.assertEqual(differing(on_device(lambda a, weight: module.bmm_batch_invariant(
            a[None], weight.t()[None])[0])), 0)

    def test_results(self):
        x, weight, bias = random(3, 5, 64), random(24, 64, seed=2), random(24, seed=3)
        exact = x.double() @ weight.double().t() + bias.double()
        d = module.linear_batch_invariant(x.cuda(), weight.cuda(), bias.cuda())
        torch.testing.assert_close(d.cpu().double(), exact, rtol=2.0**-8, atol=2.0**-6)
        out = torch.empty(2, 5, 24, dtype=torch.bfloat16).cuda()
        a, b = random(2, 5, 64), random(2, 64, 24, seed=2)
        self.assertIs(module.bmm_batch_invariant(a.cuda(), b.cuda(), out=out), out)
        torch.testing.assert_close(out.cpu().double(), a.double() @ b.double(), rtol=2.0**-8, atol=2.0**-6)
        self.assertEqual(module.matmul_persistent(a[0, :0].cuda(), b[0].cuda()).shape, (0, 24))

    def test_one_graph_for_all_rows(self):
        layer, graphs = LinearBase(320, 24, torch.bfloat16), []

        def backend(graph, inputs):
            graphs.append(graph)
            return graph.forward
        layer.weight.data = layer.weight.data.cuda()
        compiled = torch.compile(lambda x: layer(x), backend=backend, fullgraph=True, dynamic=True)
        a = random(40, 320)
        whole = compiled(a.cuda()).cpu()
        for m in (8, 3, 17):
            self.assertTrue(torch.equal(compiled(a[:m].cuda()).cpu(), whole[:m]))
        self.assertEqual(len(graphs), 1)
        self.assertEqual(sum("hgemm.gemm" in str(node.target) for node in graphs[0].graph.nodes), 1)

    def test_line_names_the_kernels(self):
        """Also where the library serves a GPU by kernels that are not its own, such as sm80's."""
        (line,) = [line for line in LINES if "libhgemm computes" in line]
        emulated = os.environ.get("EMU_ARCH", "").replace("_", "")
        self.assertRegex(line, f"by its kernels for {emulated or 'sm[0-9]+'}, strictly")
        self.assertEqual(counts(), {})


if __name__ == "__main__":
    unittest.main()
