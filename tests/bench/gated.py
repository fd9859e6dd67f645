#!/usr/bin/env python3
"""Times gated layers and mixtures of experts on the GPU, by hgemm.torch and by PyTorch, in one process and in turn.

    gated.py [--csv FILE] [--rounds R] [--only dense|moe] [--layers NAME,...] [--rows N,...] [--transposed]

Needs PyTorch with CUDA, Triton and the package hgemm. bf16; medians of CUDA graphs over operands that are not in a
cache, of rounds in which all take turns. The ratio is the median over rounds of an arm's time by hgemm's. Each result
is first compared with float32. Arms of layers of experts: `hgemm` is hgemm.torch.moe. The others have gates of
Triton; `hgemm_triton` has all else as hgemm.torch.moe, `hgemm_rows` products of PyTorch, and `torch_triton` PyTorch's
functions for the rest as well.
"""

import argparse
import statistics
import sys
import time

import torch
import triton
import triton.language as tl
from torch.nn import functional

import hgemm.torch as ht
from arms import medians, told_of_device
from grouped import in_turn

# F, K, and the gates' block, which is None where all gates lie in front.
DENSE = {"llama-8b": (14336, 4096, None), "llama-70b-tp8": (3584, 8192, None), "qwen3-14b": (17408, 5120, None),
         "qwen3-1.7b": (6144, 2048, None), "gpt-oss": (2880, 2880, 1)}
