"""Products that gather before or add up after, in processes on the CPU: by gloo, and by memory that they share."""

import logging
import multiprocessing
import os
import sys
import tempfile
import traceback
import unittest
from datetime import timedelta
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch.distributed, overlap: Skipped\nPyTorch is not installed")
    sys.exit(77)
from torch import distributed, nn

if not distributed.is_available() or not distributed.is_gloo_available():
    print("hgemm.torch.distributed, overlap: Skipped\nPyTorch is built without gloo")
    sys.exit(77)

import hgemm.torch.distributed as htd
from hgemm.torch import _peers, _reduce
from overlap_cases import CASES, SHARED, WIDTH, SharedMemory, SymmetricMemory, add, expected_of, product

PROCESSES = 4
#: Ranks of the processes of each group, by its name. Those of 2 are not the first.
GROUPS = {"1": [0], "2": [2, 3], "3": [0, 1, 2], "4": [0, 1, 2, 3]}
#: How ranks exchange: by collectives, or by memory: read by all, added for all, by blocks of rows or columns, halved.
WAYS = {"collectives": {}, "few": {}, "for all": {"WORTH_A_MEETING": -1}, "rows": {"FEW": 0},
        "columns": {"FEW": 0, "LEAST": 0, "ALIGNED": WIDTH}, "many": {"FEW": 0, "HALVED": 0}}
FUNCTIONS = {"gather": htd.all_gather_matmul, "scatter": htd.matmul_reduce_scatter, "all": htd.matmul_all_reduce}


def run(case, group, rank, size):
    """Result, and gradients of x, mat2 and bias."""
    x, mat2, bias, grad = case.operands(size)[rank]
    needed = [each.detach().requires_grad_() for each in (x, mat2, bias) if each is not None]
    y = FUNCTIONS[case.what](needed[0], needed[1], group, bias=needed[2] if bias is not None else None,
                             out_dtype=case.out_dtype)
    y.backward(grad)
    return y.detach(), *(each.grad for each in needed)


def refusals(group, rank, size):
    x, mat2 = torch.ones(4 * size, 16).half(), torch.ones(16, 6).half()
    gather, scatter, both = htd.all_gather_matmul, htd.matmul_reduce_scatter, htd.matmul_all_reduce
    linear = nn.Linear(size * 8 + 1, size * 8 + 1)
    attempts = {
        "rows": lambda: scatter(x[1:], mat2, group),
        "vector": lambda: gather(x[0], mat2, group),
        "number": lambda: both(x[0, 0], mat2, group),
        "mixed": lambda: both(x, mat2.bfloat16(), group),
        "float32": lambda: gather(x.float(), mat2.float(), group),
        "none": lambda: gather(x, None, group),
        "fits": lambda: scatter(x, mat2[1:], group),
        "bias": lambda: scatter(x, mat2, group, bias=torch.ones(5).half()),
        "out_dtype": lambda: both(x, mat2, group, out_dtype=torch.float64),
        "columns": lambda: htd.RowParallelLinear.from_linear(linear, group, order="fast"),
        "outputs": lambda: htd.ColumnParallelLinear.from_linear(linear, group),
        "order": lambda: htd.RowParallelLinear(mat2, None, group, order="slow"),
        "unequal": lambda: htd.ColumnParallelLinear(torch.ones(4 if rank == size - 1 else 3, 8), None, group),
    }
    return {name: refusal(attempt) for name, attempt in attempts.items()}


