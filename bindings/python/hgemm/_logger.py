"""Loggers: functions in Python that the library calls with lines of its log."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from . import c
from .c import LogLevel

_loggers: list[object] = []  # handles that were created with them keep them


@lru_cache(maxsize=None)
def _between() -> ctypes.CDLL:
    """libhgemm_logger.so: the package's own, else that beside the library. It calls no logger while Python ends."""
    own = c.PACKAGE / "lib" / "libhgemm_logger.so"
    library = ctypes.CDLL(str(own if own.exists() else Path(c.library_path).parent / own.name))
    for function in (library.hgemm_python_end_logs, library.hgemm_python_forked):
        function.restype, function.argtypes = None, ()
    os.register_at_fork(after_in_child=library.hgemm_python_forked)
    atexit.register(library.hgemm_python_end_logs)
    return library


def set_logger(level: LogLevel, logger: Callable[[str], None] | None) -> None:
    """Give each line of the log of handles that are created later to ``logger``, from the threads that use them.
    None leaves the log to HGEMM_LOG again. While Python ends, lines are lost."""
    if logger is None:
        c.hgemm_set_logger(level, c.hgemm_logger_t(), None)
        return
    if not callable(logger):
        raise TypeError(f"logger: {logger!r}, must be a function or None")

    def log(_: object, line: bytes) -> None:
        logger(line.decode(errors="replace"))

    function = c.hgemm_logger_t(log)
    between = c.hgemm_logger_t(("hgemm_python_log", _between()))
    c.hgemm_set_logger(level, between, ctypes.cast(function, ctypes.c_void_p))
    _loggers.append(function)
