#!/usr/bin/env python3
"""Times products of a training step on the GPU, by hgemm.torch and by PyTorch, in one process and in turn.

    training.py [--csv FILE] [--rounds R]       needs PyTorch with CUDA, and the package hgemm

Gradients of the weights of experts (groups of K), symmetric products, and the orthogonalisation of torch.optim.Muon.
bf16; medians of CUDA graphs over operands that are not in a cache. Each result is first compared with fp32.
"""

import argparse
import sys

import torch
from torch.optim._muon import _zeropower_via_newtonschulz

import hgemm.torch as ht
from arms import medians, told_of_device
from grouped import in_turn

# Experts, rows of D, columns of D; tokens in all.
GRADIENTS = ((8, 4096, 14336, 8192), (8, 28672, 4096, 8192), (32, 2048, 7168, 16384), (128, 2048, 768, 16384),
             (128, 768, 2048, 65536))
SYMMETRIC = ((1, 1024, 1024), (1, 2048, 2048), (1, 4096, 1024), (1, 4096, 4096), (1, 4096, 11008), (1, 8192, 8192),
             (16, 1024, 1024), (64, 512, 512))
ORTHOGONAL = ((1024, 1024), (2048, 2048), (4096, 4096), (4096, 11008), (8192, 8192), (16, 1024, 4096))
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def sets_of(size):
    """Sets of operands, so many bytes each, that are never in the L2 cache when their turn comes."""
    return max(1, min(16, int(3e8 / size)))


def gradients(experts, m, n, tokens):
    """D[g] = A[rows of g].T @ B[rows of g], of tokens that chose their experts at random."""
    chosen = torch.randint(experts, (tokens,), generator=torch.Generator().manual_seed(tokens))
    sizes = torch.bincount(chosen, minlength=experts)
    ends = sizes.cumsum(0).to(torch.int32).cuda()
    pairs = [(random(tokens, m), random(tokens, n)) for _ in range(sets_of(2 * tokens * (m + n) + 2 * experts * m * n))]
    parts = sizes.tolist()

    def loop(i):
        a, b = pairs[i % len(pairs)]
        return [x.t() @ y for x, y in zip(a.split(parts), b.split(parts))]

    arms = {"hgemm": lambda i: ht.grouped_mm(pairs[i % len(pairs)][0].t(), pairs[i % len(pairs)][1], offs=ends),
            "torch": lambda i: torch._grouped_mm(pairs[i % len(pairs)][0].t(), pairs[i % len(pairs)][1], offs=ends),
            "torch_loop": loop}
    a, b = (x.split(parts)[0].float() for x in pairs[0])
    return arms, len(pairs), arms["hgemm"](0)[0], a.t() @ b, 2 * tokens * m * n


def symmetric(batch, n, k):
    x = [random(batch, n, k) for _ in range(sets_of(2 * batch * n * (k + n)))]
    arms = {"hgemm": lambda i: ht.syrk(x[i % len(x)]),
            "hgemm_whole": lambda i: ht.bmm(x[i % len(x)], x[i % len(x)].mT),
            "torch": lambda i: torch.bmm(x[i % len(x)], x[i % len(x)].mT)}
    return arms, len(x), arms["hgemm"](0)[0], x[0][0].float() @ x[0][0].float().mT, batch * n * n * k


def orthogonal(*shape):
    x = [random(*shape) for _ in range(2)]
    by_torch = (lambda y: _zeropower_via_newtonschulz(y, COEFFICIENTS, 5, 1e-7)) if len(shape) == 2 else None
    arms = {"hgemm": lambda i: ht.newton_schulz(x[i % 2])}
    if by_torch:
        arms["torch"] = lambda i: by_torch(x[i % 2])
        expected = arms["torch"](0)
    else:
        arms["torch_loop"] = lambda i: [_zeropower_via_newtonschulz(y, COEFFICIENTS, 5, 1e-7) for y in x[i % 2]]
        expected = torch.stack(arms["torch_loop"](0))
    m, n = sorted(shape[-2:])
    batch = shape[0] if len(shape) == 3 else 1
    return arms, 2, arms["hgemm"](0), expected.float(), 5 * batch * (4 * m * m * n + 2 * m**3)


def measure(what, sizes, made, rounds, out):
    arms, sets, result, expected, flops = made
    worst = ((result.float() - expected).norm() / expected.norm()).item()
    bound = 0.03 if what == "newton_schulz" else 0.004
    if not worst < bound:
        raise AssertionError(f"{what} of {sizes} differs by {worst:.3g} from what it should be")
    times = in_turn(arms, sets * max(1, 8 // sets), rounds)
    us, ratios = medians(times)
    text = "  ".join(f"{arm} {us[arm]:.1f}" + ("" if arm == "hgemm" else f" x{ratios[arm]:.3f}") for arm in us)
    shape = "x".join(map(str, sizes))
    print(f"{what:14s} {shape:22s} {flops / us['hgemm'] / 1e6:6.0f} TFLOP/s  {text}  error {worst:.1e}", flush=True)
    for arm in us:
        out.write(f"{what},{shape},{arm},{us[arm]:.2f},{ratios[arm]:.4f},{worst:.2e}\n")
    out.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", default="/dev/null")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    out = open(arguments.csv, "w")
    out.write(f"{told_of_device()}; bf16; ratio: median over rounds of its time by hgemm's\n"
              "product,shape,arm,us,ratio,error\n")
    for what, make, problems in (("k_groups", gradients, GRADIENTS), ("syrk", symmetric, SYMMETRIC),
                                 ("newton_schulz", orthogonal, ORTHOGONAL)):
        for sizes in problems:
            measure(what, sizes, make(*sizes), arguments.rounds, out)
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
