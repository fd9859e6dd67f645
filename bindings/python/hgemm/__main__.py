"""python -m hgemm: run programs with their cuBLAS calls served by libhgemm, and say what is installed."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import DEVICE_HOST, Error, Handle, build_info, include_path, library_path, shim_path, version


def find_bench() -> str | None:
    """hgemm-bench: of the package, whose library lies in lib/; else beside the library, or on PATH.

    A wheel has it if CMake found what it needs.
    """
    library = Path(library_path).parent
    own = [str(library.parent / "bin")] if library.parent.name == "hgemm" else []
    return next((found for folder in (*own, str(library), None)
                 if (found := shutil.which("hgemm-bench", path=folder))), None)


def interpreter_options() -> list[str]:
    """What stands before -m hgemm in this Python's command line."""
    if not hasattr(sys, "orig_argv"):  # Python 3.9
        return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined, no-any-return]
    *options, last = sys.orig_argv[1:len(sys.orig_argv) - len(sys.argv) + 1]
    if not last.startswith("-"):  # the name of the module
        last = options.pop()
    others = last[:last.index("m")]  # flags that are written together with -m, as in -Om
    return options if others == "-" else [*options, others]


def command_of(program: list[str], is_module: bool) -> list[str]:
    """What to execute: modules, Python files, and folders and archives with a __main__.py are run by this Python, with
    its options."""
    python = [sys.executable, *(interpreter_options() if __name__ == "__main__" else [])]
    if is_module:
        return [*python, "-m", *program]
    path = Path(program[0])
    if path.suffix in (".py", ".pyz"):
        if not path.is_file():
            raise ValueError(f"program: there is no file {path}")
        return [*python, *program]
    found = shutil.which(program[0])
    if found is not None:
        return [found, *program[1:]]
    if (path / "__main__.py").is_file():
        return [*python, *program]
    raise ValueError(f"program: {path} is no Python file, no folder with a __main__.py, and no executable on PATH")


def shim_environment(arguments: argparse.Namespace) -> dict[str, str]:
    """The variables of the shim (bindings/cublas/README.md), beside those that are set."""
    shim = shim_path()
    if shim is None:
        raise ValueError(f"libhgemm_cublas.so does not lie beside {library_path}: this libhgemm was built without CUDA")
    if any(mark in shim for mark in " :"):
        raise ValueError(f"{shim}: LD_PRELOAD takes no path with blanks or colons")
    environment = dict(os.environ)
    environment["LD_PRELOAD"] = ":".join(filter(None, (shim, environment.get("LD_PRELOAD"))))
    environment.setdefault("HGEMM_SHIM", "on")
    if arguments.batch_invariant:
        environment["HGEMM_SHIM_MODE"] = "batch-invariant"
    if arguments.strict:
        environment["HGEMM_SHIM_STRICT"] = "1"
    if arguments.log:
        environment["HGEMM_SHIM_LOG"] = arguments.log
    return environment


def run(arguments: argparse.Namespace) -> int:
    command = command_of([arguments.program, *arguments.arguments], arguments.module)
    environment = shim_environment(arguments)
    os.execve(command[0], command, environment)


def info(_: argparse.Namespace) -> int:
    rows = {"hgemm": version, "build": build_info(), "library": library_path, "shim": shim_path() or "none",
            "headers": include_path if Path(include_path).is_dir() else "none", "hgemm-bench": find_bench() or "none"}
    try:
        with Handle(workspace_bytes=0) as handle:
            rows["device"] = "the CPU" if handle.device == DEVICE_HOST else f"CUDA device {handle.device}"
            rows["backend"] = handle.backend
    except Error as error:
        rows["device"] = f"none: {error}"
    for name, value in rows.items():
        print(f"{name + ':':13}{value}")
    return 0


def bench(arguments: argparse.Namespace) -> int:
    program = find_bench()
    if program is None:
        raise ValueError("hgemm-bench lies neither in the package, nor beside the library, nor on PATH: the package gets it "
                         "where CMake finds CLI11, fmt and nlohmann-json, and the Debian package hgemm-tools has it")
    os.execv(program, [program, *arguments.rest])


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m hgemm", description="libhgemm: half-precision matrix products")
    top.add_argument("--version", action="version", version=version)
    commands = top.add_subparsers(metavar="command", required=True)

    run_parser = commands.add_parser(
        "run", help="run a program; libhgemm serves its cuBLAS calls",
        description="Runs a program with libhgemm_cublas.so in LD_PRELOAD. Options stand before the program.")
    run_parser.add_argument("--batch-invariant", action="store_true",
                            help="the bits of a row of a result do not depend on the other rows")
    run_parser.add_argument("--strict", action="store_true",
                            help="a half-precision product that libhgemm cannot serve is an error, instead of cuBLAS's")
    run_parser.add_argument("--log", choices=("summary", "calls"),
                            help="say what was served: at exit, or for each call as well")
    run_parser.add_argument("-m", dest="module", action="store_true", help="the program is a Python module")
    run_parser.add_argument("program", help="a Python file, folder or archive, or any executable")
    run_parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    run_parser.set_defaults(function=run)

    info_parser = commands.add_parser("info", help="version, library, device and backend")
    info_parser.set_defaults(function=info)

    # All that follows is the benchmark's, its --help as well.
    bench_parser = commands.add_parser("bench", help="run hgemm-bench, where it is installed", add_help=False)
    bench_parser.set_defaults(function=bench)
    return top


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    top = parser()
    parsed, unknown = top.parse_known_args(given)
    if parsed.function is bench:
        parsed.rest = given[1:]
    elif unknown:
        top.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        status: int = parsed.function(parsed)
        return status
    except (ValueError, OSError) as error:
        print(f"python -m hgemm: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
