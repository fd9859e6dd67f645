"""Products over several GPUs that gather before or add up after, by memory of peers. Needs two GPUs or more, and NCCL.

Results are compared, bit by bit, with products of the library and sums in the order of the ranks of what NCCL gathers.
"""

import logging
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import unittest
from datetime import timedelta
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch.distributed on devices: Skipped\nPyTorch is not installed")
    sys.exit(77)
if not torch.backends.cuda.is_built() or torch.cuda.device_count() < 2:
    print("hgemm.torch.distributed on devices: Skipped\nPyTorch finds fewer than two CUDA devices")
    sys.exit(77)
from torch import distributed

if not distributed.is_available() or not distributed.is_nccl_available():
    print("hgemm.torch.distributed on devices: Skipped\nPyTorch is built without NCCL")
    sys.exit(77)

import hgemm
import hgemm.torch as ht
import hgemm.torch.distributed as htd
from hgemm.torch import _peers, _reduce
from hgemm.torch._tree_reduce import add_pairwise

RANKS = min(8, torch.cuda.device_count())
K, N = 1024, 1088 * RANKS  # in each rank
_reduce.LEAST = 1 << 29  # so that some products have blocks of columns


def gathered(x):
    whole = x.new_empty(len(x) * RANKS, *x.shape[1:])
    distributed.all_gather_into_tensor(whole, x.contiguous())
    return whole


def product(x, mat2, bias, out_dtype, added=None):
    beta = 0.0 if added is None else 1.0
    return torch.ops.hgemm.gemm(x, mat2, added, bias, 1.0, beta, "none", out_dtype, False)


def add(parts):
    total, *others = parts
    for other in others:
        total = total + other
    return total


