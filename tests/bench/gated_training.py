#!/usr/bin/env python3
"""Times training steps of gated layers and of layers of experts on the GPU, by hgemm.torch and by PyTorch, in turn.

    gated_training.py [--csv FILE] [--rounds R] [--layers NAME,...] [--rows N,...]

Needs PyTorch with CUDA, Triton and the package hgemm. A step is a forward and a backward pass, with gradients of
tokens, router weights and all weights of the layer; bf16. Arms: `hgemm` is hgemm.torch.moe, or gated_linear() and
linear(); `torch` has PyTorch's functions, and `compiled` the same by torch.compile. Times are of eager calls, as
programs train, between events; medians of rounds in which all take turns. The ratio is the median over rounds of an
arm's time by hgemm's. Gradients are first compared with those of float32, for 256 tokens, and peak memory is that of
a step beside the operands.
"""

import argparse
import statistics
import sys
import time

import torch
import triton
from torch.nn import functional

import hgemm.torch as ht
from arms import eager_in_turn, medians, told_of_device
from gated import DENSE, EXPERTS, SWIGLU_OAI, error_of, gate_by_torch, random

LAYERS = ("llama-8b", "qwen3-1.7b", "mixtral", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-20b")
ROWS = (2048, 8192, 16384)
CHECKED = 256  # tokens whose gradients float32 computes, too


def dense_by_torch(block, options, x, w13, w2):
    return functional.linear(gate_by_torch(functional.linear(x, w13), block, **options), w2)


def experts_by_torch(block, options, x, weights, indices, w13, w2, b13=None, b2=None):
    """Sorted by experts, multiplied by groups, and added up in float32."""
    keys, order = indices.reshape(-1).sort(stable=True)
    ends = torch.searchsorted(keys, torch.arange(w13.shape[0], device=x.device), right=True, out_int32=True)
    token = order // indices.shape[1]
    product = torch._grouped_mm(x.index_select(0, token), w13.transpose(1, 2), offs=ends)
    product = product if b13 is None else product + b13.index_select(0, keys)
    results = torch._grouped_mm(gate_by_torch(product, block, **options), w2.transpose(1, 2), offs=ends)
    results = results if b2 is None else results + b2.index_select(0, keys)
    results = results * weights.reshape(-1)[order, None]
    return torch.zeros(x.shape, device=x.device).index_add(0, token, results.float()).to(x.dtype)


def experts_in_float32(block, options, x, weights, indices, w13, w2, b13=None, b2=None):
    result = torch.zeros_like(x)
    for expert in indices.unique().tolist():
        token, choice = (indices == expert).nonzero(as_tuple=True)
        product = x[token] @ w13[expert].t()
        inner = gate_by_torch(product if b13 is None else product + b13[expert], block, **options)
        product = inner @ w2[expert].t()
        product = product if b2 is None else product + b2[expert]
        result = result.index_add(0, token, product * weights[token, choice, None])
    return result


def dense(name, rows):
    """Arms as functions of operands, these, how many of them have a row for each token, and operations of a step."""
    columns, k, block = DENSE[name]
    options = SWIGLU_OAI if block == 1 else {}
    arms = {"hgemm": lambda x, w13, w2: ht.linear(ht.gated_linear(x, w13, gate_block=block, **options), w2),
            "torch": lambda *operands: dense_by_torch(block, options, *operands)}
    operands = [random(rows, k), random(2 * columns, k, scale=k**-0.5), random(k, columns, scale=columns**-0.5)]
    return arms, arms["torch"], operands, 1, 18 * rows * columns * k


def experts(name, rows):
    count, top_k, hidden, columns, block, biased = EXPERTS[name]
    options = SWIGLU_OAI if block == 1 else {}
    weights, indices = torch.randn(rows, count, device="cuda").softmax(1).topk(top_k)
    operands = [random(rows, hidden), weights.bfloat16(), indices,
                random(count, 2 * columns, hidden, scale=hidden**-0.5),
                random(count, hidden, columns, scale=columns**-0.5)]
    if biased:
        operands += [random(count, 2 * columns), random(count, hidden)]

    def ours(x, weights, indices, w13, w2, b13=None, b2=None):
        return ht.moe(x, weights, indices, w13, w2, b13=b13, b2=b2, gate_block=block, **options)
    arms = {"hgemm": ours, "torch": lambda *operands: experts_by_torch(block, options, *operands)}
    right = lambda *operands: experts_in_float32(block, options, *operands)
    return arms, right, operands, 3, 18 * rows * top_k * columns * hidden


def step(run, operands, grad):
    leaves = [x for x in operands if x.is_floating_point()]
    return torch.autograd.grad(run(*operands), leaves, grad)


def with_gradients(operands, dtype):
    return [x.detach().to(dtype).requires_grad_() if x.is_floating_point() else x for x in operands]


def errors_of(arms, right, operands, of_tokens, grad):
    """The largest of all gradients of few tokens."""
    few = [x[:CHECKED] for x in operands[:of_tokens]] + operands[of_tokens:]
    wanted = step(right, with_gradients(few, torch.float32), grad[:CHECKED].float())
    return {arm: max(map(error_of, step(run, with_gradients(few, torch.bfloat16), grad[:CHECKED]), wanted))
            for arm, run in arms.items()}


def peak_bytes(run):
    run()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def measure(name, rows, rounds, out):
    arms, right, operands, of_tokens, flops = (dense if name in DENSE else experts)(name, rows)
    torch._dynamo.reset()
    arms["compiled"] = torch.compile(arms["torch"], dynamic=False)
    grad = random(*operands[0].shape)
    errors = errors_of(arms, right, operands, of_tokens, grad)
    operands = with_gradients(operands, torch.bfloat16)
    steps = {arm: lambda run=run: step(run, operands, grad) for arm, run in arms.items()}
    peaks = {arm: peak_bytes(run) for arm, run in steps.items()}
    us, ratios = medians(eager_in_turn(steps, 4, rounds))
    text = "  ".join(f"{arm} {us[arm]:.0f} us x{ratios[arm]:.3f} {peaks[arm] / 2**30:.2f} GiB" for arm in us)
    print(f"{name:14s} {rows:6d} {flops / us['hgemm'] / 1e6:6.0f} TFLOP/s  {text}", flush=True)
    for arm in us:
        out.write(f"{name},{rows},{arm},{us[arm]:.1f},{ratios[arm]:.4f},{peaks[arm] / 2**20:.0f},{errors[arm]:.2e}\n")
    out.flush()
    for arm, error in errors.items():
        if not error < 0.02:
            raise AssertionError(f"{name} {rows}: gradients of {arm} differ by {error:.3g} from float32")
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", default="/dev/null")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layers", default=",".join(LAYERS))
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    arguments = parser.parse_args()
    torch.manual_seed(1)
    begin, out = time.monotonic(), open(arguments.csv, "w")
    out.write(f"{told_of_device()}, Triton {triton.__version__}; bf16; ratio: median over rounds of its time by "
              "hgemm's\nlayer,rows,arm,us,ratio,peak_mib,error\n")
    all_ratios = []
    for name in arguments.layers.split(","):
        for rows in map(int, arguments.rows.split(",")):
            all_ratios.append(measure(name, rows, arguments.rounds, out))
            torch.cuda.empty_cache()
    for arm in ("torch", "compiled"):
        ratios = [r[arm] for r in all_ratios]
        print(f"{arm} takes {statistics.geometric_mean(ratios):.3f} of hgemm's time over {len(ratios)} steps, from "
              f"{min(ratios):.3f} to {max(ratios):.3f}", flush=True)
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