def refusal(attempt):
    try:
        attempt()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def layers(group, rank, size):
    """A feed-forward block, of whole layers that are alike in all ranks: result, and its weights' gradients."""
    torch.manual_seed(7)
    up, down = nn.Linear(16, 24, dtype=torch.bfloat16), nn.Linear(24, 12, dtype=torch.bfloat16)
    x, grad = torch.randn(12, 2, 16).bfloat16(), torch.randn(12, 2, 12).bfloat16()
    results = [(up, down, x, grad)]
    for scatter in (True, False):
        first = htd.ColumnParallelLinear.from_linear(up, group)
        second = htd.RowParallelLinear.from_linear(down, group, scatter=scatter, order="fast")
        part = x.chunk(size)[rank].clone().requires_grad_()
        y = second(first(part).relu())
        y.backward(grad.chunk(size)[rank] if scatter else grad)
        results.append((y.detach(), part.grad, first.weight.grad, first.bias.grad, second.weight.grad,
                        second.bias.grad))
    return results


def compiled(group, rank, size):
    found = []
    for case in (CASES[1], CASES[7], CASES[13]):
        *operands, grad = case.operands(size)[rank]
        x, mat2, bias = leaves = [each.requires_grad_() for each in operands]
        function = torch.compile(FUNCTIONS[case.what], backend="aot_eager", fullgraph=True)
        y = function(x, mat2, group, bias=bias)
        found.append((case, (y.detach(), *torch.autograd.grad(y, leaves, grad))))
    return found


def once_only(group):
    x = torch.ones(12, 8).half().requires_grad_()
    y = htd.matmul_all_reduce(x, torch.ones(8, 4).half(), group)
    of_x, = torch.autograd.grad(y, x, torch.ones_like(y, requires_grad=True), create_graph=True)
    try:
        of_x.sum().backward()
    except RuntimeError as error:
        return str(error)
    return "nothing was refused"


def agreements(group, rank, size, folder):
    """What all ranks find where the last has less memory: whether they share memory, bytes of the buffers that they
    ask for, MiB of each allocation, how often all met, MiB that stay, and what is said."""
    found, log = {}, logging.getLogger("hgemm.torch.distributed")
    for name, room, meets in (("some", 9 << 20, True), ("none", 0, True), ("no way", 9 << 20, False)):
        last = rank == size - 1
        symmetric = SymmetricMemory(f"{folder}/{name}", size, room if last else 1 << 30, meets or not last)
        with symmetric.in_place(rank), mock.patch.object(_peers, "IN_TURN", 2 << 20), \
                unittest.TestCase().assertLogs(log, logging.DEBUG) as logged:
            space = _peers._Space(group, torch.device("cpu"))
            asked = [space.of(group, mib << 20) for mib in ((2, 3, 9, 16, 17, 5, 1) if space.used else ())]
        said = [(record.levelname, record.getMessage().partition(": ")[2]) for record in logged.records]
        found[name] = (space.used, [peers and peers.bytes >> 20 for peers in asked],
                       [bytes >> 20 for bytes in symmetric.tried], symmetric.met, symmetric.alive() >> 20, said)
    return found


def without_memory(group, rank, size, folder):
    """A product by collectives, since a rank has no memory for its buffer, and as it has to be."""
    symmetric = SymmetricMemory(f"{folder}/product", size, (4 if rank == 0 else 64) << 20)
    x, mat2 = torch.randn(1 << 10, 1 << 10).half(), torch.randn(1 << 10, 8).half()
    with symmetric.in_place(rank), unittest.TestCase().assertLogs("hgemm.torch.distributed"):
        space = _peers._Space(group, torch.device("cpu"))
        with mock.patch.object(_peers, "find", lambda group, _, bytes: space.of(group, bytes)):
            y = htd.all_gather_matmul(x, mat2, group)
    return y, htd.all_gather_matmul(x, mat2, group), symmetric.met


