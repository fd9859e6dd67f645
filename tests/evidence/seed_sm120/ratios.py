#!/usr/bin/env python3
"""The ratio table of what hgemm-seed-sm120 --csv wrote, as Markdown: above 1 our kernel is faster."""
import csv
import sys

SEED = ["seed_bcf_dbf_rw", "seed_k_stages", "seed_tma_r_k_stages_64", "seed_tma_r_k_stages_32"]


def best(times, prefix):
    return min((us, name) for name, us in times.items() if name.startswith(prefix))


def ratio(us, ours):
    return f"{us / ours:.3f}" if us else "-"


def main(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        if line.startswith("# "):
            print(f"- {line[2:]}")
    products = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        key = f"{row['m']} x {row['n']} x {row['k']} {row['dtype']}"
        times, default = products.setdefault(key, ({}, [None]))
        times[row["kernel"]] = float(row["ours"])
        default[0] = float(row["default"]) if row["default"] else None

    print("\nMicroseconds of sm120's best kernel, and by what factor the others take longer.\n")
    print("| product | best of sm120 | µs | " + " | ".join(f"`{n}`" for n in SEED) + " | sm80's best | cublasGemmEx |")
    print("| --- " * (len(SEED) + 5) + "|")
    for key, (times, default) in products.items():
        ours, name = best(times, "sm120_")
        cells = [ratio(times.get(n), ours) for n in SEED]
        cells += [ratio(best(times, "sm80_")[0], ours), ratio(default[0], ours)]
        print(f"| {key} | `{name}` | {ours:.1f} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
