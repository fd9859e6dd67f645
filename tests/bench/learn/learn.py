#!/usr/bin/env python3
"""Fits the correction networks of arch/sm90/choose/<card>/network_*.def to measured candidates.

    hgemm-candidates list < problems.txt > candidates.txt            # lines of "m n k layout"; any machine
    hgemm-bench candidates candidates.txt --out measured.txt         # on the GPU
    hgemm-candidates describe < measured.txt > seen.txt
    learn.py seen.txt [--start arch/sm90/choose] [--write arch/sm90/choose --measured 'what, when and where']
                      [--folds 2] [--only sm90_...,... --margin 0.03] [--card h100]

There are two, for problems whose operands both are contiguous along K (tn) and for all others (other). They were
fitted to tests/bench/results/h200_sm90_ways.txt.xz, which has lines such as those of measured.txt: medians of 3 to 15
CUDA graphs over so many sets of operands that they take 160 MB, with normal data and results apart from operands,
since what results are written over draws less power. The graphs of a problem's candidates took turns, the later ones
in random order. Kernels and settings have older names in this file: old_names.py in front of `describe` knows them.

seen.txt has a line for each candidate: m n k layout kernel microseconds, then what the network sees. Needs numpy and
jax.

What is minimised is how much longer the chosen candidate takes than the fastest one measured (a soft choice, so that
it has a slope), and the error of each candidate beside the others of its problem. --folds leaves a quarter of the
problems out at a time and says how well they are chosen. --start goes on from the h200/network_*.def of a folder, in
small steps, so that choices change where there is a reason to; a kernel without numbers there begins with those of its
nearest relative. --only goes on with the numbers of some kernels and holds all else, so that choices among other
kernels stay; it looks at the problems with which these kernels were measured, and takes them to be slower by --margin,
so that they are chosen where it is plain that they are faster. --card goes on with the biases and all kernels' numbers
alone, held near where they start, and writes them as those of another card: h100/network_*.def from
h100_sm90_ways.txt.xz, and `hgemm-candidates --memory 3352`.

What is written has numbers of the kernels that had them before or were measured; without, the model alone judges a
kernel.
"""
import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from networks import FEATURES, KERNELS, TRAITS, UNITS, Network

NUMBERS = {kernel.name: number for number, kernel in enumerate(KERNELS)}  # as `hgemm-candidates describe` has them


class Candidates:
    """Measured candidates; one measured twice counts once, with the mean of both."""

    def __init__(self, seen):
        candidate, index = np.unique(np.delete(seen, 5, axis=1), axis=0, return_inverse=True)
        index = index.ravel()
        self.times = np.bincount(index)
        log_us = np.bincount(index, np.log(seen[:, 5])) / self.times
        self.problems, self.problem = np.unique(candidate[:, :4], axis=0, return_inverse=True)
        self.problem = self.problem.ravel()
        self.kernel, self.features = candidate[:, 4].astype(int), candidate[:, 5:]
        assert self.features.shape[1] == len(FEATURES)
        best = np.full(len(self.problems), np.inf)
        np.minimum.at(best, self.problem, log_us)
        self.slower = log_us - best[self.problem]  # than the fastest, logarithm
        self.off = log_us - self.features[:, 0]    # of the model, logarithm
        close = np.expm1(self.slower) / 0.15
        weight = np.sqrt(self.times) / (1 + close * close)
        self.weight = weight / np.bincount(self.problem, weight)[self.problem]
        self.mean, self.deviation = self.features.mean(0), self.features.std(0)
        self.deviation[self.deviation == 0] = np.inf  # nothing to learn from

    def loss_of_choices(self, off):
        """How much slower the candidate with the lowest estimate is, of each problem."""
        order = np.lexsort((self.features[:, 0] + off, self.problem))
        first = np.r_[True, self.problem[order][1:] != self.problem[order][:-1]]
        return self.slower[order[first]]


def network(p, features, kernel):
    seen = jnp.concatenate([features, p["traits"][kernel]], 1)
    return jax.nn.relu(seen @ p["weights"] + p["biases"]) @ p["shares"]


