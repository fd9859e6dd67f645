#!/usr/bin/env python3
"""Trains a small network by Muon of optax, and once more with the orthogonalisation of libhgemm in it.

    optax_muon.py [--steps 100] [--width 256]

Needs JAX and optax 0.2.8. As muon.py for PyTorch: hgemm.jax.newton_schulz() takes the place of optax's function by one
line, which is in main(). Both losses are printed; they differ by the rounding, since libhgemm multiplies in bfloat16.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import optax
from jax import Array
from optax.contrib import _muon

import hgemm.jax

INPUTS, OUTPUTS, SAMPLES = 64, 16, 1024
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # optax's own, which it hands on as a traced array


def network(width: int, seed: int) -> list[Array]:
    """Weight matrices alone: what is no matrix optax trains by Adam."""
    sizes = (INPUTS, width, width, OUTPUTS)
    keys = jax.random.split(jax.random.key(seed), len(sizes) - 1)
    return [jax.random.normal(key, (k, n)) / k**0.5 for key, k, n in zip(keys, sizes, sizes[1:])]


def outputs(weights: list[Array], x: Array) -> Array:
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return x @ weights[-1]


def train(steps: int, width: int) -> list[float]:
    """The loss before each step."""
    inputs = jax.random.normal(jax.random.key(3), (SAMPLES, INPUTS))
    targets = outputs(network(width, seed=1), inputs)
    targets /= targets.std()
    optimizer = optax.contrib.muon(0.02, ns_coeffs=COEFFICIENTS)

    @jax.jit
    def step(weights: list[Array], state: optax.OptState) -> tuple[list[Array], optax.OptState, Array]:
        loss, gradients = jax.value_and_grad(lambda w: jnp.square(outputs(w, inputs) - targets).mean())(weights)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    weights = network(width, seed=2)
    state = optimizer.init(weights)
    losses = []
    for _ in range(steps):
        weights, state, loss = step(weights, state)
        losses.append(float(loss))
    return losses


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--width", type=int, default=256, help="of the hidden layers")
    options = parser.parse_args(arguments)

    before = train(options.steps, options.width)
    _muon.orthogonalize_via_newton_schulz = (
        lambda x, coefficients, steps, kind, eps, axes: hgemm.jax.newton_schulz(x, steps, COEFFICIENTS, eps))
    after = train(options.steps, options.width)

    print("  step     optax  libhgemm")
    for step in sorted({*range(0, options.steps, max(1, options.steps // 10)), options.steps - 1}):
        print(f"{step:6d}  {before[step]:8.5f}  {after[step]:8.5f}")


if __name__ == "__main__":
    main()
