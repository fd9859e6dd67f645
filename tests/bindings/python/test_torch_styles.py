"""ColwiseParallel and RowwiseParallel for torch's parallelize_module(), in processes on the CPU, beside torch's own."""

import copy
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import traceback
import unittest
from datetime import timedelta
from itertools import product
from pathlib import Path
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch.distributed, styles: Skipped\nPyTorch is not installed")
    sys.exit(77)
from torch import distributed, nn

if not distributed.is_available() or not distributed.is_gloo_available():
    print("hgemm.torch.distributed, styles: Skipped\nPyTorch is built without gloo")
    sys.exit(77)
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import parallelize_module

import hgemm.torch.distributed as htd
from style_cases import CASES, OF, PLANS, WIDTH, Block, FeedForward, exact, part_of, plan_of, run

SOURCE = Path(os.environ.get("HGEMM_SOURCE", Path(__file__).parents[3]))
PROCESSES = 4
SIZES = (1, 2, 4)


def block(sequence, dtype=torch.bfloat16):
    """Alike in all ranks, with its input and its target."""
    torch.manual_seed(5)
    whole, x, target = Block(1 if sequence is None else sequence), torch.randn(4, 4, WIDTH), torch.randn(4, 4, WIDTH)
    with torch.no_grad():
        for each in whole.parameters():
            each.add_(torch.randn_like(each) / 8)
    return whole.bfloat16().to(dtype), x.bfloat16().to(dtype), target.bfloat16().to(dtype)


def error(ours, wanted):
    return ((ours.double() - wanted.double()).norm() / wanted.double().norm()).item()


def state_of(model):
    return {name: each.full_tensor() if isinstance(each, DTensor) else each.clone()
            for name, each in model.state_dict().items()}


def train(model, x, target, layout, mesh, steps=3):
    """Results and the input's gradients of each step, gradients of the first, parameters after the last."""
    optimizer, found = torch.optim.AdamW(model.parameters(), lr=0.02), []
    x, target = part_of(x, layout, mesh), part_of(target, layout, mesh)
    for step in range(steps):
        x = x.detach().requires_grad_()
        y = model(x)
        y.backward(y.detach() - target)  # of half of the sum of squares
        found.append((y.detach(), x.grad))
        if step == 0:
            grads = {name: each.grad.full_tensor() if isinstance(each.grad, DTensor) else each.grad.clone()
                     for name, each in model.named_parameters()}
        optimizer.step()
        optimizer.zero_grad()
    return found, grads, state_of(model)


def blocks(mesh):
    found = {}
    for sequence, gathered in PLANS:
        layout = Replicate() if sequence is None else Shard(sequence)
        for name, styles in OF.items():
            model, x, target = block(sequence)
            before = state_of(model)
            parallelize_module(model, mesh, plan_of(styles, sequence, gathered))
            same = {key: torch.equal(each, before[key]) for key, each in state_of(model).items()}
            placed = {key: str(each.placements) for key, each in model.named_parameters() if isinstance(each, DTensor)}
            found[sequence, gathered, name] = (same, placed, train(model, x, target, layout, mesh))
    return found


def states(mesh):
    """A checkpoint's whole state, loaded to another model; copies; what torch.compile traces."""
    torch.manual_seed(1)
    whole = FeedForward().bfloat16()
    torch.manual_seed(2)
    other = FeedForward().bfloat16()
    for model in (whole, other):
        parallelize_module(model, mesh, {"w[13]": htd.ColwiseParallel(input_layouts=Shard(0)),
                                         "w2": htd.RowwiseParallel(output_layouts=Shard(0))})
    options = StateDictOptions(full_state_dict=True)
    state = get_model_state_dict(whole, options=options)
    set_model_state_dict(other, copy.deepcopy(state), options=options)
    x = torch.ones(4, WIDTH).bfloat16()
    y = whole(x)
    copied = copy.deepcopy(whole)
    with torch.no_grad():
        copied.w2.bias.add_(1)
    compiled = torch.compile(whole, backend="aot_eager", fullgraph=True)
    leaves = [x.clone().requires_grad_() for _ in range(2)]
    results = [model(leaf) for model, leaf in zip((whole, compiled), leaves)]
    for result in results:
        result.sum().backward()
    return {"state": {name: each.shape for name, each in state.items()}, "loaded": torch.equal(other(x), y),
            "copied": torch.allclose(copied(x), y + 1, rtol=0.02), "repeated": torch.equal(whole(x), y),
            "compiled": torch.equal(*results) and error(leaves[1].grad, leaves[0].grad) < 0.01,
            "text": str(whole.w1)}


