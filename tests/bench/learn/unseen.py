#!/usr/bin/env python3
"""Draws products that no choice was fitted to, for `hgemm-bench compare --file` and `hgemm-tune --file`.

    unseen.py layers 350 --seed 7 > layers.csv      # weights of models that are in no set of hgemm-bench, 1 to 8192 tokens
    unseen.py sizes 150 --seed 7 > sizes.csv        # any sizes: half of them multiples of 8
    unseen.py sweep > sweep.csv                     # ten weights, 129 to 513 tokens in steps of 8

Each line is M, N and K of a row-major D (M x N). None takes more than 1e12 flops or 2 GB.
"""
import argparse
import math
import random

# Hidden size, rows of Q, K and V together, columns of the attention's output, intermediate size.
MODELS = {
    "Gemma 2 9B": (3584, 8192, 4096, 14336),
    "Gemma 3 27B": (5376, 8192, 4096, 21504),
    "Phi 3 medium": (5120, 7680, 5120, 17920),
    "Phi 4 mini": (3072, 5120, 3072, 8192),
    "Mistral Nemo": (5120, 6144, 4096, 14336),
    "OLMo 2 7B": (4096, 12288, 4096, 11008),
    "GLM 4 9B": (4096, 4608, 4096, 13696),
    "StarCoder 2 15B": (6144, 7168, 6144, 24576),
    "Falcon 7B": (4544, 4672, 4544, 18176),
    "Granite 3 8B": (4096, 6144, 4096, 12800),
    "InternLM 2.5 20B": (6144, 8192, 6144, 16384),
    "Yi 34B": (7168, 9216, 7168, 20480),
    "SmolLM 2 1.7B": (2048, 6144, 2048, 8192),
    "Qwen 2.5 0.5B": (896, 1152, 896, 4864),
    "BERT large": (1024, 3072, 1024, 4096),
}

# N x K of the layers of `sweep`.
SWEPT = ((2880, 4096), (5120, 2880), (2112, 7168), (24576, 1536), (37888, 3584), (13824, 5120), (3584, 18944),
         (6144, 5120), (10240, 8192), (1536, 8960))


def weights(model):
    hidden, attention, output, intermediate = model
    return ((attention, hidden), (hidden, output), (2 * intermediate, hidden), (hidden, intermediate))


def fits(m, n, k):
    return 2 * m * n * k <= 1e12 and 2 * (m * k + n * k + m * n) <= 2e9


def log_uniform(generator, low, high):
    return round(math.exp(generator.uniform(math.log(low), math.log(high))))


def draw_layer(generator):
    n, k = generator.choice(weights(generator.choice(list(MODELS.values()))))
    return log_uniform(generator, 1, 8192), n, k


def draw_sizes(generator):
    step = generator.choice((1, 8))
    return tuple(step * max(1, log_uniform(generator, 16, 8192) // step) for _ in range(3))


def draw(count, draw_one, generator):
    products = {}
    while len(products) < count:
        product = draw_one(generator)
        if fits(*product):
            products[product] = None
    return sorted(products)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("layers", "sizes", "sweep"))
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    if arguments.what == "sweep":
        products = [(m, n, k) for n, k in SWEPT for m in range(129, 514, 8)]
    else:
        products = draw(arguments.count, draw_layer if arguments.what == "layers" else draw_sizes, generator)
    print("m,n,k")
    for product in products:
        print(",".join(map(str, product)))


main()
