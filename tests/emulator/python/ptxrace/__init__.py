"""Runs programs that use CUDA on an emulated GPU, and tells what is wrong with their kernels.

    result = ptxrace.run(["./sum", "4096"], arch="sm_90")
    for report in result.defects:
        print(report["kind"], report["kernel"], report["text"])

For pytest there is a fixture of the same name, see ptxrace.plugin.
"""
from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile

__all__ = ["Error", "Result", "library_path", "run"]

_here = os.path.dirname(os.path.abspath(__file__))
_program = os.path.join(_here, "bin", "ptxrace")


class Error(Exception):
    """The program could not be run, or cannot find the emulator."""


@dataclasses.dataclass
class Result:
    """What became of a program."""

    status: int  # of its exit; 128 + N where signal N ended it
    output: str  # its stdout
    errors: str  # its stderr, and the reports in words
    kernels: int  # that ran, each counted once
    reports: list[dict]  # REFERENCE.md tells what is in them

    @property
    def defects(self) -> list[dict]:
        """Faults and reports of the class defect."""
        return [report for report in self.reports if report["class"] in ("fault", "defect")]

    @property
    def departures(self) -> list[dict]:
        return [report for report in self.reports if report["class"] == "departure"]


def library_path() -> str:
    """The folder of libcuda.so.1, for LD_LIBRARY_PATH."""
    return subprocess.run([_program, "libraries"], check=True, capture_output=True, text=True).stdout.strip()


def run(command, *, arch=None, check=None, strict=None, seed=None, sms=None, devices=None, overlap=False,
        env=None, cwd=None, timeout=None, input=None) -> Result:
    """Runs a program with its arguments. The options are those of `ptxrace run`."""
    with tempfile.TemporaryDirectory(prefix="ptxrace-") as folder:
        name = os.path.join(folder, "reports.json")
        words = [_program, "run", "--quiet", "--json", name]
        for option, value in (("arch", arch), ("check", check), ("strict", strict), ("seed", seed), ("sms", sms),
                              ("devices", devices)):
            if value is not None:
                words += [f"--{option}", str(value)]
        if overlap:
            words.append("--overlap")
        words += [os.fspath(word) for word in command]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", env=env, cwd=cwd,
                              timeout=timeout, input=input)
        if not os.path.exists(name):
            raise Error(done.stderr.strip())
        with open(name, encoding="utf-8", errors="replace") as file:
            document = json.load(file)
    return Result(document["status"], done.stdout, done.stderr, document["kernels"], document["reports"])
