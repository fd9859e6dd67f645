#!/usr/bin/env python3
"""Times Muon on the weight matrices of whole models on the GPU, by hgemm.torch and by PyTorch, in turn.

    muon.py [--csv FILE] [--rounds R] [--models NAME,...]       needs PyTorch with CUDA, and the package hgemm

`orthogonal`: the orthogonalisation of all matrices. Arm `hgemm` is hgemm.torch.newton_schulz() of their list, `torch`
that of torch.optim.Muon for each, and `compiled` the same by torch.compile. `step`: a step of torch.optim.Muon. Arm
`hgemm` has newton_schulz() in it, in the place of torch's function. bf16, five steps of the iteration; eager calls
between events; medians of rounds in which all take turns. The ratio is the median over rounds of an arm's time by
hgemm's.
"""

import argparse
import sys

import torch
from torch.optim import _muon

import hgemm.torch as ht
from arms import eager_in_turn, medians, told_of_device

COEFFICIENTS, STEPS, EPS = (3.4445, -4.7750, 2.0315), 5, 1e-7
TORCHS = _muon._zeropower_via_newtonschulz
# Layers, and the matrices of one.
MODELS = {"gpt2-124m": (12, ((2304, 768), (768, 768), (3072, 768), (768, 3072))),
          "llama-1b": (16, ((2048, 2048), (512, 2048), (512, 2048), (2048, 2048), (8192, 2048), (8192, 2048),
                            (2048, 8192))),
          "llama-8b": (32, ((4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096), (14336, 4096), (14336, 4096),
                            (4096, 14336)))}


def by_hgemm(grad, coefficients, steps, eps):
    return ht.newton_schulz(grad, steps, coefficients, eps)


def orthogonal_arms(matrices):
    torch._dynamo.reset()
    compiled = torch.compile(TORCHS, dynamic=False)

    def each(function):
        for x in matrices:
            function(x, COEFFICIENTS, STEPS, EPS)
    ours, theirs = ht.newton_schulz(matrices[:4]), [TORCHS(x, COEFFICIENTS, STEPS, EPS) for x in matrices[:4]]
    worst = max(((a.float() - b.float()).norm() / b.float().norm()).item() for a, b in zip(ours, theirs))
    if not worst < 0.03:
        raise AssertionError(f"orthogonal matrices differ by {worst:.3g} from torch's")
    return {"hgemm": lambda: ht.newton_schulz(matrices), "torch": lambda: each(TORCHS),
            "compiled": lambda: each(compiled)}


def step_arms(matrices):
    parameters = [torch.nn.Parameter(torch.randn_like(x)) for x in matrices]
    for parameter, grad in zip(parameters, matrices):
        parameter.grad = grad
    optimizer = torch.optim.Muon(parameters, lr=1e-4)

    def step(function):
        _muon._zeropower_via_newtonschulz = function
        try:
            optimizer.step()
        finally:
            _muon._zeropower_via_newtonschulz = TORCHS
    return {"hgemm": lambda: step(by_hgemm), "torch": lambda: step(TORCHS)}


def measure(what, name, arms, rounds, out):
    for run in arms.values():
        run()
        run()
    us, ratios = medians(eager_in_turn(arms, 1, rounds))
    text = "  ".join(f"{arm} {us[arm] / 1e3:.2f} ms x{ratios[arm]:.3f}" for arm in us)
    print(f"{what:10s} {name:10s} {text}", flush=True)
    for arm in us:
        out.write(f"{what},{name},{arm},{us[arm]:.1f},{ratios[arm]:.4f}\n")
    out.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", default="/dev/null")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--models", default=",".join(MODELS))
    arguments = parser.parse_args()
    torch.manual_seed(1)
    out = open(arguments.csv, "w")
    out.write(f"{told_of_device()}; bf16; ratio: median over rounds of its time by hgemm's\nwhat,model,arm,us,ratio\n")
    for name in arguments.models.split(","):
        layers, shapes = MODELS[name]
        matrices = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(layers) for shape in shapes]
        measure("orthogonal", name, orthogonal_arms(matrices), arguments.rounds, out)
        torch.cuda.empty_cache()
        measure("step", name, step_arms(matrices), arguments.rounds, out)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
