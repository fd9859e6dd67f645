"""libhgemm: half-precision matrix products on CPUs and NVIDIA GPUs.

    import numpy, hgemm
    d = hgemm.matmul(numpy.ones((64, 256), "float16"), numpy.ones((256, 128), "float16"))

``hgemm.torch`` has operators for PyTorch, and ``hgemm.c`` the C API.
"""

from __future__ import annotations

from pathlib import Path

from . import c
from ._handle import Handle, Tuned
from ._logger import set_logger
from ._matmul import arguments, matmul, syrk, syrkx
from .c import (DEVICE_CURRENT, DEVICE_HOST, Activation, Args, Bias, Error, Gate, GroupedArgs, Grouping, Layout,
                LogLevel, Mode, Op, Status, Type, Uplo, library_path)

__all__ = ["DEVICE_CURRENT", "DEVICE_HOST", "Activation", "Args", "Bias", "Error", "Gate", "GroupedArgs", "Grouping",
           "Handle", "Layout", "LogLevel", "Mode", "Op", "Status", "Tuned", "Type", "Uplo", "arguments", "build_info",
           "c", "include_path", "library_path", "matmul", "set_logger", "shim_path", "syrk", "syrkx", "version"]


def _version() -> str:
    number = c.hgemm_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


#: Of the library that is loaded.
version: str = _version()
__version__ = version

#: The folder of hgemm.h and hgemm_shim.h, where the package has it.
include_path: str = str(c.PACKAGE / "include")


def build_info() -> str:
    """Version, source revision, CUDA version and the targets built in, in one line."""
    return c.hgemm_build_info().decode()


def shim_path() -> str | None:
    """libhgemm_cublas.so beside the library, None where it is not: LD_PRELOAD=<this> serves programs' cuBLAS calls."""
    path = Path(library_path).parent / "libhgemm_cublas.so"
    return str(path) if path.is_file() else None
