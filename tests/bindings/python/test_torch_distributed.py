"""hgemm.torch.distributed: processes on the CPU that hold parts of K, against one process and against float64."""

import multiprocessing
import os
import sys
import tempfile
import traceback
import unittest
from datetime import timedelta
from math import log2
from typing import NamedTuple
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch.distributed: Skipped\nPyTorch is not installed")
    sys.exit(77)
from torch import distributed, nn

if not distributed.is_available() or not distributed.is_gloo_available():
    print("hgemm.torch.distributed: Skipped\nPyTorch is built without gloo")
    sys.exit(77)

import hgemm
import hgemm.torch as ht
import hgemm.torch.distributed as htd
from hgemm.torch import _peers, _reduce, _tree_reduce
from overlap_cases import SHARED, SharedMemory

HALF = (torch.float16, torch.bfloat16)
PROCESSES = 8
#: Ranks of the processes of each group, by its name. Those of 4 are not the first.
GROUPS = {"1": [0], "2": [0, 1], "4": [4, 5, 6, 7], "8": [*range(8)], "3": [0, 1, 2]}
SIZES = ("1", "2", "4", "8")
SPARED = (-1, 1 << 30)


class Case(NamedTuple):
    dtype: torch.dtype
    rows: tuple = (6,)
    n: int = 24
    k: int = 8192
    bias: torch.dtype | None = None
    out_dtype: torch.dtype | None = None
    scatter: bool = False
    scale: float = 1  # of x

    def operands(self):
        """The whole x, weight, bias and gradient, alike in all processes."""
        generator = torch.Generator().manual_seed(self.k + self.n + len(self.rows))
        def random(*shape):
            return torch.randn(*shape, generator=generator)
        bias = random(self.n).to(self.bias) if self.bias else None
        return ((random(*self.rows, self.k) * self.scale).to(self.dtype), random(self.n, self.k).to(self.dtype), bias,
                random(*self.rows, self.n).to(self.out_dtype or self.dtype))


FORWARD = [case for dtype in HALF for case in (
    Case(dtype), Case(dtype, bias=dtype), Case(dtype, bias=torch.float32), Case(dtype, out_dtype=torch.float32),
    Case(dtype, (1,), 33, bias=dtype), Case(dtype, (5,), 7, 4096, bias=dtype), Case(dtype, (0,)),
    Case(dtype, (2, 3), 10, 4608, bias=dtype), Case(dtype, (16,), 9, bias=dtype, scatter=True),
    Case(dtype, (8, 3), 5, scatter=True),
    Case(dtype, (8,), 5, 16384, torch.float32, torch.float32, True))]
FORWARD += [Case(torch.float16, scale=2.0**9), Case(torch.float16, scale=2.0**-22),  # sums become infinite; subnormal
            Case(torch.bfloat16, scale=2.0**-134), Case(torch.bfloat16, scale=2.0**121)]
BACKWARD = [case for dtype in HALF for case in (Case(dtype, (48,), 1056, 4096, dtype),
                                                Case(dtype, (2, 4), 20, bias=dtype),
                                                Case(dtype, (16,), 20, bias=dtype, scatter=True),
                                                Case(dtype, (0,), 20, bias=dtype, scatter=True))]

COMPILED = BACKWARD[1]


def part_of(whole, rank, size):
    """Its last dimension's."""
    return whole.chunk(size, -1)[rank].contiguous()


def share_of(whole, case, rank, size):
    return whole.chunk(size)[rank] if case.scatter else whole


def forward(case, group, rank, size):
    x, weight, bias, _ = case.operands()
    return htd.row_parallel_linear(part_of(x, rank, size), part_of(weight, rank, size), bias, group,
                                   out_dtype=case.out_dtype, scatter=case.scatter)


def backward(case, group, rank, size):
    """Result, and gradients of x, weight and bias."""
    x, weight, bias, grad = case.operands()
    linear = nn.Linear(case.k, case.n, dtype=case.dtype)
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    layer = htd.RowParallelLinear.from_linear(linear, group, scatter=case.scatter)
    x = part_of(x, rank, size).requires_grad_()
    y = layer(x)
    y.backward(share_of(grad, case, rank, size))
    return y.detach(), x.grad, layer.weight.grad, layer.bias.grad


