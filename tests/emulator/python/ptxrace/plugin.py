"""A fixture for pytest.

    def test_sum(ptxrace):
        assert ptxrace("./sum", "4096", arch="sm_100").output == "4096\\n"

The test fails where a kernel has a fault or a defect, where no kernel ran, and where the program's status is not 0.
"""
from __future__ import annotations

import pytest

import ptxrace as package


def _complaint(result, status, needs_kernel, strict):
    if result.defects or (strict and result.departures):
        return f"{len(result.defects)} defects, {len(result.departures)} departures from the document"
    if result.status != status:
        return f"exit status {result.status}, expected {status}"
    if needs_kernel and result.kernels == 0:
        return "no kernel ran"
    return None


@pytest.fixture
def ptxrace():
    """ptxrace(program, *arguments, arch="sm_90", ...) runs a program on an emulated device and returns a
    ptxrace.Result. `status` is the exit status that the program must have, `kernel=False` is for programs that need not
    run any kernel, and with `strict=True` departures from the document fail the test, too. All other options are those
    of ptxrace.run()."""

    def call(*command, status=0, kernel=True, strict=False, **options):
        __tracebackhide__ = True
        try:
            result = package.run(command, **options)
        except package.Error as error:
            pytest.fail(str(error), pytrace=False)
        complaint = _complaint(result, status, kernel, strict)
        if complaint:
            command_line = " ".join(map(str, command))
            pytest.fail(f"{command_line}: {complaint}\n{result.errors}{result.output}", pytrace=False)
        return result

    return call
