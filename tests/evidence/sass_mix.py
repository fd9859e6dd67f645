#!/usr/bin/env python3
"""Counts what sm100's kernels became in machine code, a table line a kernel:

    cuobjdump -sass build/arch/sm100_sm100.fatbin | tests/evidence/sass_mix.py > tests/bench/results/sm100_sass.md
"""
import collections
import re
import sys

COLUMNS = ["UTCHMMA", "UTCHMMA.2CTA", "UTCBAR", "UTCATOMSWS", "LDTM", "UTMALDG", "UTMALDG.2CTA", "UTMASTG",
           "UGETNEXTWORKID", "UCGABAR", "SYNCS"]
FUNCTION = re.compile(r"Function : (\S+)")
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")


def column_of(opcode):
    """The column that counts an opcode with its modifiers, or None."""
    parts = opcode.split(".")
    pair = parts[0] + ".2CTA"
    if "2CTA" in parts and pair in COLUMNS:
        return pair
    return next((name for name in COLUMNS if parts[0].startswith(name)), None)


def main():
    kernels = {}
    for line in sys.stdin:
        if found := FUNCTION.search(line):
            counts = kernels.setdefault(found[1], collections.Counter())
        elif kernels and (found := INSTRUCTION.match(line)):
            counts["instructions"] += 1
            counts[column_of(found[1])] += 1
    columns = ["instructions"] + COLUMNS
    print("# Instructions of sm100's kernels, as ptxas wrote them for sm_100f\n")
    print("| kernel | " + " | ".join(columns) + " |")
    print("|---|" + "--:|" * len(columns))
    for kernel in sorted(kernels):
        print(f"| `{kernel}` | " + " | ".join(str(kernels[kernel][name]) for name in columns) + " |")


if __name__ == "__main__":
    main()