def add_in_a_row(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def refusals(group, rank, size):
    """What is said to wrong calls. None of them may leave a rank waiting for others."""
    x, weight = torch.ones(8, 512).half(), torch.ones(4, 512).half()
    call = htd.row_parallel_linear
    attempts = {
        "short": lambda: call(x[:, :448], weight[:, :448], group=group),
        "odd": lambda: call(torch.ones(8, 544).half(), torch.ones(4, 544).half(), group=group),
        "float32": lambda: call(x.float(), weight.float(), group=group),
        "mixed": lambda: call(x, weight.bfloat16(), group=group),
        "device": lambda: call(x, weight.to("meta"), group=group),
        "bias": lambda: call(x, weight, torch.ones(5).half(), group=group),
        "bias_dtype": lambda: call(x, weight, torch.ones(4).double(), group=group),
        "none": lambda: call(x, None, group=group),
        "fits": lambda: call(x[:, :448], weight, group=group),
        "out_dtype": lambda: call(x, weight, group=group, out_dtype=torch.float64),
        "rows": lambda: call(x[:5], weight, group=group, scatter=True),
        "vector": lambda: call(x[0], weight, group=group, scatter=True),
        "in_features": lambda: htd.RowParallelLinear.from_linear(nn.Linear(size * 512 + 1, 4), group),
        "columns": lambda: htd.RowParallelLinear(torch.ones(4, 320), None, group),
        # Cut unequally: the last rank has more.
        "unequal": lambda: htd.RowParallelLinear(torch.ones(4, 576 if rank == size - 1 else 512), None, group),
        "biases": lambda: htd.RowParallelLinear(weight, torch.ones(4) if rank else None, group),
    }
    return {name: refusal(attempt) for name, attempt in attempts.items()}


def refusal(attempt):
    try:
        attempt()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def compiled(group, rank, size):
    """Result, and gradients of x and weight, with no call outside the graph."""
    x, weight, bias, grad = COMPILED.operands()
    x, weight = part_of(x, rank, size).requires_grad_(), part_of(weight, rank, size).requires_grad_()
    function = torch.compile(htd.row_parallel_linear, backend="aot_eager", fullgraph=True)
    y = function(x, weight, bias, group)
    return y.detach(), *torch.autograd.grad(y, (x, weight), grad)


def once_only(group, rank, size):
    """A gradient of a gradient is refused, not wrong."""
    x = torch.ones(2, 512).half().requires_grad_()
    y = htd.row_parallel_linear(x, torch.ones(4, 512).half(), group=group)
    of_x, = torch.autograd.grad(y, x, torch.ones_like(y, requires_grad=True), create_graph=True)
    try:
        of_x.sum().backward()
    except RuntimeError as error:
        return str(error)
    return "nothing was refused"


def by_memory(group, folder):
    """Results by memory that the processes share, of which each reads all or adds a part for all, by how many bytes that
    is to spare."""
    rank, size = distributed.get_rank(group), distributed.get_world_size(group)
    memory, found = SharedMemory(group, folder), {}
    with mock.patch.object(_peers, "find", lambda *_: memory):
        for bytes in SPARED:
            with mock.patch.object(_reduce, "WORTH_A_MEETING", bytes):
                found |= {(bytes, case): forward(case, group, rank, size) for case in FORWARD}
    return found


def found_in(name, group, folder):
    rank, size = distributed.get_rank(group), distributed.get_world_size(group)
    if name == "3":
        return {"odd size": refusal(lambda: forward(FORWARD[0], group, rank, size))}
    found = {case: forward(case, group, rank, size) for case in FORWARD}
    found |= {("gradients", case): backward(case, group, rank, size) for case in BACKWARD}
    if size > 1:
        found |= by_memory(group, f"{folder}/memory{name}")
        found["refusals"] = refusals(group, rank, size)
    if name == "4":
        with mock.patch.object(_tree_reduce, "add_pairwise", add_in_a_row):
            found["in a row"] = forward(FORWARD[3], group, rank, size)
        found["compiled"], found["once"] = compiled(group, rank, size), once_only(group, rank, size)
    return found


def process(rank, folder):
    torch.set_num_threads(1)
    path = f"{folder}/{rank}"
    try:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=PROCESSES,
                                       timeout=timedelta(seconds=90))
        groups = {name: distributed.new_group(ranks) for name, ranks in GROUPS.items()}
        found = {name: found_in(name, groups[name], folder) for name, ranks in GROUPS.items() if rank in ranks}
        found["default"] = forward(FORWARD[1], None, rank, PROCESSES)
        if rank not in GROUPS["2"]:
            found["stranger"] = refusal(lambda: forward(FORWARD[1], groups["2"], 0, 2))
        torch.save(found, path)
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
            os.mkdir(f"{folder}/memory{name}")
            for rank in ranks:
                with open(f"{folder}/memory{name}/{rank}", "wb") as file:
                    file.truncate(2 * SHARED)
        processes = [context.Process(target=process, args=(rank, folder), daemon=True) for rank in range(PROCESSES)]
        for each in processes:
            each.start()
        for each in processes:
            each.join(200)
        if codes := [each.exitcode for each in processes if each.exitcode != 0]:
            raise AssertionError(f"processes ended with {codes}")
        found.extend(torch.load(f"{folder}/{rank}", weights_only=False) for rank in range(PROCESSES))


