#!/usr/bin/env python3
"""Writes a CSV of the registers of each kernel, by several builds, to the standard output.

usage: registers.py <name of a build>=<its folder arch>...
Images that one of the builds lacks are left out, with a line to stderr. Exits with 1 if a kernel of an image is in
one build alone, or spills.
"""

import re
import sys
from pathlib import Path


def registers(log):
    """kernel -> registers, of a file that ptxas -v has written."""
    found, kernel = {}, None
    for line in log.read_text().splitlines():
        if entry := re.search(r"entry function '(\w+)'", line):
            kernel = entry[1]
        elif re.search(r"[1-9]\d* bytes spill", line):
            sys.exit(f"{log}: {kernel} spills")
        elif used := re.search(r"Used (\d+) registers", line):
            found[kernel] = int(used[1])
    return found


def main(builds):
    logs = {name: {p.name.removesuffix(".ptxas.log"): p for p in Path(folder).glob("*.ptxas.log")}
            for name, folder in (build.split("=", 1) for build in builds)}
    print("image,kernel," + ",".join(logs))
    for image in sorted(set().union(*logs.values())):
        if any(image not in of_build for of_build in logs.values()):
            print(f"{image} is not in all builds", file=sys.stderr)
            continue
        tables = [registers(of_build[image]) for of_build in logs.values()]
        if any(table.keys() != tables[0].keys() for table in tables):
            sys.exit(f"{image} has other kernels in one of the builds")
        for kernel in sorted(tables[0]):
            print(f"{image},{kernel}," + ",".join(str(table[kernel]) for table in tables))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
