"""The functions of hgemm_shim.h from Python, and starting a program again under the shim."""

import ctypes
import os
import sys


class Shim:
    """The shim that this process was started under, or one that counts nothing."""

    def __init__(self):
        program = ctypes.CDLL(None)
        self.loaded = hasattr(program, "hgemm_shim_served")
        if not self.loaded:
            return
        self._program = program
        program.hgemm_shim_served.restype = ctypes.c_uint64
        program.hgemm_shim_passed_on.restype = ctypes.c_uint64
        program.hgemm_shim_set.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        program.hgemm_shim_summary.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        program.hgemm_shim_summary.restype = ctypes.c_size_t

    def counts(self):
        """Calls so far that were served and that were passed on."""
        if not self.loaded:
            return 0, 0
        return self._program.hgemm_shim_served(), self._program.hgemm_shim_passed_on()

    def set(self, variable, value):
        """What the shim's environment variable would have set."""
        if self.loaded and self._program.hgemm_shim_set(variable.encode(), value.encode()) != 0:
            raise ValueError(f"no variable {variable}, or no value {value} of it")

    def summary(self):
        if not self.loaded:
            return ""
        length = self._program.hgemm_shim_summary(None, 0) + 1
        text = ctypes.create_string_buffer(length)
        self._program.hgemm_shim_summary(text, length)
        return text.value.decode()


def environment(shim):
    """This process's environment with the shim preloaded."""
    preload = " ".join(filter(None, [os.path.abspath(shim), os.environ.get("LD_PRELOAD")]))
    return {**os.environ, "LD_PRELOAD": preload}


def start_again_under(shim):
    """Replaces this process by one under the shim, unless it is that already."""
    if Shim().loaded:
        return
    if os.path.abspath(shim) in os.environ.get("LD_PRELOAD", "").split():
        sys.exit(f"{shim} could not be preloaded")
    os.execve(sys.executable, [sys.executable, *sys.argv], environment(shim))
