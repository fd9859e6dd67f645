"""Runs a test of hgemm.torch without its extension, as where torch lacks what that calls.

usage: without_extension.py <test>
"""

import runpy
import sys
from pathlib import Path
from unittest import mock

try:
    import torch  # noqa: F401
except ModuleNotFoundError:
    print("hgemm.torch without its extension: Skipped\nPyTorch is not installed")
    sys.exit(77)

from hgemm import c

with mock.patch.multiple(c, PACKAGE=Path("/nowhere"), library_path="/nowhere/libhgemm.so.1"):
    from hgemm.torch import _extension

if _extension.library is not None or _extension.enabled:
    sys.exit("the extension is there")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