def of_ranks(name, key):
    return [found[rank][name][key] for rank in GROUPS[name]]


def by_the_library(case):
    """Its own result in tree mode, by the C API."""
    x, weight, bias, _ = case.operands()
    x = x.reshape(-1, case.k)
    out = torch.empty(len(x), case.n, dtype=case.out_dtype or case.dtype)
    if out.numel():
        with hgemm.Handle(hgemm.DEVICE_HOST, mode=hgemm.Mode.TREE) as handle:
            hgemm.matmul(x, weight.t(), out, bias=bias, handle=handle)
    return out.reshape(*case.rows, case.n)


def bits(tensor):
    return tensor.contiguous().view(torch.uint8)


class Test(unittest.TestCase):
    def assert_same_bits(self, result, expected, about):
        self.assertEqual((result.dtype, result.shape), (expected.dtype, expected.shape), about)
        self.assertTrue(torch.equal(bits(result), bits(expected)), f"{about}: bits differ")


class Forward(Test):
    def test_bits_of_the_library(self):
        for case in FORWARD:
            expected = by_the_library(case)
            for name in SIZES:
                for key in (case, *((bytes, case) for bytes in SPARED if name != "1")):
                    for rank, result in enumerate(of_ranks(name, key)):
                        self.assert_same_bits(result, share_of(expected, case, rank, int(name)), (key, name, rank))

    def test_default_group(self):
        expected = by_the_library(FORWARD[1])
        for each in found:
            self.assert_same_bits(each["default"], expected, "default group")

    def test_without_process_groups(self):
        self.assertFalse(distributed.is_initialized())
        case = FORWARD[1]
        self.assert_same_bits(forward(case, None, 0, 1), by_the_library(case), case)

    def test_error(self):
        """Within that of a leaf's sum, of the sums of leaves and of one rounding."""
        for case in FORWARD:
            x, weight, bias, _ = (t if t is None else t.double() for t in case.operands())
            added = torch.zeros(case.n).double() if bias is None else bias
            exact, size = x @ weight.t() + added, x.abs() @ weight.abs().t() + added.abs()
            leaf = case.k
            while leaf % 128 == 0 and leaf >= 1024:
                leaf //= 2
            result = of_ranks("8", case)
            result = torch.cat(result) if case.scatter else result[0]
            kind = torch.finfo(result.dtype)
            last = kind.eps / 2
            bound = (leaf + log2(case.k / leaf) + 1) * 2.0**-24 * size * (1 + last) + last * exact.abs()
            bound += case.k * 2.0**-149 + last * kind.smallest_normal  # of subnormal sums and results
            overflows = result.isinf() & (size + bound >= kind.max)
            self.assertTrue((((result.double() - exact).abs() <= bound) | overflows).all(), case)

    def test_order_can_be_seen(self):
        """Sums of the same parts in a row have other bits."""
        expected = by_the_library(FORWARD[3])
        self.assertFalse(torch.equal(of_ranks("4", "in a row")[0], expected))
        torch.testing.assert_close(of_ranks("4", "in a row")[0], expected)


