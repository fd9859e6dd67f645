#!/usr/bin/env python3
"""Fetches the engines' wheels from PyPI, at the versions that the plug-ins know, and unpacks what is not compiled.

    fetch.py FOLDER [ENGINE==VERSION ...]     all known ones unless some are named; each in FOLDER/ENGINE-VERSION
    fetch.py FOLDER --kernels ENGINE-VERSION  the few files that device_engine*.py need, in FOLDER/kernels

Nothing is installed: an engine asks for gigabytes of CUDA's libraries, which its Python files are read without.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from shapes import EXPERTS

KNOWN = ("vllm==0.33.0", "vllm==0.32.0", "sglang==0.5.23")
MOE = "vllm/model_executor/layers/fused_moe"
KERNELS = ("vllm/model_executor/determinism/batch_invariant.py",
           "vllm/model_executor/determinism/batch_invariant_configs.py", f"{MOE}/activation.py", f"{MOE}/fused_moe.py",
           f"{MOE}/moe_align_block_size.py", f"{MOE}/experts/triton_moe.py")
# vLLM's measured tiles for some layers of experts, on one GPU.
TILES = [f"{MOE}/configs/E={count},N={inner},device_name=NVIDIA_H200.json"
         for count, _, _, inner, _ in EXPERTS.values()]


def fetch(folder: Path, requirement: str) -> Path:
    target = folder / requirement.replace("==", "-")
    if (target / "VERSION").exists():
        return target
    with tempfile.TemporaryDirectory() as work:
        # Another Python's wheel will do: only files of Python are read.
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                        "--dest", work, requirement], check=True)
        (wheel,) = Path(work).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if ".so" not in Path(name).suffixes:
                    archive.extract(name, target)
    (target / "VERSION").write_text(requirement.replace("==", " ") + "\n")
    return target


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("folder", type=Path)
    top.add_argument("engines", nargs="*", default=KNOWN, metavar="ENGINE==VERSION")
    top.add_argument("--kernels", metavar="ENGINE-VERSION")
    options = top.parse_args()
    if options.kernels:
        source, target = options.folder / options.kernels, options.folder / "kernels"
        (metadata,) = source.glob("*.dist-info/METADATA")
        tiles = [name for name in TILES if (source / name).exists()]
        for name in (*KERNELS, *tiles, "VERSION", str(metadata.relative_to(source))):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)
        print(target)
        return 0
    for requirement in options.engines:
        print(fetch(options.folder, requirement), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