def found_in(name, group, folder):
    rank, size = distributed.get_rank(group), distributed.get_world_size(group)
    shared = SharedMemory(group, f"{folder}/{name}") if size > 1 else None
    found = {}
    for way, constants in WAYS.items():
        memory = None if way == "collectives" else shared
        constants = {"FEW": _reduce.FEW, **constants}
        with mock.patch.object(_peers, "find", lambda *_: memory), mock.patch.multiple(_reduce, **constants):
            found |= {(way, case): run(case, group, rank, size) for case in CASES}
            found["layers"] = layers(group, rank, size)  # of the last
    found["refusals"], found["once"] = refusals(group, rank, size), once_only(group)
    found["transport"] = htd.transport("cpu", group)
    if size > 1:
        found["memory"] = agreements(group, rank, size, f"{folder}/{name}")
        found["without memory"] = without_memory(group, rank, size, f"{folder}/{name}")
    if name == "3":
        found["compiled"] = compiled(group, rank, size)
    return found


def process(rank, folder):
    torch.set_num_threads(1)
    try:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=PROCESSES,
                                       timeout=timedelta(seconds=60))
        groups = {name: distributed.new_group(ranks) for name, ranks in GROUPS.items()}
        found = {name: found_in(name, groups[name], folder) for name, ranks in GROUPS.items() if rank in ranks}
        x = torch.ones(4, 8).half()
        found["default"] = htd.matmul_all_reduce(x, x.t())
        if rank not in GROUPS["2"]:
            found["stranger"] = refusal(lambda: htd.all_gather_matmul(x, x.t(), groups["2"]))
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
        for name, ranks in GROUPS.items():
            os.mkdir(f"{folder}/{name}")
            for rank in ranks:
                with open(f"{folder}/{name}/{rank}", "wb") as file:
                    file.truncate(2 * SHARED)
        processes = [context.Process(target=process, args=(rank, folder), daemon=True) for rank in range(PROCESSES)]
        for each in processes:
            each.start()
        for each in processes:
            each.join(200)
        if codes := [each.exitcode for each in processes if each.exitcode != 0]:
            raise AssertionError(f"processes ended with {codes}")
        found.extend(torch.load(f"{folder}/found{rank}", weights_only=False) for rank in range(PROCESSES))


def of_ranks(name, key):
    return [found[rank][name][key] for rank in GROUPS[name]]


