"""Builds libraries with the names of those of CUDA that PyTorch's wheel is linked with and nobody has installed.

So `import torch` works without three gigabytes of them. A function of theirs that is called all the same ends the
program and says its name.
usage: cuda_stand_ins.py <site-packages>
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = """#include <stdio.h>
#include <stdlib.h>
#define F(name) void name(void) { fputs(#name ": the tests have a stand-in alone\\n", stderr); abort(); }
"""
# What the functions begin with in libraries that have no symbol versions.
UNVERSIONED = {"libcusparseLt.so.0": "cusparseLt", "libnccl.so.2": "nccl"}


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Wanted:
    """What PyTorch's libraries ask others for."""

    def __init__(self, libraries):
        self.libraries, self.symbols, self.nodes = set(), set(), {}
        for path in map(str, libraries):
            self.libraries |= set(re.findall(r"NEEDED.*\[(lib(?:cu|nccl|nvshmem)\S+)\]", output("readelf", "-dW", path)))
            self.symbols |= set(re.findall(r" U (\S+)", output("nm", "-Du", "--with-symbol-versions", path)))
            for part in output("readelf", "-VW", path).split(" File: ")[1:]:
                self.nodes.setdefault(part.split()[0], set()).update(re.findall(r"Name: (\S+)", part))

    def functions(self, library):
        """Names, by the version node that has them."""
        prefix = UNVERSIONED.get(library)
        found = {node: sorted(s.split("@")[0] for s in self.symbols if s.endswith(f"@{node}"))
                 for node in self.nodes.get(library, ())}
        return {**found, "": sorted(s for s in self.symbols if prefix and s.startswith(prefix))}


def build(path, functions):
    names = {node: "".join(f" {name};" for name in names) for node, names in functions.items() if node and names}
    with tempfile.TemporaryDirectory() as work:
        source, versions = Path(work, "stand_in.c"), Path(work, "stand_in.map")
        source.write_text(SOURCE + "".join(f"F({name})\n" for group in functions.values() for name in group))
        versions.write_text("".join(f"{node} {{ global:{group} }};\n" for node, group in names.items()) or "{ global: *; };")
        subprocess.run(["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{path.name}", f"-Wl,--version-script={versions}",
                        "-o", str(path), str(source)], check=True)


def main(packages):
    folder = packages / "torch/lib"
    wanted = Wanted([*folder.glob("libtorch*.so"), *folder.glob("libc10*.so")])
    there = {path.name for path in packages.glob("nvidia/*/lib/*")}
    for library in sorted(wanted.libraries - there):
        build(folder / library, wanted.functions(library))
        print("stand-in:", library)


main(Path(sys.argv[1]))
