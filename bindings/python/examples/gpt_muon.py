#!/usr/bin/env python3
"""Trains a small GPT on the characters of a text, with Muon as torch has it and with libhgemm in it, and draws both.

    gpt_muon.py [--text FILE] [--steps 200] [--width 128] [--layers 2] [--device cuda] [--picture losses.svg]

torch.optim.Muon trains the weight matrices of the blocks, AdamW all else. Both runs begin with the same weights and
see the same batches. hgemm.torch.newton_schulz() computes what Muon does in between by half of the work where
matrices are large (see muon.py). The losses differ by the rounding of bfloat16; a table and a picture show them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn

import hgemm.torch

CONTEXT, BATCH, HEADS = 64, 16, 4


class Block(nn.Module):
    """Attention and a layer of four times the width, each added to what comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before_attention, self.before_layer = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        parts = self.attention(self.before_attention(x)).view(rows, length, 3, HEADS, width // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.before_layer(x))))


class Gpt(nn.Module):
    def __init__(self, characters: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding, self.position = nn.Embedding(characters, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.embedding(tokens) + self.position(places))))


def train(tokens: Tensor, characters: int, options: argparse.Namespace) -> list[float]:
    """The loss before each step."""
    torch.manual_seed(1)
    model = Gpt(characters, options.width, options.layers).to(tokens.device)
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
    optimizers = (torch.optim.Muon(matrices, lr=0.02, weight_decay=0), torch.optim.AdamW(others, lr=3e-3))
    losses = []
    for _ in range(options.steps):
        first = torch.randint(len(tokens) - CONTEXT, (BATCH, 1))
        batch = tokens[(first + torch.arange(CONTEXT + 1)).to(tokens.device)]
        loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    return losses


def draw(curves: dict[str, list[float]]) -> str:
    """An SVG of the losses over the steps: the curve that is drawn first is the wide one."""
    width, height, left, bottom = 640, 360, 50, 320
    most, least = max(map(max, curves.values())), min(map(min, curves.values()))
    scale = (bottom - 20) / ((most - least) or 1)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for i in range(5):
        y = bottom - (bottom - 20) * i / 4
        parts.append(f'<path d="M{left} {y:.1f}H{width - 10}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{least + (most - least) * i / 4:.2f}</text>')
    for (name, losses), (color, stroke), y in zip(curves.items(), (("#f5a623", 5), ("#1f4e9e", 1.5)), (40, 58)):
        step = (width - left - 10) / max(len(losses) - 1, 1)
        points = " ".join(f"{left + i * step:.1f},{bottom - (loss - least) * scale:.1f}" for i, loss in enumerate(losses))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{stroke}"/>'
                     f'<text x="{width - 20}" y="{y}" text-anchor="end" fill="{color}">{name}</text>')
    parts.append(f'<text x="{(left + width) / 2}" y="{height - 12}" text-anchor="middle">'
                 f'loss over {len(next(iter(curves.values())))} steps</text></svg>')
    return "\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, default=Path(__file__).with_name("README.md"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--picture", type=Path, default=Path("losses.svg"))
    options = parser.parse_args(arguments)

    text = options.text.read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    tokens = torch.tensor([alphabet.index(character) for character in text], device=options.device)
    losses = {"torch": train(tokens, len(alphabet), options)}
    with mock.patch.object(torch.optim._muon, "_zeropower_via_newtonschulz",
                           newton_schulz):
        losses["libhgemm"] = train(tokens, len(alphabet), options)

    print("  step     torch  libhgemm")
    for step in sorted({*range(0, options.steps, max(1, options.steps // 10)), options.steps - 1}):
        print(f"{step:6d}  {losses['torch'][step]:8.5f}  {losses['libhgemm'][step]:8.5f}")
    options.picture.write_text(draw(losses), encoding="utf-8")
    print(f"{options.picture} has both curves")


def newton_schulz(grad: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """With the arguments in torch's order."""
    return hgemm.torch.newton_schulz(grad, steps, coefficients, eps)


if __name__ == "__main__":
    main()
