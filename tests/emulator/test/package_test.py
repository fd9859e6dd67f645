"""The Python package on programs that this file compiles; run by pytest, in an environment that has the package."""
import json
import os
import re
import subprocess
import sys

import ptxrace as package
import pytest

pytest_plugins = ["pytester"]
EXAMPLES = os.environ["PTXRACE_EXAMPLES"]
NVCC = os.environ.get("PTXRACE_NVCC")
needs_nvcc = pytest.mark.skipif(not NVCC, reason="no nvcc")


def compiled(folder, name, text):
    (folder / f"{name}.cu").write_text(text)
    subprocess.run([NVCC, "-lineinfo", "-cudart", "shared", "-o", folder / name, folder / f"{name}.cu"], check=True)
    return str(folder / name)


@pytest.fixture(scope="module")
def racing(tmp_path_factory):
    with open(os.path.join(EXAMPLES, "race.cu")) as file:
        return compiled(tmp_path_factory.mktemp("racing"), "race", file.read())


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    with open(os.path.join(EXAMPLES, "race.cu")) as file:
        text = file.read().replace("__syncwarp()", "__syncthreads()").replace("    for (int", "__syncthreads(); for (int")
    return compiled(tmp_path_factory.mktemp("right"), "right", text)


def test_finds_its_libraries():
    names = os.listdir(package.library_path())
    assert "libcuda.so.1" in names and any(re.match(r"libcudart\.so\.1[23]$", name) for name in names), names


def test_programs_that_do_not_run():
    with pytest.raises(package.Error, match="no program 'no-such-program'"):
        package.run(["no-such-program"])
    result = package.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.status, result.output, result.kernels, result.reports) == (3, "out\n", 0, [])
    assert "err" in result.errors


@needs_nvcc
def test_tells_defects(racing):
    result = package.run([racing], arch="sm_120", seed=4)
    assert result.status == 0 and result.kernels == 1
    assert {report["kind"] for report in result.defects} >= {"race"}
    assert {source["line"] for report in result.defects for source in report["source"]} <= {9, 11, 12}


@needs_nvcc
def test_fixture_passes(ptxrace, right):
    assert "sums 64 64 64 64" in ptxrace(right, arch="sm_100", check=3).output


@needs_nvcc
def test_fixture_fails(pytester, racing, right):
    pytester.makepyfile(f"""
        def test_race(ptxrace):
            ptxrace({racing!r})
        def test_status(ptxrace):
            ptxrace({right!r}, status=1)
        def test_no_kernel(ptxrace):
            ptxrace("true")
        def test_needs_none(ptxrace):
            ptxrace("true", kernel=False)
    """)
    result = pytester.runpytest_subprocess("-p", "ptxrace.plugin") if not installed() else pytester.runpytest_subprocess()
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(["*race (defect): *(race.cu:*", "*race.cu:12: tile*", "*exit status 0, expected 1",
                                 "*no kernel ran"])


def installed():
    from importlib import metadata
    try:
        metadata.distribution("ptxrace")
    except metadata.PackageNotFoundError:
        return False
    return True
