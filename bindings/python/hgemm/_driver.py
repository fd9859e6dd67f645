"""The few functions of the CUDA driver that the package itself calls."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_void_p
from functools import lru_cache

_DEVICE_ORDINAL = 9    # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


@lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def device_of(address: int) -> int:
    """CUDA's number of the GPU on which this memory lies."""
    number = c_int()
    status = _driver().cuPointerGetAttribute(byref(number), _DEVICE_ORDINAL, c_void_p(address))
    if status:
        raise ValueError(f"{address:#x} is no device memory (CUDA driver's error {status})")
    return number.value