class Backward(Test):
    def test_bits_of_one_rank(self):
        for case in BACKWARD:
            y, of_x, of_weight, of_bias = of_ranks("1", ("gradients", case))[0]
            for name in SIZES:
                size = int(name)
                for rank, result in enumerate(of_ranks(name, ("gradients", case))):
                    expected = (share_of(y, case, rank, size), part_of(of_x, rank, size),
                                part_of(of_weight, rank, size), of_bias)
                    for what, ours, theirs in zip(("y", "x", "weight", "bias"), result, expected, strict=True):
                        self.assert_same_bits(ours, theirs, (case, name, rank, what))

    def test_gradients(self):
        for case in BACKWARD:
            x, weight, bias, grad = (t.double() for t in case.operands())
            rows, of_rows = x.reshape(-1, case.k), grad.reshape(-1, case.n)
            expected = (grad @ weight, of_rows.t() @ rows, of_rows.sum(0))
            sizes = (grad.abs() @ weight.abs(), of_rows.abs().t() @ rows.abs(), of_rows.abs().sum(0))
            result = of_ranks("1", ("gradients", case))[0][1:]
            for ours, exact, size in zip(result, expected, sizes, strict=True):
                bound = torch.finfo(case.dtype).eps / 2 * exact.abs() * 1.01 + 1100 * 2.0**-24 * size
                self.assertTrue(((ours.double() - exact).abs() <= bound).all(), case)

    def test_compiled(self):
        for found_here, expected in zip(of_ranks("4", "compiled"), of_ranks("4", ("gradients", COMPILED)), strict=True):
            for ours, theirs in zip(found_here, expected[:3], strict=True):
                self.assert_same_bits(ours, theirs, "compiled")

    def test_only_once(self):
        for said in of_ranks("4", "once"):
            self.assertIn("once_differentiable", said)


class Refusals(unittest.TestCase):
    def test_arguments(self):
        wanted = "a multiple of 64 that is at least 512"
        half = "torch.float16"
        for name in ("2", "4", "8"):
            expected = {
                "short": f"ValueError: input: its last dimension is 448 in each of {name} ranks, must be {wanted}",
                "odd": f"ValueError: input: its last dimension is 544 in each of {name} ranks, must be {wanted}",
                "float32": f"TypeError: input: is torch.float32, must be {half} or torch.bfloat16",
                "mixed": f"TypeError: weight: is torch.bfloat16, must be {half} as input",
                "device": "ValueError: weight: is on meta, must be on cpu as input",
                "bias": "ValueError: bias: its shape is (5,), must be (4,)",
                "bias_dtype": f"TypeError: bias: is torch.float64, must be {half} or torch.float32",
                "none": "TypeError: weight: is None, must be a torch.Tensor",
                "fits": "ValueError: weight: its shape (4, 512) does not fit that of input, (8, 448)",
                "out_dtype": f"TypeError: out_dtype: is torch.float64, must be {half} or torch.float32",
                "rows": f"ValueError: input: its first dimension is 5, must be a multiple of the {name} ranks",
                "vector": "ValueError: input: 1 dimensions, must be 2 or more",
                "in_features": f"ValueError: linear: in_features is {int(name) * 512 + 1}, must be {name} times "
                               f"{wanted}",
                "columns": f"ValueError: weight: has 320 columns in each of {name} ranks, must have {wanted}",
                "unequal": "ValueError: weight: is (4, 512) of torch.float32 without bias in rank 0, and (4, 576) of "
                           f"torch.float32 without bias in rank {int(name) - 1}, must be alike",
                "biases": f"ValueError: weight: is (4, 512) of {half} without bias in rank 0, and (4, 512) of {half} "
                          "with 4 biases in rank 1, must be alike",
            }
            for said in of_ranks(name, "refusals"):
                self.assertEqual(said.keys(), expected.keys())
                for what, text in expected.items():
                    self.assertTrue(said[what].startswith(text), f"{what}: {said[what]}")

    def test_groups(self):
        for said in of_ranks("3", "odd size"):
            self.assertEqual(said, "ValueError: group: has 3 ranks, must be a power of two")
        for rank in range(2, PROCESSES):
            self.assertEqual(found[rank]["stranger"], "ValueError: group: this process is none of its ranks")


if __name__ == "__main__":
    unittest.main()
