#!/usr/bin/env python3
"""Times hgemm.jax.ragged_dot and its gradients beside jax.lax.ragged_dot, on a GPU.

    ragged.py [--csv FILE] [--revision NAME] [--rows N,...] [--layer NAME,...]

Needs JAX with CUDA, and the package hgemm. Layers of mixtures of experts, bf16: `rows` rows in all, each of an expert
at random. Forward, and both gradients. Each function has a process of its own for its peak of memory. Times are medians
of jitted calls, which include what the host does. Peaks are of JAX's allocator, beside the bytes of operands (the
gradient of the result is one, in both) and results.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp

# Name: experts, n, k.
LAYERS = {
    "mixtral-up": (8, 28672, 4096),
    "mixtral-down": (8, 4096, 14336),
    "qwen3-up": (128, 1536, 2048),
    "qwen3-down": (128, 2048, 768),
    "gpt-oss-up": (32, 5760, 2880),
    "deepseek-up": (32, 4096, 7168),
}
ROWS = (256, 4096, 16384)
ARMS = ("hgemm", "jax")
SECONDS = 60  # for a process


def time_us(run, *operands):
    """Median of calls for two seconds."""
    times, end = [], time.monotonic() + 2
    while len(times) < 5 or (time.monotonic() < end and len(times) < 200):
        start = time.perf_counter()
        jax.block_until_ready(run(*operands))
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


@partial(jax.jit, static_argnums=(0, 1))
def waves(shape, speed):
    """As good as random, and made without other memory."""
    at = sum(jax.lax.broadcasted_iota(jnp.float32, shape, i) * (speed + i) for i in range(len(shape)))
    return jnp.sin(at).astype(jnp.bfloat16)


def measure(arm, layer, rows):
    """In a process of its own. Forward, then both gradients: microseconds, peak and least bytes, the mean magnitude."""
    experts, n, k = LAYERS[layer]
    a, b, grad = waves((rows, k), 0.71), waves((experts, k, n), 0.37), waves((rows, n), 0.53)
    sizes = jnp.asarray(random.Random(rows).choices(range(experts), k=rows))
    sizes = jnp.bincount(sizes, length=experts).astype(jnp.int32)
    if arm == "hgemm":
        from hgemm.jax import ragged_dot
    else:
        ragged_dot = jax.lax.ragged_dot

    def forward(a, b):
        return ragged_dot(a, b, sizes)

    def gradients(a, b, grad):
        return jax.vjp(forward, a, b)[1](grad)

    for run, operands in (jax.jit(forward), (a, b)), (jax.jit(gradients), (a, b, grad)):
        results = jax.block_until_ready(run(*operands))
        peak = jax.local_devices()[0].memory_stats()["peak_bytes_in_use"]
        least = sum(each.nbytes for each in (a, b, grad, sizes, *jax.tree.leaves(results)))
        magnitude = statistics.mean(float(jnp.abs(each).mean(dtype=jnp.float32)) for each in jax.tree.leaves(results))
        del results
        print(json.dumps([time_us(run, *operands), peak, least, magnitude]), flush=True)


def in_process(*arguments):
    """What measure() prints, as far as it came in time."""
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    command = [sys.executable, __file__, "--measure", json.dumps(arguments)]
    try:
        done = subprocess.run(command, timeout=SECONDS, env=environment, capture_output=True, text=True)
        said, error = done.stdout, "" if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2]
    except subprocess.TimeoutExpired as late:
        said, error = (late.stdout or b"").decode(), f"longer than {SECONDS} s"
    if error:
        print(*arguments, error, flush=True)
    found = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    return [*found, None, None][:2]


def describe(revision):
    device = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True).stdout.strip()
    return f"# {device}, JAX {jax.__version__}, {time.strftime('%Y-%m-%d')}, revision {revision}; bf16\n"


def row_of(layer, rows, what, ours, theirs):
    cells = [layer, str(rows), what]
    for found in (ours, theirs):
        cells += ["", ""] if found is None else [f"{found[0]:.1f}", f"{found[1] / 2**20:.0f}"]
    cells.append("" if ours is None else f"{ours[2] / 2**20:.0f}")
    if ours is None or theirs is None:
        return [*cells, ""]
    if abs(ours[3] - theirs[3]) > 0.01 * theirs[3]:
        raise AssertionError(f"{layer}, {rows} rows, {what}: results of {ours[3]} and {theirs[3]} on average")
    return [*cells, f"{theirs[0] / ours[0]:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--csv", default="/dev/null")
    parser.add_argument("--revision", default="unknown")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--layer", default=",".join(LAYERS))
    arguments = parser.parse_args()
    if arguments.measure:
        measure(*json.loads(arguments.measure))
        return 0
    with open(arguments.csv, "w") as out:
        out.write(describe(arguments.revision))
        out.write("layer,rows,what,hgemm_us,hgemm_peak_mib,jax_us,jax_peak_mib,least_mib,ratio\n")
        for layer in arguments.layer.split(","):
            for rows in map(int, arguments.rows.split(",")):
                found = [in_process(arm, layer, rows) for arm in ARMS]
                for what, ours, theirs in zip(("forward", "gradients"), *found):
                    cells = row_of(layer, rows, what, ours, theirs)
                    out.write(",".join(cells) + "\n")
                    out.flush()
                    print("%-13s%6s %-10s hgemm %9s us %6s MiB, jax %9s us %6s MiB, least %6s MiB; ratio %s"
                          % tuple(cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
