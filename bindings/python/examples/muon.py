#!/usr/bin/env python3
"""Trains a small network by torch.optim.Muon, and once more with the orthogonalisation of libhgemm in it.

    muon.py [--steps 100] [--width 256] [--device cuda]

Muon makes the update of each weight matrix orthogonal by matrix products. Two of three have symmetric results, and
hgemm.torch.newton_schulz() computes half of these. It takes one line, which is in main(). The network learns what
another one with random weights computes. Both losses are printed; they differ by the rounding of bfloat16.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import hgemm.torch

INPUTS, OUTPUTS, SAMPLES = 64, 16, 1024


def network(width: int, seed: int) -> nn.Sequential:
    """Of weight matrices alone, since Muon has no update for vectors."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(INPUTS, width, bias=False), nn.ReLU(), nn.Linear(width, width, bias=False),
                         nn.ReLU(), nn.Linear(width, OUTPUTS, bias=False))


def train(steps: int, width: int, device: str) -> list[float]:
    """The loss before each step."""
    teacher, student = network(width, seed=1).to(device), network(width, seed=2).to(device)
    inputs = torch.randn(SAMPLES, INPUTS, device=device)
    targets = teacher(inputs).detach()
    targets /= targets.std()
    optimizer = torch.optim.Muon(student.parameters(), lr=0.02, weight_decay=0)
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(student(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--width", type=int, default=256, help="of the hidden layers")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args(arguments)

    before = train(options.steps, options.width, options.device)
    torch.optim._muon._zeropower_via_newtonschulz = (
        lambda grad, coefficients, steps, eps: hgemm.torch.newton_schulz(grad, steps, coefficients, eps))
    after = train(options.steps, options.width, options.device)

    print("  step     torch  libhgemm")
    for step in sorted({*range(0, options.steps, max(1, options.steps // 10)), options.steps - 1}):
        print(f"{step:6d}  {before[step]:8.5f}  {after[step]:8.5f}")


if __name__ == "__main__":
    main()
