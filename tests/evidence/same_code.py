#!/usr/bin/env python3
"""Compares the machine code of two builds, kernel by kernel and byte by byte.

usage: same_code.py <old image>... -- <new image>...    images: cubins, or fatbins that are not compressed

The section of a kernel in a cubin holds its instructions, control bits included, and its header the registers a
thread takes. Kernels of version 0.1 are compared with those that replace them. Exits with 1 if one of them differs
or has no counterpart, after a line about each.
"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench" / "learn"))
from old_names import new_names  # noqa: E402

ELF = b"\x7fELF\x02\x01\x01"
CUDA = 190  # e_machine
INSTRUCTION = 16  # bytes


def cubins(data):
    """Where cubins begin in a file's bytes."""
    at = data.find(ELF)
    while at >= 0:
        if struct.unpack_from("<H", data, at + 18)[0] == CUDA:
            yield at
        at = data.find(ELF, at + 1)


def kernels(path):
    """(flags of the cubin, which tell its architecture; kernel) -> (registers, code)."""
    data = Path(path).read_bytes()
    found = {}
    for at in cubins(data):
        table, flags = struct.unpack_from("<Q", data, at + 40)[0], struct.unpack_from("<I", data, at + 48)[0]
        size, count, names_index = struct.unpack_from("<3H", data, at + 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + table + i * size) for i in range(count)]
        names = at + sections[names_index][4]
        for name, _, _, _, offset, length, _, info, _, _ in sections:
            text = data[names + name:data.index(b"\0", names + name)].decode()
            if text.startswith(".text."):
                code = data[at + offset:at + offset + length]
                found[flags, new_names(text.removeprefix(".text."))] = (info >> 24, code)
    if not found:
        sys.exit(f"{path} has no cubin, or a compressed one")
    return found


def differing(old, new):
    pairs = zip(range(0, len(old), INSTRUCTION), range(0, len(new), INSTRUCTION))
    return sum(old[i:i + INSTRUCTION] != new[i:i + INSTRUCTION] for i, _ in pairs)


def main(arguments):
    if "--" not in arguments:
        sys.exit(__doc__)
    at = arguments.index("--")
    old, new = {}, {}
    for table, images in (old, arguments[:at]), (new, arguments[at + 1:]):
        for image in images:
            table.update(kernels(image))
    wrong = 0
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) == new.get(key):
            continue
        wrong += 1
        if key not in old or key not in new:
            print(f"{key[1]}: only in the {'old' if key in old else 'new'} build")
            continue
        (old_registers, old_code), (new_registers, new_code) = old[key], new[key]
        print(f"{key[1]}: {differing(old_code, new_code)} of {len(old_code) // INSTRUCTION} instructions differ, "
              f"{len(new_code) // INSTRUCTION} now; registers {old_registers}, {new_registers}")
    instructions = sum(len(code) for _, code in old.values()) // INSTRUCTION
    print(f"{len(old.keys() & new.keys())} kernels compared, {instructions} instructions, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