class Forward(unittest.TestCase):
    def assert_bits(self, ours, expected, about):
        self.assertEqual((ours.dtype, ours.shape), (expected.dtype, expected.shape), about)
        self.assertTrue(torch.equal(ours, expected), about)

    def shape_of(self, case, size):
        first, *others = case.rows
        return ({"gather": first * size, "scatter": first // size, "all": first}[case.what], *others, case.n)

    def test_bits(self):
        for name in GROUPS:
            size = int(name)
            for way in WAYS:
                for case in CASES:
                    expected = expected_of(case, size, way)
                    for rank, (y, *_) in enumerate(of_ranks(name, (way, case))):
                        shape = self.shape_of(case, size)
                        self.assert_bits(y, expected[rank].view(shape), (name, way, case, rank))

    def test_order_can_be_seen(self):
        """Sums of the same parts from the last to the first have other bits."""
        case = next(case for case in CASES if case.what == "all" and case.out_dtype and not case.bias)
        total = add([product(x, mat2, None, torch.float32) for x, mat2, _, _ in reversed(case.operands(3))])
        self.assertFalse(torch.equal(total, of_ranks("3", ("few", case))[0][0]))
        torch.testing.assert_close(total, of_ranks("3", ("few", case))[0][0])

    def test_default_group(self):
        for each in found:
            self.assertTrue(torch.equal(each["default"], torch.full((4, 4), 32.0).half()))

    def test_transport(self):
        self.assertEqual({name: {*of_ranks(name, "transport")} for name in GROUPS},
                         {"1": {"none"}, "2": {"collectives"}, "3": {"collectives"}, "4": {"collectives"}})

    def test_without_process_groups(self):
        self.assertFalse(distributed.is_initialized())
        self.assertEqual(htd.transport("cpu"), "none")
        for case in CASES:
            y = run(case, None, 0, 1)
            for ours, expected in zip(y, of_ranks("1", ("collectives", case))[0], strict=True):
                self.assert_bits(ours, expected, case)


class Memory(unittest.TestCase):
    """A rank that has no memory for a buffer keeps no other waiting, and all do without."""

    def test_agreement(self):
        reached, none = ("DEBUG", "the ranks reach each other's memory"), "as a rank has no memory for one"
        for name in ("2", "3", "4"):
            for rank, each in enumerate(of_ranks(name, "memory")):
                last = rank == int(name) - 1
                used, asked, tried, met, alive, said = each["some"]
                self.assertEqual((used, asked, tried), (True, [2, 4, None, None, None, 8, 2], [4, 8, 4, 16, 8]))
                self.assertEqual((met, alive), (4, 24))
                refused = [("DEBUG", "this rank has no 16777216 bytes")] if last else []
                self.assertEqual(said[:-1], [reached, *refused])
                self.assertEqual(said[-1][0], "WARNING")
                self.assertIn("buffers of 16777216 bytes or more, " + none, said[-1][1])
                refused = [("DEBUG", "this rank has no 4194304 bytes")] if last else []
                collectives = ("DEBUG", "collectives, as they have no symmetric memory")
                self.assertEqual(each["none"], (False, [], [4], 0, 0, [*refused, collectives]))
                refused = [("DEBUG", "this rank cannot reach the others")] if last else []
                self.assertEqual(each["no way"], (False, [], [4], 1, 0, [*refused, collectives]))

    def test_turns(self):
        """Calls, and those that graphs capture, use two buffers each in turn, whatever lies between."""
        bytes, found = 256, []
        with tempfile.TemporaryDirectory() as folder:
            symmetric = SymmetricMemory(f"{folder}/turns", 1, 1 << 20)
            with symmetric.in_place(0), mock.patch.object(torch.cuda, "current_stream"), \
                    mock.patch.object(_peers, "capture_of", lambda stream: 7), \
                    mock.patch.object(_peers.Peers, "barrier"):
                peers = _peers.Peers(None, _peers._allocate(torch.device("cpu"), bytes, 1), bytes)
                for capturing in (False, True, False, True, True, False):
                    with mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: capturing), peers.call():
                        found.append(peers._start // bytes)
        self.assertEqual(found, [1, 3, 0, 2, 3, 1])

    def test_collectives(self):
        for name in ("2", "3", "4"):
            for ours, expected, met in of_ranks(name, "without memory"):
                self.assertTrue(torch.equal(ours, expected))
                self.assertEqual(met, 1)


class Backward(unittest.TestCase):
    def test_gradients(self):
        for name in GROUPS:
            size = int(name)
            for case in CASES:
                expected = self.in_float64(case, size)
                for way in WAYS:
                    for rank, result in enumerate(of_ranks(name, (way, case))):
                        for ours, exact in zip(result, expected[rank], strict=True):
                            self.assertEqual(ours.shape, exact.shape)
                            eps = torch.finfo(ours.dtype).eps
                            torch.testing.assert_close(ours.double(), exact, rtol=4 * eps, atol=1e-2 * case.k**0.5,
                                                       msg=lambda text: f"{name}, {way}, {case}, {rank}: {text}")

    def in_float64(self, case, size):
        """Of each rank: the result, and gradients of x, mat2 and bias."""
        leaves = [[None if t is None else t.double().requires_grad_() for t in each[:3]]
                  for each in case.operands(size)]
        grads = [each[3].double() for each in case.operands(size)]
        if case.what == "gather":
            x = torch.cat([each[0] for each in leaves])
            results = [x @ mat2 + (0 if bias is None else bias) for _, mat2, bias in leaves]
            loss = sum((y * grad).sum() for y, grad in zip(results, grads))
        else:
            total = sum(x @ mat2 for x, mat2, _ in leaves)
            if leaves[0][2] is not None:
                total = total + leaves[0][2]
            results = [*total.chunk(size)] if case.what == "scatter" else [total] * size
            grad = torch.cat(grads) if case.what == "scatter" else grads[0]
            loss = (total * grad).sum()
        loss.backward()
        shared = leaves[0][2].grad if case.bias else None  # of a bias that all ranks have
        found = []
        for (x, mat2, bias), y in zip(leaves, results):
            of_bias = () if bias is None else (bias.grad if case.what == "gather" else shared,)
            found.append((y.detach(), x.grad, mat2.grad, *of_bias))
        return found

    def test_layout_of_weights_gradients(self):
        """As of the layer's weight, so that nothing copies them."""
        for case in CASES:
            if case.n * case.k and 0 not in case.rows:
                for name in ("2", "3", "4"):
                    self.assertTrue(of_ranks(name, ("many", case))[0][2].t().is_contiguous(), case)

    def test_layers(self):
        for name in GROUPS:
            size = int(name)
            for rank, (whole, *results) in enumerate(of_ranks(name, "layers")):
                up, down, x, grad = whole
                layers = nn.Sequential(up, nn.ReLU(), down).double()
                layers.zero_grad()
                x = x.double().requires_grad_()
                y = layers(x)
                y.backward(grad.double())
                part = (lambda t, dim=0: t.chunk(size, dim)[rank])
                for scatter, result in zip((True, False), results, strict=True):
                    expected = (part(y) if scatter else y, part(x.grad), part(up.weight.grad), part(up.bias.grad),
                                part(down.weight.grad, 1), down.bias.grad)
                    for ours, exact in zip(result, expected, strict=True):
                        torch.testing.assert_close(ours.double(), exact, rtol=0.03, atol=0.1)

    def test_compiled(self):
        for rank, each in enumerate(of_ranks("3", "compiled")):
            for case, result in each:
                for ours, expected in zip(result, of_ranks("3", ("collectives", case))[rank], strict=True):
                    self.assertTrue(torch.equal(ours, expected), case)

    def test_only_once(self):
        for name in GROUPS:
            for said in of_ranks(name, "once"):
                self.assertIn("once_differentiable", said)


class Refusals(unittest.TestCase):
    def test_arguments(self):
        half = "torch.float16"
        for name in ("2", "3", "4"):
            features = int(name) * 8 + 1
            expected = {
                "rows": f"ValueError: x: its first dimension is {4 * int(name) - 1}, must be a multiple of the {name} "
                        "ranks",
                "vector": "ValueError: x: 1 dimensions, must be 2 or more",
                "number": "ValueError: x: 0 dimensions, must be 1 or more",
                "mixed": f"TypeError: mat2: is torch.bfloat16, must be {half} as x",
                "float32": f"TypeError: x: is torch.float32, must be {half} or torch.bfloat16",
                "none": "TypeError: mat2: is None, must be a torch.Tensor",
                "fits": f"ValueError: mat2: its shape (15, 6) does not fit that of x, ({4 * int(name)}, 16)",
                "bias": "ValueError: bias: its shape is (5,), must be (6,)",
                "out_dtype": f"TypeError: out_dtype: is torch.float64, must be {half} or torch.float32",
                "columns": f"ValueError: linear: in_features is {features}, must be {name} times a whole number",
                "outputs": f"ValueError: linear: out_features is {features}, must be {name} times a whole number",
                "order": "ValueError: order: 'slow', must be one of tree, fast",
                "unequal": "ValueError: weight: is (3, 8) of torch.float32 without bias in rank 0, and (4, 8) of "
                           f"torch.float32 without bias in rank {int(name) - 1}, must be alike",
            }
            for said in of_ranks(name, "refusals"):
                self.assertEqual(said, expected)

    def test_groups(self):
        for rank in (0, 1):
            self.assertEqual(found[rank]["stranger"], "ValueError: group: this process is none of its ranks")


if __name__ == "__main__":
    unittest.main()