def scaled_start(start, candidates):
    """What fit() goes on from: features are scaled there, so that their weights and the biases differ."""
    weights = np.array(start.feature_weights)
    deviation = np.where(np.isinf(candidates.deviation), 0, candidates.deviation)
    p = {"traits": [start.numbers_of(kernel) for kernel in KERNELS],
         "weights": np.r_[deviation[:, None] * weights, start.trait_weights],
         "biases": start.biases + candidates.mean @ weights, "shares": start.shares}
    return {name: jnp.array(value, jnp.float32) for name, value in p.items()}


def fit(candidates, use, seed=0, steps=1000, start=None, only=None, card=False):
    """`use`: 1 for each problem to learn from, else 0. `only`: kernels whose numbers are fitted, all else is held.
    `card`: biases and numbers are fitted, all else is held."""
    problems = len(candidates.problems)
    scaled = jnp.array((candidates.features - candidates.mean) / candidates.deviation, jnp.float32)
    predicted, off, slower, weight = (jnp.array(a, jnp.float32) for a in
                                      (candidates.features[:, 0], candidates.off, candidates.slower,
                                       candidates.weight))
    problem, kernel, use = jnp.array(candidates.problem), jnp.array(candidates.kernel), jnp.array(use, jnp.float32)
    keys = jax.random.split(jax.random.PRNGKey(seed), 4)
    inputs = len(FEATURES) + TRAITS
    p = {"traits": jax.random.normal(keys[0], (len(KERNELS), TRAITS)) * 0.3,
         "weights": jax.random.normal(keys[1], (inputs, UNITS)) / inputs ** 0.5,
         "biases": jnp.zeros(UNITS), "shares": jax.random.normal(keys[2], (UNITS,)) * 0.1}
    p, fastest = (start, 0.002) if start else (p, 0.012)
    moves = {name: jnp.full_like(value, only is None) for name, value in p.items()}
    if only:
        moves["traits"] = moves["traits"].at[jnp.array(only)].set(1)
        fastest = 0.02
    if card:
        moves = {name: jnp.full_like(value, name in ("biases", "traits")) for name, value in p.items()}
        fastest = 0.004

    def held(p):
        """Keeps numbers small, or where they were."""
        if card:
            return 0.3 * sum(((p[name] - start[name]) ** 2).mean() for name in ("biases", "traits"))
        return 3e-5 * sum((v ** 2).sum() for v in p.values())

    def of_problems(values):
        return jax.ops.segment_sum(values, problem, problems)

    def loss(p, noise):
        answer = network(p, scaled + noise, kernel)
        mean = of_problems(weight * (off - answer))
        beside = off - answer - mean[problem]
        cost = -(predicted + answer) / 0.03
        chance = jnp.exp(cost - jax.ops.segment_max(cost, problem, problems)[problem])
        chance /= of_problems(chance)[problem]
        terms = weight * beside ** 2 + 0.3 * chance * slower
        return ((use[problem] * terms).sum() + 0.2 * (use * mean ** 2).sum()) / use.sum() + held(p)

    @jax.jit
    def step(p, first, second, key, t):
        slope = jax.grad(loss)(p, 0.02 * jax.random.normal(key, scaled.shape))
        slope = {name: value * moves[name] for name, value in slope.items()}
        first = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, first, slope)
        second = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, second, slope)
        rate = fastest * (1 - t / steps) + 1e-4
        p = jax.tree.map(lambda a, b, c: a - rate * (b / (1 - 0.9 ** t)) /
                         (jnp.sqrt(c / (1 - 0.99 ** t)) + 1e-8), p, first, second)
        return p, first, second

    first, second, key = jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), keys[3]
    for t in range(1, steps + 1):
        key, drawn = jax.random.split(key)
        p, first, second = step(p, first, second, drawn, t)
        if t % 100 == 0:
            print(f"\r{t} of {steps} steps", end="", flush=True)
    print("\r", end="")
    return p, np.array(network(p, scaled, kernel))


def fitted_to(candidates, measured):
    return (f"fitted to {candidates.times.sum():,} measurements of {len(candidates.problems):,} problems: "
            f"{measured}.")


