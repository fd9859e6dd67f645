#!/usr/bin/env python3
"""Fits the networks of arch/sm90/learned_*.def to measured ways to run products.

    hgemm-ways list < products.txt > ways.txt           # lines of "m n k layout"; any machine
    hgemm-bench ways ways.txt --out measured.txt        # on the GPU
    hgemm-ways describe < measured.txt > seen.txt
    learn.py seen.txt [--start arch/sm90] [--write arch/sm90 --measured 'what, when and where'] [--folds 2]
                      [--only sm90_row,... --margin 0.03] [--card h100]

There are two, for products whose operands both are contiguous along k and for all others. They were fitted to
tests/bench/results/h200_sm90_ways.txt.xz, lines such as measured.txt has: medians of 3 to 15 CUDA graphs over so many sets of
operands that they take 160 MB, with normal data and results apart from operands, since what results are written over draws
less power. The graphs of a product's ways took turns, of late in random order.

seen.txt has a line for each way: m n k layout row microseconds, then what the network sees. Needs numpy and jax.

What is minimised is how much longer the chosen way takes than the fastest one measured (a soft choice, so
that it has a slope), and the error of each way beside the others of its product. --folds leaves a quarter
of the products out at a time and says how well they are chosen. --start goes on from networks that were written
before, in small steps, so that choices change where there is a reason to. --only goes on with the numbers of some rows
and holds all else, so that choices among other rows stay; it looks at the products with which these rows were measured,
and takes them to be slower by --margin, so that they are chosen where it is plain that they are faster. --card goes on with
the biases and all rows' numbers alone, held near where they start, and writes them as those of another card: learned_h100_*.def
from h100_sm90_ways.txt.xz, and `hgemm-ways --memory 3352`.
"""
import argparse
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

ARCH = Path(__file__).resolve().parents[3] / "arch" / "sm90"
UNITS, TRAITS = map(int, re.search(r"units = (\d+), traits = (\d+);", (ARCH / "learned.cpp").read_text()).groups())
FEATURES = re.findall(r"\w+", re.search(r"enum \{(.*?)count", (ARCH / "learned.hpp").read_text(), re.S)[1])
KERNELS = re.findall(r"^KERNEL \(\s*(\w+)", (ARCH / "kernels.def").read_text(), re.M)


class Ways:
    """Measured ways; a way measured twice counts once, with the mean of both."""

    def __init__(self, seen):
        way, index = np.unique(np.delete(seen, 5, axis=1), axis=0, return_inverse=True)
        index = index.ravel()
        self.times = np.bincount(index)
        log_us = np.bincount(index, np.log(seen[:, 5])) / self.times
        self.products, self.product = np.unique(way[:, :4], axis=0, return_inverse=True)
        self.product = self.product.ravel()
        self.row, self.features = way[:, 4].astype(int), way[:, 5:]
        assert self.features.shape[1] == len(FEATURES)
        best = np.full(len(self.products), np.inf)
        np.minimum.at(best, self.product, log_us)
        self.slower = log_us - best[self.product]  # than the fastest, logarithm
        self.off = log_us - self.features[:, 0]    # of the model, logarithm
        close = np.expm1(self.slower) / 0.15
        weight = np.sqrt(self.times) / (1 + close * close)
        self.weight = weight / np.bincount(self.product, weight)[self.product]
        self.mean, self.deviation = self.features.mean(0), self.features.std(0)
        self.deviation[self.deviation == 0] = np.inf  # nothing to learn from

    def loss_of_choices(self, off):
        """How much slower the way with the lowest estimate is, of each product."""
        order = np.lexsort((self.features[:, 0] + off, self.product))
        first = np.r_[True, self.product[order][1:] != self.product[order][:-1]]
        return self.slower[order[first]]


def network(p, features, row):
    seen = jnp.concatenate([features, p["traits"][row]], 1)
    return jax.nn.relu(seen @ p["weights"] + p["biases"]) @ p["shares"]


def read(path, ways):
    """What write() has written. A kernel that was not known then begins where the kernel in front of it does."""
    text = path.read_text()
    weights = np.array(re.findall(r"(-?\d+\.\d+)f", text[:text.index('"')]), float)
    traits = {name: np.array(re.findall(r"(-?[\d.]+)f", t), float)
              for name, t in re.findall(r'\{"(\w+)", \{(.*?)\}', text, re.S)}
    matrix, (biases, shares) = weights[:-2 * UNITS].reshape(-1, UNITS), weights[-2 * UNITS:].reshape(2, UNITS)
    seen = matrix[:len(FEATURES)]
    rows = []
    for name in KERNELS:
        rows.append(traits[name] if name in traits else rows[-1])
    return {"traits": jnp.array(rows, jnp.float32),
            "weights": jnp.array(np.r_[np.where(np.isinf(ways.deviation), 0, ways.deviation)[:, None] * seen,
                                       matrix[len(FEATURES):]], jnp.float32),
            "biases": jnp.array(biases + ways.mean @ seen, jnp.float32), "shares": jnp.array(shares, jnp.float32)}


def fit(ways, use, seed=0, steps=1000, start=None, only=None, card=False):
    """`use`: 1 for each product to learn from, else 0. `only`: rows whose numbers are fitted, all else is held. `card`: biases and
    numbers are fitted, all else is held."""
    products = len(ways.products)
    scaled = jnp.array((ways.features - ways.mean) / ways.deviation, jnp.float32)
    predicted, off, slower, weight = (jnp.array(a, jnp.float32) for a in
                                      (ways.features[:, 0], ways.off, ways.slower, ways.weight))
    product, row, use = jnp.array(ways.product), jnp.array(ways.row), jnp.array(use, jnp.float32)
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

    def of_products(values):
        return jax.ops.segment_sum(values, product, products)

    def loss(p, noise):
        answer = network(p, scaled + noise, row)
        mean = of_products(weight * (off - answer))
        beside = off - answer - mean[product]
        cost = -(predicted + answer) / 0.03
        chance = jnp.exp(cost - jax.ops.segment_max(cost, product, products)[product])
        chance /= of_products(chance)[product]
        terms = weight * beside ** 2 + 0.3 * chance * slower
        return ((use[product] * terms).sum() + 0.2 * (use * mean ** 2).sum()) / use.sum() + held(p)

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
    return p, np.array(network(p, scaled, row))