DENSE_ROWS = (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
# Experts, top_k, H, F, the gates' block, and whether experts have biases.
EXPERTS = {"mixtral": (8, 2, 4096, 14336, None, False), "qwen3-30b-a3b": (128, 8, 2048, 768, None, False),
           "deepseek-v3": (64, 8, 7168, 2048, None, False), "gpt-oss-20b": (32, 4, 2880, 2880, 1, True)}
TOKENS = (16, 128, 1024, 4096, 16384)
# What gpt-oss has beside alternating gates.
SWIGLU_OAI = {"limit": 7.0, "slope": 1.702, "offset": 1.0}


@triton.jit
def gate_kernel(product, bias, experts, result, columns, limit, slope, offset, alternate: tl.constexpr,
                limited: tl.constexpr, biased: tl.constexpr, width: tl.constexpr):
    """A program gates a part of a row, to which it may add its expert's bias. What alternates is loaded as pairs, so
    that all loads are vectors."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * width + tl.arange(0, width)
    inside = column < columns
    line = product + row * 2 * columns
    if biased:
        added = bias + tl.load(experts + row).to(tl.int64) * 2 * columns
    if alternate:
        pair = tl.program_id(1) * 2 * width + tl.arange(0, 2 * width)
        both = tl.load(line + pair, mask=pair < 2 * columns, other=0.0).to(tl.float32)
        if biased:
            both += tl.load(added + pair, mask=pair < 2 * columns, other=0.0).to(tl.float32)
        gate, other = tl.split(tl.reshape(both, (width, 2)))
    else:
        gate = tl.load(line + column, mask=inside, other=0.0).to(tl.float32)
        other = tl.load(line + columns + column, mask=inside, other=0.0).to(tl.float32)
        if biased:
            gate += tl.load(added + column, mask=inside, other=0.0).to(tl.float32)
            other += tl.load(added + columns + column, mask=inside, other=0.0).to(tl.float32)
    if limited:
        gate = tl.minimum(gate, limit)
        other = tl.minimum(tl.maximum(other, -limit), limit)
    gated = gate * tl.sigmoid(slope * gate) * (other + offset)
    tl.store(result + row * columns + column, gated.to(result.dtype.element_ty), mask=inside)


def gate_by_triton(product, block, limit=0.0, slope=1.0, offset=0.0, bias=None, experts=None):
    rows, columns = product.shape[0], product.shape[1] // 2
    result = product.new_empty(rows, columns)
    width = 1024 if columns >= 1024 else triton.next_power_of_2(columns)
    gate_kernel[(rows, triton.cdiv(columns, width))](product, bias, experts, result, columns, limit, slope, offset,
                                                     block == 1, limit != 0, bias is not None, width, num_warps=4)
    return result


def gate_by_torch(product, block, limit=None, slope=1.0, offset=0.0):
    gate, other = (product[:, ::2], product[:, 1::2]) if block == 1 else product.chunk(2, dim=1)
    if limit is not None:
        gate, other = gate.clamp(max=limit), other.clamp(-limit, limit)
    activated = functional.silu(gate) if slope == 1.0 else gate * torch.sigmoid(slope * gate)
    return activated * (other + offset if offset else other)


def random(*shape, scale=1.0):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16).mul_(scale)


def weights_of(*shape, transposed):
    """Random ones, contiguous along their last dimension, or the one before."""
    made = random(*shape, scale=shape[-1]**-0.5)
    return made.mT.contiguous().mT if transposed else made


def sets_of(size):
    """Sets of operands, so many bytes each, that are never in the L2 cache when their turn comes."""
    return max(1, min(8, int(3e8 / size)))


def error_of(result, right):
    return ((result.float() - right).norm() / right.norm()).item()


def dense(name, rows, transposed):
    columns, k, block = DENSE[name]
    options = SWIGLU_OAI if block == 1 else {}
    sets = sets_of(2 * (2 * columns * k + rows * (k + 3 * columns)))
    pairs = [(random(rows, k), weights_of(2 * columns, k, transposed=transposed)) for _ in range(sets)]
    arms = {"hgemm": lambda i: ht.gated_linear(*pairs[i % sets], gate_block=block, **options),
            "hgemm_triton": lambda i: gate_by_triton(ht.linear(*pairs[i % sets]), block, **options),
            "torch_triton": lambda i: gate_by_triton(functional.linear(*pairs[i % sets]), block, **options),
            "torch": lambda i: gate_by_torch(functional.linear(*pairs[i % sets]), block, **options)}
    checked = min(rows, 256)
    right = gate_by_torch(pairs[0][0][:checked].float() @ pairs[0][1].float().t(), block, **options)
    errors = {arm: error_of(run(0)[:checked], right) for arm, run in arms.items()}
    return arms, sets, errors, 4 * rows * columns * k


def multiply_and_gate(grouped_mm, rows, experts, ends, w13, w2, b13, b2, block, options):
    product = grouped_mm(rows, w13.transpose(1, 2), offs=ends)
    gated = gate_by_triton(product, block, **options, bias=b13, experts=experts)
    results = grouped_mm(gated, w2.transpose(1, 2), offs=ends)
    return results if b2 is None else results.add_(b2.index_select(0, experts))


def moe_by_torch(x, weights, indices, w13, w2, b13, b2, block, options):
    """By torch's own functions, but for the gates."""
    keys, order = indices.reshape(-1).to(torch.uint8).sort(stable=True)
    ends = torch.searchsorted(keys, torch.arange(w13.shape[0], dtype=torch.uint8, device=x.device), right=True,
                              out_int32=True)
    places = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=x.device))
    experts = keys.int() if b2 is not None else None
    results = multiply_and_gate(torch._grouped_mm, x.index_select(0, order // indices.shape[1]), experts, ends, w13, w2,
                                b13, b2, block, options)
    return functional.embedding_bag(places.view(indices.shape), results, mode="sum", per_sample_weights=weights)


def moe_by_products(grouped_mm, x, weights, indices, w13, w2, b13, b2, block, options):
    """As hgemm.torch.moe, but for its products and gates."""
    rows, ends = torch.ops.hgemm.route(indices, w13.shape[0])
    experts = None
    if b2 is not None:
        experts = torch.empty_like(rows).view(-1).scatter_(0, rows.view(-1).long(), indices.reshape(-1).int())
    results = multiply_and_gate(grouped_mm, torch.ops.hgemm.gather_rows(x, None, rows), experts, ends, w13, w2, b13,
                                b2, block, options)
    return torch.ops.hgemm.combine_rows(results, weights, rows)


def moe_in_float32(x, weights, indices, w13, w2, b13, b2, block, options):
    result = torch.zeros(x.shape, device="cuda")
    for expert in indices.unique().tolist():
        token, choice = (indices == expert).nonzero(as_tuple=True)
        product = x[token].float() @ w13[expert].float().t()
        inner = gate_by_torch(product if b13 is None else product + b13[expert].float(), block, **options)
        product = inner @ w2[expert].float().t()
        product = product if b2 is None else product + b2[expert].float()
        result.index_add_(0, token, product * weights[token, choice, None].float())
    return result


def experts(name, tokens, transposed):
    count, top_k, hidden, columns, block, biased = EXPERTS[name]
    options = SWIGLU_OAI if block == 1 else {}
    sets = sets_of(2 * (3 * count * columns * hidden + tokens * top_k * (2 * hidden + columns)))
    layers = []
    for _ in range(sets):
        weights, indices = torch.randn(tokens, count, device="cuda").softmax(1).topk(top_k)
        layers.append((random(tokens, hidden), (weights / weights.sum(1, keepdim=True)).bfloat16(), indices,
                       weights_of(count, 2 * columns, hidden, transposed=transposed),
                       weights_of(count, hidden, columns, transposed=transposed),
                       *((random(count, 2 * columns), random(count, hidden)) if biased else (None, None))))

    def ours(x, weights, indices, w13, w2, b13, b2):
        return ht.moe(x, weights, indices, w13, w2, b13=b13, b2=b2, gate_block=block, **options)
    arms = {"hgemm": lambda i: ours(*layers[i % sets]),
            "hgemm_triton": lambda i: moe_by_products(ht.grouped_mm, *layers[i % sets], block, options),
            "hgemm_rows": lambda i: moe_by_products(torch._grouped_mm, *layers[i % sets], block, options),
            "torch_triton": lambda i: moe_by_torch(*layers[i % sets], block, options)}
    checked = min(tokens, 256)
    x, weights, indices, *others = layers[0]
    right = moe_in_float32(x[:checked], weights[:checked], indices[:checked], *others, block, options)
    errors = {}
    for arm, run in arms.items():
        try:
            errors[arm] = error_of(run(0)[:checked], right)
        except RuntimeError as error:  # such as torch's, of strides that it does not take
            print(f"{name} {tokens}: {arm} does not run: {str(error).splitlines()[0]}", flush=True)
    return {arm: arms[arm] for arm in errors}, sets, errors, 6 * tokens * top_k * columns * hidden


def measure(what, name, rows, made, rounds, out):
    arms, sets, errors, flops = made
    for arm, error in errors.items():
        if not error < 0.02:
            raise AssertionError(f"{what} {name} {rows}: {arm} differs by {error:.3g} from float32")
    times = in_turn(arms, sets * max(1, (4 if flops > 1e12 else 8) // sets), rounds)
    us, ratios = medians(times)
    text = "  ".join(f"{arm} {us[arm]:.1f}" + ("" if arm == "hgemm" else f" x{ratios[arm]:.3f}") for arm in us)
    print(f"{what:5s} {name:14s} {rows:6d} {flops / us['hgemm'] / 1e6:6.0f} TFLOP/s  {text}", flush=True)
    for arm in us:
        out.write(f"{what},{name},{rows},{arm},{us[arm]:.2f},{ratios[arm]:.4f},{errors[arm]:.2e}\n")
    out.flush()
    return ratios


def summarize(what, all_ratios):
    for arm in ("hgemm_triton", "hgemm_rows", "torch_triton", "torch"):
        ratios = [r[arm] for r in all_ratios if arm in r]
        if ratios:
            print(f"{what}: {arm} takes {statistics.geometric_mean(ratios):.3f} of hgemm's time over {len(ratios)} "
                  f"problems, from {min(ratios):.3f} to {max(ratios):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", default="/dev/null")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=("dense", "moe"))
    parser.add_argument("--layers", default="", help="names, such as llama-8b,mixtral")
    parser.add_argument("--rows", default="", help="numbers, such as 16,1024")
    parser.add_argument("--transposed", action="store_true",
                        help="weights lie as (K, N), those of experts as (experts, K, N), as Transformers has gpt-oss's")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    begin, out = time.monotonic(), open(arguments.csv, "w")
    out.write(f"{told_of_device()}, Triton {triton.__version__}; bf16; ratio: median over rounds of its time by "
              "hgemm's\nwhat,layer,rows,arm,us,ratio,error\n")
    for what, make, layers, rows in (("dense", dense, DENSE, DENSE_ROWS), ("moe", experts, EXPERTS, TOKENS)):
        if arguments.only not in (None, what):
            continue
        ratios = []
        for name in [n for n in layers if not arguments.layers or n in arguments.layers.split(",")]:
            for m in map(int, arguments.rows.split(",")) if arguments.rows else rows:
                with torch.no_grad():
                    ratios.append(measure(what, name, m, make(name, m, arguments.transposed), arguments.rounds, out))
                torch.cuda.empty_cache()
            print(f"{time.monotonic() - begin:.0f} s", flush=True)
        summarize(what, ratios)
    return 0


if __name__ == "__main__":
    sys.exit(main())