def unscaled(p, candidates, start, a):
    """The fitted network as a file has it, where features are not scaled: with numbers of the kernels that had them
    before or were measured."""
    p = {name: np.array(value, float) for name, value in p.items()}
    measured = {KERNELS[number].name for number in np.unique(candidates.kernel)}
    known = measured | (set(start.kernels) if start else set())
    kernels = {kernel.name: traits for kernel, traits in zip(KERNELS, p["traits"]) if kernel.name in known}
    head = ["Written by tests/bench/learn/learn.py, " + fitted_to(candidates, a.measured)]
    if a.card:
        return Network(head, p["biases"] - candidates.mean @ np.array(start.feature_weights), kernels)
    weights = p["weights"][:len(FEATURES)] / candidates.deviation[:, None]
    return Network(head, p["biases"] - candidates.mean @ weights, kernels, weights, p["weights"][len(FEATURES):],
                   p["shares"])


def add_only(network, p, candidates, only, measured):
    """Gives the network these kernels' numbers, and says so at its head."""
    names = [KERNELS[number].name for number in only]
    network.head.append(f"{', '.join(names)}, all else held: {fitted_to(candidates, measured)}")
    network.kernels.update(zip(names, np.array(p["traits"], float)[only]))


def with_kernels(seen, only, margin):
    """The candidates of problems with which any of these kernels was measured; the kernels' own slower by `margin`."""
    own = np.isin(seen[:, 4], only)
    problems = {tuple(p) for p in seen[own, :4]}
    seen[own, 5] *= 1 + margin
    return seen[[tuple(p) in problems for p in seen[:, :4]]]


def learn(seen, name, a):
    """Fits one network; prints what choices cost."""
    only = [NUMBERS[kernel] for kernel in a.only.split(",")] if a.only else None
    seen = with_kernels(seen, only, a.margin) if only else seen
    if len(seen) == 0:
        print(f"{name}: nothing was measured")
        return
    candidates = Candidates(seen)
    network = Network.read(Path(a.start) / "h200" / f"network_{name}.def") if a.start else None
    start = scaled_start(network, candidates) if network else None
    print(f"{name}: {len(candidates.kernel)} candidates of {len(candidates.problems)} problems, the model's choices "
          f"cost {candidates.loss_of_choices(0).mean():.2%} over the fastest")
    fold = np.random.RandomState(0).randint(0, 4, len(candidates.problems))
    for left_out in range(a.folds):
        _, off = fit(candidates, fold != left_out, left_out, a.steps, start, only, bool(a.card))
        costs = candidates.loss_of_choices(off)
        print(f"learnt {costs[fold != left_out].mean():.2%}, left out {costs[fold == left_out].mean():.2%}")
    if a.write:
        p, off = fit(candidates, np.ones(len(candidates.problems)), 0, a.steps, start, only, bool(a.card))
        print(f"all of them {candidates.loss_of_choices(off).mean():.2%}", flush=True)
        if only:
            add_only(network, p, candidates, only, a.measured)
        else:
            network = unscaled(p, candidates, network, a)
        path = Path(a.write) / (a.card or "h200") / f"network_{name}.def"
        path.parent.mkdir(parents=True, exist_ok=True)
        network.write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seen")
    parser.add_argument("--start", metavar="FOLDER")
    parser.add_argument("--write", metavar="FOLDER")
    parser.add_argument("--measured", default="", metavar="TEXT")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2200)
    parser.add_argument("--only", metavar="KERNELS", default="")
    parser.add_argument("--margin", type=float, default=0)
    parser.add_argument("--card", metavar="NAME", default="")
    a = parser.parse_args()
    if (a.only or a.card) and not a.start:
        parser.error("--only and --card go on from networks that --start names")
    if a.only and a.card:
        parser.error("--card fits all kernels, --only some")
    if a.margin and not a.only:
        parser.error("--margin is for the kernels that --only names")
    if unknown := {name for name in a.only.split(",") if name and name not in NUMBERS}:
        parser.error(f"kernels.def has no {', '.join(sorted(unknown))}")
    seen = np.loadtxt(a.seen, ndmin=2)
    is_tn = seen[:, 3] == 0
    learn(seen[is_tn], "tn", a)
    learn(seen[~is_tn], "other", a)


if __name__ == "__main__":
    main()