def partial(x, mat2, bias, scatter):
    """This rank's, by blocks as the library computes them: how large a product is may change its bits."""
    rows, width = -(-len(x) // RANKS), _reduce.width_of(mat2.shape[1], RANKS)
    if scatter and len(x) > _reduce.FEW:
        return torch.cat([product(each, mat2, bias, torch.float32) for each in x.split(rows)])
    if not scatter and len(x) >= _reduce.FEW and x.numel() * width >= _reduce.LEAST:
        biases = [None] * RANKS if bias is None else bias.split(width)
        return torch.cat([product(x, part, of_part, torch.float32)
                          for part, of_part in zip(mat2.split(width, 1), biases)], 1)
    return product(x, mat2, bias, torch.float32)


def sums(x, mat2, bias, out_dtype, scatter):
    """All rows of the result."""
    rank, rows = distributed.get_rank(), len(x)
    block, bias = -(-rows // RANKS), bias if rank == 0 else None
    if block < _reduce.HALVED:
        return add(gathered(partial(x, mat2, bias, scatter)[None])).to(out_dtype)
    blocks = x.split(block)
    pieces = [piece for each in blocks for piece in (each[:block // 2], each[block // 2:])]
    all_parts = [gathered(product(piece, mat2, bias, torch.float32)[None]) for piece in pieces]
    found = []
    for i, (piece, parts) in enumerate(zip(pieces, all_parts)):
        owner = i // 2
        others = add([part for each, part in enumerate(parts) if each != owner])
        found.append(gathered(product(piece, mat2, bias, out_dtype, others)[None])[owner])
    return torch.cat(found)


def by_collectives(what, x, mat2, bias=None, out_dtype=None):
    """What the function has to return, bit by bit."""
    if what == "gather":
        whole = gathered(x)
        return torch.cat([product(part, mat2, bias, out_dtype) for part in
                          whole.split(len(x) if len(whole) > _reduce.FEW else len(whole))])
    if what == "tree":
        total = add_pairwise(gathered(ht.tree_mm(x, mat2, out_dtype=torch.float32)[None]))
        return (total if bias is None else total + bias.float()).to(out_dtype or x.dtype)
    total = sums(x, mat2, bias, out_dtype or x.dtype, what == "scatter")
    return total.chunk(RANKS)[distributed.get_rank()] if what == "scatter" else total


def in_tree_order(x, mat2, bias=None, out_dtype=None):
    return htd.row_parallel_linear(x, mat2.t(), bias, out_dtype=out_dtype)


FUNCTIONS = {"gather": htd.all_gather_matmul, "scatter": htd.matmul_reduce_scatter, "all": htd.matmul_all_reduce}
if RANKS & (RANKS - 1) == 0:
    FUNCTIONS["tree"] = in_tree_order


def operands(what, rows, dtype=torch.bfloat16, seed=0):
    """Rows of the operand in each rank; a bias that is alike in all."""
    generator = torch.Generator("cuda").manual_seed(100 * seed + distributed.get_rank())
    x = torch.randn(rows, K, generator=generator, device="cuda").to(dtype)
    weight = torch.randn(N, K, generator=generator, device="cuda").to(dtype)
    bias = torch.randn(N, generator=torch.Generator("cuda").manual_seed(seed), device="cuda").to(dtype)
    return x, weight.t(), bias


def same(ours, expected, about):
    if ours.dtype != expected.dtype or ours.shape != expected.shape or not torch.equal(ours, expected):
        raise AssertionError(f"{about}: bits differ, by {(ours.double() - expected.double()).abs().max().item()}")


def bits():
    for what, function in FUNCTIONS.items():
        for rows in (RANKS, 24 * RANKS, 96 * RANKS, 520 * RANKS, 2100 * RANKS,
                     *((1, 7, 1001, 2099 * RANKS + 1) if what in ("all", "tree") else ())):
            for dtype in (torch.float16, torch.bfloat16):
                x, mat2, bias = operands(what, rows, dtype)
                for arguments in ({}, {"bias": bias}, {"out_dtype": torch.float32}, {"bias": bias.float()}):
                    expected = by_collectives(what, x, mat2, **arguments)
                    for _ in range(3):
                        same(function(x, mat2, **arguments), expected, (what, rows, dtype, [*arguments]))
        x, mat2, _ = operands(what, 40 * RANKS)
        with torch.inference_mode():  # before the same shapes in another mode
            inferred = function(x, mat2)
        same(function(x, mat2), inferred, (what, "inference mode"))
        strided = operands(what, 64 * RANKS)[0].repeat(1, 2)[:, :K]  # rows are further apart
        same(function(strided, mat2), by_collectives(what, strided, mat2), (what, "strided"))


def late():
    """Ranks are late in turn, on the host and on the device. Nobody waits for results between calls."""
    rank, expected, results = distributed.get_rank(), [], []
    problems = [(what, rows, operands(what, rows * RANKS, seed=seed))
                for seed, rows in enumerate((16, 512, 48, 2100, 200)) for what in FUNCTIONS]
    for what, rows, (x, mat2, bias) in problems:
        expected.append(by_collectives(what, x, mat2, bias))
    for turn in range(3):
        for i, (what, rows, (x, mat2, bias)) in enumerate(problems):
            if (i + turn) % (RANKS + 1) == rank:
                torch.cuda._sleep(20_000_000)  # about 10 ms
            if (i + turn) % (RANKS + 2) == rank:
                time.sleep(0.01)
            results.append((i, FUNCTIONS[what](x, mat2, bias=bias)))
    for i, result in results:
        same(result, expected[i], (problems[i][:2], "late"))


def busy():
    """In turn a rank's device has other work, so that others are ahead of it in the midst of calls."""
    rank, beside = distributed.get_rank(), torch.cuda.Stream()
    problems = [(what, operands(what, rows * RANKS, seed=seed)) for rows in (16, 600) for what in FUNCTIONS
                for seed in range(4)]
    expected = [by_collectives(what, x, mat2) for what, (x, mat2, _) in problems]
    large = torch.randn(4096, 4096, device="cuda").bfloat16()
    torch.cuda.synchronize()
    results = []
    for turn in range(4 * RANKS):
        if turn % RANKS == rank:
            with torch.cuda.stream(beside):
                for _ in range(40):
                    large @ large
        results += [(i, FUNCTIONS[what](x, mat2)) for i, (what, (x, mat2, _)) in enumerate(problems)]
    torch.cuda.synchronize()
    for i, result in results:
        same(result, expected[i], (problems[i][0], "a busy rank"))


def streams():
    """Calls on two streams in turn, of which one is held up."""
    both = [torch.cuda.Stream(), torch.cuda.Stream()]
    problems = [(what, operands(what, rows * RANKS, seed=rows)) for rows in (16, 600, 2100) for what in FUNCTIONS]
    expected = [by_collectives(what, x, mat2) for what, (x, mat2, _) in problems]
    torch.cuda.synchronize()
    results = []
    for i in range(4 * len(problems)):
        what, (x, mat2, _) = problems[i % len(problems)]
        with torch.cuda.stream(both[i % 2]):  # operands are not freed before the end
            if i % 3 == distributed.get_rank():
                torch.cuda._sleep(5_000_000)
            results.append((i % len(problems), FUNCTIONS[what](x, mat2)))
    torch.cuda.synchronize()
    for i, result in results:
        same(result, expected[i], (problems[i][0], "two streams"))


def graphs():
    """Two graphs of calls with few rows and with many, replayed in turn with new operands, and calls between them."""
    made = []
    for rows in (16, 2100):
        fixed = {what: operands(what, rows * RANKS) for what in FUNCTIONS}
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            results = {what: FUNCTIONS[what](x, mat2) for what, (x, mat2, _) in fixed.items()}
            again = {what: FUNCTIONS[what](x, mat2) for what, (x, mat2, _) in fixed.items()}
        made.append((graph, rows, fixed, results, again))
    for seed in range(6):
        for graph, rows, fixed, results, again in made:
            for what, tensors in fixed.items():
                for tensor, values in zip(tensors, operands(what, rows * RANKS, seed=seed)):
                    tensor.copy_(values)
            expected = {what: by_collectives(what, x, mat2) for what, (x, mat2, _) in fixed.items()}
            for _ in range(3):
                if seed % RANKS == distributed.get_rank():
                    torch.cuda._sleep(3_000_000)
                graph.replay()
            for what, (x, mat2, _) in fixed.items():
                same(results[what], expected[what], (what, rows, "graph"))
                same(again[what], expected[what], (what, rows, "graph, second call"))
                if seed % 2:
                    same(FUNCTIONS[what](x, mat2), expected[what], (what, rows, "after a graph"))


def growth():
    """Larger buffers are made when they are needed, but not in a graph, whose own stay."""
    peers = _peers.find(distributed.group.WORLD, torch.device("cuda", torch.cuda.current_device()), _peers.IN_TURN + 1)
    x, mat2, _ = operands("gather", peers.bytes // (2 * K * RANKS) + 8)
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode="thread_local"):
            htd.all_gather_matmul(x, mat2)
    except RuntimeError as error:
        if "while a CUDA graph is captured" not in str(error):
            raise
    else:
        raise AssertionError("memory was shared in a captured graph")
    small, mat2, _ = operands("gather", 512)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = htd.all_gather_matmul(small, mat2)
    same(htd.all_gather_matmul(x, mat2), by_collectives("gather", x, mat2), "larger")
    graph.replay()
    same(result, by_collectives("gather", small, mat2), "the graph with the smaller buffer")


def gradients():
    """By peers and by collectives, against float64."""
    for what in FUNCTIONS:
        for rows in (8 * RANKS, 520 * RANKS):
            x, mat2, bias = operands(what, rows)
            mat2, whole, exact = mat2 / K**0.5, gathered(x).double(), []
            found = []
            y = FUNCTIONS[what](x, mat2, bias=bias)
            grad = torch.randn(y.shape, device="cuda", generator=torch.Generator("cuda").manual_seed(3)).to(y.dtype)
            for find in (_peers.find, lambda *_: None):
                leaves = [t.detach().clone(memory_format=torch.preserve_format).requires_grad_()
                          for t in (x, mat2, bias)]
                with mock.patch.object(_peers, "find", find):
                    FUNCTIONS[what](leaves[0], leaves[1], bias=leaves[2]).backward(grad)
                found.append([t.grad for t in leaves])
            grads = gathered(grad).double() if what == "scatter" else grad.double()
            if what == "gather":
                of_x = grads @ mat2.double().t()
                distributed.all_reduce(of_x)
                exact = of_x.chunk(RANKS)[distributed.get_rank()], whole.t() @ grads, grads.sum(0)
            else:
                exact = grads @ mat2.double().t(), x.double().t() @ grads, grads.sum(0)
            for each in found:
                for ours, wanted in zip(each, exact, strict=True):
                    if not (error := (ours.double() - wanted).norm() / wanted.norm()) < 0.004:
                        raise AssertionError(f"{what}, {rows} rows: a gradient is {error} from float64")


def tree():
    """row_parallel_linear, with the bits of one device that has all of K, by NCCL."""
    rank = distributed.get_rank()
    if RANKS & (RANKS - 1):
        return
    for dtype in (torch.float16, torch.bfloat16):
        for rows, n, k in ((6, 24, 8192), (1, 33, 8192), (RANKS * 64, 1056, 4096), (RANKS * 512, 512, 16384)):
            generator = torch.Generator("cuda").manual_seed(k + n)
            x, weight = (torch.randn(m, k, generator=generator, device="cuda").to(dtype) for m in (rows, n))
            bias = torch.randn(n, generator=generator, device="cuda").to(dtype)
            parts = [t.chunk(RANKS, 1)[rank].contiguous() for t in (x, weight)]
            for added, wide in ((None, None), (bias, None), (bias, torch.float32)):
                expected = ht.tree_mm(x, weight.t(), added, wide)
                same(htd.row_parallel_linear(*parts, added, out_dtype=wide), expected, (rows, n, k, "tree"))
                if rows % RANKS == 0:
                    same(htd.row_parallel_linear(*parts, added, out_dtype=wide, scatter=True),
                         expected.chunk(RANKS)[rank], (rows, n, k, "tree, scattered"))
            leaves = [t.requires_grad_() for t in parts]
            grad = torch.randn(rows, n, generator=generator, device="cuda").to(dtype)
            of_parts = torch.autograd.grad(htd.row_parallel_linear(*leaves), leaves, grad)
            whole = [t.requires_grad_() for t in (x, weight)]
            of_whole = torch.autograd.grad(ht.tree_mm(whole[0], whole[1].t()), whole, grad)
            for ours, all_of_it in zip(of_parts, of_whole, strict=True):
                same(ours, all_of_it.chunk(RANKS, 1)[rank], (rows, n, k, "tree, gradient"))


CHECKS = (bits, late, busy, streams, graphs, growth, gradients, tree)


def process(rank, folder):
    try:
        torch.cuda.set_device(rank)
        distributed.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS,
                                       timeout=timedelta(seconds=60), device_id=torch.device("cuda", rank))
        log = logging.getLogger("hgemm.torch.distributed")
        log.setLevel(logging.DEBUG)
        with unittest.TestCase().assertLogs(log, logging.DEBUG) as logged:
            transport = htd.transport("cuda")
        assert "the ranks reach each other's memory" in logged.output[-1], logged.output
        for check in CHECKS:
            start = time.perf_counter()
            check()
            torch.cuda.synchronize()
            distributed.barrier()
            if rank == 0:
                print(f"{check.__name__}: {time.perf_counter() - start:.1f} s", flush=True)
                with open(f"{folder}/passed", "a") as file:
                    file.write(f"{check.__name__}\n")
        with open(f"{folder}/transport{rank}", "w") as file:
            file.write(transport)
        distributed.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # not waiting for others


class Devices(unittest.TestCase):
    def test_ranks(self):
        context = multiprocessing.get_context("spawn")
        with tempfile.TemporaryDirectory() as folder:
            processes = [context.Process(target=process, args=(rank, folder), daemon=True) for rank in range(RANKS)]
            for each in processes:
                each.start()
            deadline = time.monotonic() + 240
            for each in processes:
                each.join(max(0, deadline - time.monotonic()))
            self.assertEqual([each.exitcode for each in processes], [0] * RANKS)
            with open(f"{folder}/passed") as file:
                self.assertEqual(file.read().split(), [check.__name__ for check in CHECKS])
            for rank in range(RANKS):
                with open(f"{folder}/transport{rank}") as file:
                    self.assertEqual(file.read(), "peers")


if __name__ == "__main__":
    try:
        with hgemm.Handle(0):
            pass
    except hgemm.Error as error:  # such as a library for the CPU alone
        print(f"hgemm.torch.distributed on devices: Skipped\nlibhgemm: {error}")
        sys.exit(77)
    unittest.main()