def numbers(values):
    """Four decimals, twelve a line."""
    texts = [f"{v:.4f}f" for v in values]
    lines = [", ".join(texts[i:i + 12]) for i in range(0, len(texts), 12)]
    return "{" + (",\n     ").join(lines) + "}"


def table(rows):
    return "{\n    " + ",\n    ".join(rows) + "}"


def write(path, ways, p, measured):
    """Features are not scaled in the library: their weights are, and the biases hold their means."""
    p = {name: np.array(value, float) for name, value in p.items()}
    weights = p["weights"][:len(FEATURES)] / ways.deviation[:, None]
    biases = p["biases"] - ways.mean @ weights
    network = ",\n     ".join((
        table(f"// {name}{chr(10)}    {numbers(w)}" for name, w in zip(FEATURES, weights)),
        table(map(numbers, p["weights"][len(FEATURES):])), numbers(biases), numbers(p["shares"]),
        table(f'{{"{name}", {numbers(t)}}}' for name, t in zip(KERNELS, p["traits"]))))
    path.write_text(f"""// Written by tests/bench/learn/learn.py, fitted to {ways.times.sum():,} measurements of
// {len(ways.products):,} products: {measured}.
{{{network}}}
""")


def write_only(path, ways, p, rows, measured):
    """Puts these rows' numbers in the place of those that the file has, and says so at its head."""
    names = ", ".join(KERNELS[row] for row in rows)
    text = path.read_text().replace("\n{", f"""
// {names}, all else held: to {ways.times.sum():,}
// measurements of {len(ways.products):,} products: {measured}.
{{""", 1)
    for row in rows:
        line = f'{{"{KERNELS[row]}", {numbers(np.array(p["traits"][row], float))}}}'
        text = re.sub(rf'\{{"{KERNELS[row]}", \{{.*?\}}\}}', line, text, flags=re.S)
    path.write_text(text)


def write_card(path, ways, p, measured):
    """The biases and the rows' numbers."""
    p = {name: np.array(value, float) for name, value in p.items()}
    biases = p["biases"] - ways.mean @ (p["weights"][:len(FEATURES)] / ways.deviation[:, None])
    rows = table(f'{{"{name}", {numbers(t)}}}' for name, t in zip(KERNELS, p["traits"]))
    path.write_text(f"""// Written by tests/bench/learn/learn.py, fitted to {ways.times.sum():,} measurements of
// {len(ways.products):,} products: {measured}.
{{{numbers(biases)},
 {rows}}}
""")


def with_rows(seen, rows, margin):
    """The ways of products with which any of these rows was measured; the rows' own slower by `margin`."""
    own = np.isin(seen[:, 4], rows)
    products = {tuple(p) for p in seen[own, :4]}
    seen[own, 5] *= 1 + margin
    return seen[[tuple(p) in products for p in seen[:, :4]]]


def learn(seen, name, a):
    """Fits one network; prints what choices cost."""
    only = [KERNELS.index(row) for row in a.only.split(",")] if a.only else None
    ways = Ways(with_rows(seen, only, a.margin) if only else seen)
    start = read(Path(a.start) / f"learned_{name}.def", ways) if a.start else None
    print(f"{name}: {len(ways.row)} ways of {len(ways.products)} products, the model's choices cost "
          f"{ways.loss_of_choices(0).mean():.2%} over the fastest")
    fold = np.random.RandomState(0).randint(0, 4, len(ways.products))
    for left_out in range(a.folds):
        _, off = fit(ways, fold != left_out, left_out, a.steps, start, only, bool(a.card))
        costs = ways.loss_of_choices(off)
        print(f"learnt {costs[fold != left_out].mean():.2%}, left out {costs[fold == left_out].mean():.2%}")
    if a.write:
        p, off = fit(ways, np.ones(len(ways.products)), 0, a.steps, start, only, bool(a.card))
        print(f"all of them {ways.loss_of_choices(off).mean():.2%}", flush=True)
        path = Path(a.write) / (f"learned_{a.card}_{name}.def" if a.card else f"learned_{name}.def")
        if a.card:
            write_card(path, ways, p, a.measured)
        elif only:
            write_only(path, ways, p, only, a.measured)
        else:
            write(path, ways, p, a.measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seen")
    parser.add_argument("--start", metavar="FOLDER")
    parser.add_argument("--write", metavar="FOLDER")
    parser.add_argument("--measured", default="", metavar="TEXT")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2200)
    parser.add_argument("--only", metavar="ROWS", default="")
    parser.add_argument("--margin", type=float, default=0)
    parser.add_argument("--card", metavar="NAME", default="")
    a = parser.parse_args()
    if (a.only or a.card) and not a.start:
        parser.error("--only and --card go on from networks that --start names")
    if a.only and a.card:
        parser.error("--card fits all rows, --only some")
    if a.margin and not a.only:
        parser.error("--margin is for the rows that --only names")
    seen = np.loadtxt(a.seen)
    along_k = seen[:, 3] == 0  # tn
    learn(seen[along_k], "along_k", a)
    learn(seen[~along_k], "others", a)


if __name__ == "__main__":
    main()
