"""The few functions of the CUDA driver that the package itself calls."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_uint64, c_void_p
from functools import lru_cache

_DEVICE_ORDINAL = 9    # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


@lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def device_of(name: str, address: int) -> int:
    """CUDA's number of the GPU on which this memory of the argument lies."""
    number = c_int()
    try:
        status = _driver().cuPointerGetAttribute(byref(number), _DEVICE_ORDINAL, c_void_p(address))
    except OSError as error:
        raise ValueError(f"{name}: lies on a GPU, and there is no CUDA driver: {error}") from error
    if status:
        raise ValueError(f"{name}: {address:#x} is no device memory (CUDA driver's error {status})")
    return number.value


def capture_of(stream: int) -> int:
    """Which capture of a graph the stream is in: a number that no other capture has; 0: none."""
    capturing, number = c_int(), c_uint64()
    status = _driver().cuStreamGetCaptureInfo_v2(c_void_p(stream), byref(capturing), byref(number), None, None, None)
    if status:
        raise RuntimeError(f"a stream does not say whether it is captured (CUDA driver's error {status})")
    return number.value if capturing.value else 0