def with_fsdp(mesh):
    """Of two ranks that divide the batch and two that divide the layers: the result and gradients."""
    model, x, target = block(1)
    parallelize_module(model, mesh["tp"], plan_of(htd, 1, False))
    fully_shard(model, mesh=mesh["dp"])
    rows, layout = slice(2 * mesh["dp"].get_local_rank(), 2 * mesh["dp"].get_local_rank() + 2), Shard(1)
    found, grads, _ = train(model, x[rows], target[rows], layout, mesh["tp"], 1)
    return rows, found[0][0], grads


def example():
    """That of the page, on the CPU: how near its result is to float64."""
    page = (SOURCE / "bindings/python/DISTRIBUTED.md").read_text(encoding="utf-8")
    text, = (each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "parallelize_module" in each)
    names = {}
    with mock.patch.dict(os.environ, WORLD_SIZE=str(PROCESSES)):
        exec(text.replace('"cuda"', '"cpu"'), names)
    x, y, state = names["x"].double(), names["y"].detach(), state_of(names["mlp"])
    whole = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).double()
    whole.load_state_dict(state)
    return y.shape, error(y, whole(x).detach())


class OwnForward(nn.Linear):
    def forward(self, input):
        return super().forward(input)


def refusals(mesh, mesh_2d, sub):
    size, both = mesh.size(), (htd.ColwiseParallel, htd.RowwiseParallel)
    half = {"dtype": torch.bfloat16}

    def apply(module, style, over=mesh):
        return parallelize_module(module, over, style)

    def call(x, style, module=None, dtype=torch.bfloat16):
        return apply(nn.Linear(16, 24, dtype=dtype) if module is None else module, style)(x)

    uneven = distribute_tensor(torch.ones(4 * size + 1, 16, **half), mesh, [Shard(0)])
    elsewhere = distribute_tensor(torch.ones(4, 16, **half), sub, [Replicate()])
    parametrized = nn.utils.parametrizations.weight_norm(nn.Linear(16, 24))
    twice = apply(nn.Linear(16, 24), both[0]())
    x = torch.ones(4, 16, **half)
    attempts = {
        "layout": lambda: both[0](input_layouts=0), "embedding": lambda: apply(nn.Embedding(8, 8), both[1]()),
        "own forward": lambda: apply(OwnForward(16, 24), both[0]()), "twice": lambda: apply(twice, both[0]()),
        "parametrized": lambda: apply(parametrized, both[1]()),
        "mesh": lambda: apply(nn.Linear(16, 24), both[0](), mesh_2d),
        "outputs": lambda: apply(nn.Linear(16, 24 + 1), both[0]()),
        "inputs": lambda: apply(nn.Linear(16 + 1, 24), both[1]()),
        "last": lambda: both[1](output_layouts=Shard(-1)), "partial": lambda: both[1](output_layouts=Partial()),
        "last of two": lambda: call(x[:, :16 // size], both[1](output_layouts=Shard(1))),
        "float32": lambda: call(x.float(), both[0](input_layouts=Shard(0)), dtype=torch.float32),
        "float32, replicated": lambda: call(x.float(), both[0](), dtype=torch.float32),
        "float32, added": lambda: call(x[:, :16 // size].float(), both[1](), dtype=torch.float32),
        "mixed": lambda: call(x, both[0](input_layouts=Shard(0)), dtype=torch.float16),
        "bias": lambda: call(x[:, :16 // size], both[1](), _with_double_bias()),
        "features": lambda: call(x[:, 1:], both[0]()), "none": lambda: call(None, both[0]()),
        "number": lambda: call(torch.tensor(1.0), both[0]()),
        "dimension": lambda: call(x, both[0](input_layouts=Shard(2))),
        "uneven": lambda: call(uneven, both[0]()),
        "rows": lambda: call(x[:3, :16 // size], both[1](output_layouts=Shard(0))),
        "elsewhere": lambda: call(elsewhere, both[0]()),
    }
    return {name: refusal(attempt).replace(str(mesh), "<mesh>").replace(str(sub), "<other mesh>")
            for name, attempt in attempts.items()}


def _with_double_bias():
    linear = nn.Linear(16, 24, dtype=torch.bfloat16)
    linear.bias = nn.Parameter(linear.bias.double())
    return linear


def refusal(attempt):
    try:
        attempt()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def process(rank, folder):
    torch.set_num_threads(1)
    logging.getLogger("torch.distributed").setLevel(logging.ERROR)  # that gloo has no all-to-all
    try:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=PROCESSES,
                                       timeout=timedelta(seconds=120))
        meshes = {size: init_device_mesh("cpu", (PROCESSES // size, size), mesh_dim_names=("dp", "tp"))
                  for size in SIZES}
        found = {}
        for size, mesh in meshes.items():
            found[size] = {(key, name): run(case, styles, mesh["tp"])
                           for key, case in CASES.items() for name, styles in OF.items()}
            found[size]["blocks"] = blocks(mesh["tp"])
        found["states"], found["fsdp"] = states(meshes[4]["tp"]), with_fsdp(meshes[2])
        found["example"] = example()
        found["refusals"] = refusals(meshes[4]["tp"], meshes[2], meshes[2]["tp"])
        torch.save(found, f"{folder}/found{rank}")
        distributed.barrier()
        distributed.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # not waiting for others


found = []  # by process


def setUpModule():
    """Forked before this process has threads."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, GLOO_SOCKET_IFNAME="lo"):
        processes = [context.Process(target=process, args=(rank, folder), daemon=True) for rank in range(PROCESSES)]
        for each in processes:
            each.start()
        for each in processes:
            each.join(300)
        if codes := [each.exitcode for each in processes if each.exitcode != 0]:
            raise AssertionError(f"processes ended with {codes}")
        found.extend(torch.load(f"{folder}/found{rank}", weights_only=False) for rank in range(PROCESSES))


def ranks_of(size):
    """Of the first group of so many ranks: what each has found."""
    return [found[rank][size] for rank in range(size)]


class Layers(unittest.TestCase):
    def assert_near(self, ours, wanted, dtype, about):
        self.assertEqual(ours.shape, wanted.shape, about)
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(ours.double(), wanted, rtol=4 * eps, atol=16 * eps,
                                   msg=lambda text: f"{about}: {text}")

    def test_results(self):
        """In the form of those of torch's style, and near float64."""
        def part(whole, layout):
            return whole.chunk(size, layout.dim)[rank] if isinstance(layout, Shard) else whole

        for size, (key, case) in product(SIZES, CASES.items()):
            y, of_x, of_parameters = exact(case)
            for rank, each in enumerate(ranks_of(size)):
                about = (size, rank, key)
                how, ours, ours_of_x, parameters = each[key, "ours"]
                how_by_torch, *_, parameters_by_torch = each[key, "torch's"]
                self.assertEqual(how, how_by_torch, about)
                self.assert_near(ours, part(y, case.layout("output")), case.dtype, about)
                self.assert_near(ours_of_x, part(of_x, case.given or case.layout("input")), case.dtype, about)
                self.assertEqual(parameters.keys(), of_parameters.keys())
                for name, (placed, own, grad_placed, grad) in parameters.items():
                    placed_by_torch, own_by_torch, grad_placed_by_torch, _ = parameters_by_torch[name]
                    self.assertEqual((placed, grad_placed), (placed_by_torch, grad_placed_by_torch), about)
                    self.assertTrue(torch.equal(own, own_by_torch), about)
                    self.assert_near(grad, of_parameters[name], case.dtype, (name, about))


class Blocks(unittest.TestCase):
    """Attention and a feed-forward layer, by layouts as programs have them."""

    def error(self, parts, wanted, layout):
        """Of all ranks' parts."""
        whole = torch.cat(parts, layout.dim) if isinstance(layout, Shard) else parts[0]
        self.assertEqual(whole.shape, wanted.shape)
        return error(whole, wanted)

    def test_parameters(self):
        """Placed as by torch's styles; whole, they are those of the model."""
        for size in SIZES:
            for each in ranks_of(size):
                for plan in PLANS:
                    same, placed, _ = each["blocks"][*plan, "ours"]
                    self.assertEqual(placed, each["blocks"][*plan, "torch's"][1])
                    self.assertTrue(all(same.values()), same)

    def test_training(self):
        """Three steps, beside float64. Of the first, results are as near as those of torch's styles."""
        for sequence, gathered in PLANS:
            layout = Replicate() if sequence is None else Shard(sequence)
            steps, grads, state = train(*block(sequence, torch.float64), Replicate(), None)
            for size in SIZES:
                about, first = (sequence, gathered, size), {}
                for name in OF:
                    ranks = [each["blocks"][sequence, gathered, name][2] for each in ranks_of(size)]
                    errors = [[self.error([found_here[step][i] for found_here, *_ in ranks], wanted[i], layout)
                               for i in (0, 1)] for step, wanted in enumerate(steps)]
                    first[name] = errors[0]
                    self.assertLess(max(sum(errors, [])), 0.06, (name, about))
                    for of_rank in ranks:
                        self.assertTrue(all(torch.equal(of_rank[2][key], ranks[0][2][key]) for key in state), about)
                    for key, wanted in grads.items():
                        self.assertLess(error(ranks[0][1][key], wanted), 0.015, (name, key, about))
                    ours, wanted = (torch.cat([each[key].flatten() for key in state]) for each in (ranks[0][2], state))
                    self.assertLess(error(ours, wanted), 0.02, (name, about))
                self.assertLess(first["ours"][0], 1.05 * first["torch's"][0], about)
                self.assertLess(first["ours"][1], 0.01, about)

    def test_states(self):
        shapes = {name: each.shape for name, each in FeedForward().state_dict().items()}
        for each in found:
            state = each["states"]
            for what in ("loaded", "copied", "repeated", "compiled"):
                self.assertTrue(state[what], what)
            self.assertEqual((state["state"], state["text"]),
                             (shapes, "Linear(in_features=32, out_features=48, bias=True)"))

    def test_example(self):
        for each in found:
            shape, distance = each["example"]
            self.assertEqual(shape, (256, 512))
            self.assertLess(distance, 0.006)

    def test_fsdp(self):
        """On a mesh of two dimensions. Ranks of data take the mean of their gradients."""
        ((y, _),), grads, _ = train(*block(1, torch.float64), Replicate(), None, 1)
        for rank, (rows, result, found_grads) in enumerate(each["fsdp"] for each in found):
            self.assertLess(error(result, y[rows].chunk(2, 1)[rank % 2]), 0.005)
            self.assertEqual(found_grads.keys(), grads.keys())
            for key, grad in grads.items():
                self.assertLess(error(found_grads[key], grad / 2), 0.015, key)


class Refusals(unittest.TestCase):
    def test_arguments(self):
        features, not_half = "in_features=16, out_features=24, bias=True)", "must be torch.float16 or torch.bfloat16"
        own = f"{features} has a forward() of its own, must have that of torch.nn.Linear"
        sums = "must be Replicate() or Shard of a dimension before the last"
        expected = {
            "layout": "TypeError: input_layouts: is 0, must be a torch.distributed.tensor.Placement",
            "embedding": "TypeError: module: is Embedding(8, 8), must be a torch.nn.Linear",
            "own forward": f"TypeError: module: OwnForward({own}", "twice": f"TypeError: module: Linear({own}",
            "parametrized": "TypeError: module: ParametrizedLinear has the parameters bias, must have weight and bias, "
                            "or weight alone",
            "mesh": "ValueError: device_mesh: has 2 dimensions, must have 1; take a part such as mesh['tp']",
            "outputs": "ValueError: module: out_features of Linear(in_features=16, out_features=25, bias=True) is 25, "
                       "must be a multiple of the 4 ranks",
            "inputs": "ValueError: module: in_features of Linear(in_features=17, out_features=24, bias=True) is 17, "
                      "must be a multiple of the 4 ranks",
            "last": f"ValueError: output_layouts: is Shard(dim=-1), {sums}",
            "partial": f"ValueError: output_layouts: is {Partial()!r}, {sums}",
            "last of two": f"ValueError: output_layouts: is Shard(dim=1), {sums}",
            "float32": f"TypeError: input: is torch.float32, {not_half}",
            "float32, replicated": f"TypeError: input: is torch.float32, {not_half}",
            "float32, added": f"TypeError: input: is torch.float32, {not_half}",
            "mixed": "TypeError: weight: is torch.float16, must be torch.bfloat16 as input",
            "bias": "TypeError: bias: is torch.float64, must be torch.bfloat16 or torch.float32",
            "features": "ValueError: input: its last dimension is 15 in all ranks together, must be 16 as in_features "
                        f"of Linear({features}",
            "none": "TypeError: input: is None, must be a torch.Tensor",
            "number": "ValueError: input: 0 dimensions, must be 1 or more",
            "dimension": "ValueError: input_layouts: is Shard(dim=2), must be of one of the tensor's 2 dimensions",
            "uneven": "ValueError: input: its dimension 0 is 17, must be a multiple of the 4 ranks",
            "rows": "ValueError: input: its dimension 0 is 3, must be a multiple of the 4 ranks",
            "elsewhere": "ValueError: input: is a DTensor of <other mesh>, must be of <mesh>",
        }
        for each in found:
            self.assertEqual(each["refusals"], expected)


class Imports(unittest.TestCase):
    def test_lazily(self):
        """torch.distributed.tensor takes seconds."""
        text = ("import sys, hgemm.torch, hgemm.torch.distributed as d; assert 'ColwiseParallel' in d.__all__; "
                "before = 'torch.distributed.tensor' in sys.modules; d.ColwiseParallel; "
                "print(before, 'torch.distributed.tensor' in sys.modules, hasattr(d, 'Colwise'))")
        said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        self.assertEqual(said.stdout, "False True False\n", said.stderr)


if __name__ == "__main__":
    unittest.main()
