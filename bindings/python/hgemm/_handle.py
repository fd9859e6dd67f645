"""Handles: one for each stream, in one thread at a time."""

from __future__ import annotations

import os
import weakref
from collections import defaultdict
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_void_p, create_string_buffer
from threading import get_ident
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from . import c
from ._arrays import stream_address


class Tuned(NamedTuple):
    """What :meth:`Handle.tune` found; the members of hgemm_tune_report_t."""
    candidates: int
    wrong: int
    failed: int
    rounds: int
    complete: bool
    built_in_us: float
    before_us: float
    now_us: float
    gain: float
    spread: float
    built_in: str
    before: str
    now: str
    wrong_kernels: str
    path: str | None


class Handle:
    """What a program holds while it multiplies on one device and stream.

    ``device``: CUDA's number of a GPU, ``hgemm.DEVICE_HOST`` for the CPU, or ``hgemm.DEVICE_CURRENT``: the current
    CUDA context's GPU, else GPU 0, else the CPU. ``workspace_bytes``: of GPU memory for copies of unaligned operands
    and sums over slices of K; None is what the backend asks for, up to 210 MB.

    Use a handle in one thread at a time, and close it when the work on its stream has ended. It cannot be copied.
    """

    __slots__ = ("__weakref__", "_close", "raw")  # a misspelt setting is an AttributeError

    def __init__(self, device: int = c.DEVICE_CURRENT, *, workspace_bytes: int | None = None,
                 mode: c.Mode = c.Mode.DEFAULT) -> None:
        raw, device, mode = c.hgemm_handle_t(), c.integer("device", device, c_int), _mode_of(mode)
        if workspace_bytes is None:
            c.hgemm_create_on(byref(raw), device)
        else:
            c.hgemm_create_sized(byref(raw), device, c.integer("workspace_bytes", workspace_bytes, c_size_t))
        #: The hgemm_handle_t, for the functions of ``hgemm.c``.
        self.raw = raw
        self._close = weakref.finalize(self, c.hgemm_destroy, raw)
        self._close.atexit = False  # the driver may be gone by then
        if mode != c.Mode.DEFAULT:
            self.mode = mode

    def close(self) -> None:
        self._close()
        self.raw = c.hgemm_handle_t()

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an hgemm.Handle cannot be copied or pickled; create another")

    def __repr__(self) -> str:
        return f"<hgemm.Handle on {self.backend or 'nothing: it is closed'}>"

    def _get(self, function: Any, kind: Any) -> Any:
        value = kind()
        function(self.raw, byref(value))
        return value.value

    @property
    def device(self) -> int:
        """CUDA's number of the GPU, or ``hgemm.DEVICE_HOST``."""
        return self._get(c.hgemm_get_device, c_int)

    @property
    def backend(self) -> str:
        """Such as "sm90" or "host"."""
        return c.hgemm_backend(self.raw).decode()

    @property
    def stream(self) -> int:
        """The cudaStream_t of later calls, as an address; 0 is the default stream. Streams of PyTorch and CuPy may be
        assigned as well."""
        return self._get(c.hgemm_get_stream, c_void_p) or 0

    @stream.setter
    def stream(self, stream: Any) -> None:
        c.hgemm_set_stream(self.raw, stream_address(stream))

    @property
    def mode(self) -> c.Mode:
        return c.Mode(self._get(c.hgemm_get_mode, c_int))

    @mode.setter
    def mode(self, mode: c.Mode) -> None:
        c.hgemm_set_mode(self.raw, _mode_of(mode))

    @property
    def sm_count(self) -> int:
        """Use at most so many SMs; 0: all."""
        return self._get(c.hgemm_get_sm_count, c_int)

    @sm_count.setter
    def sm_count(self, count: int) -> None:
        c.hgemm_set_sm_count(self.raw, c.integer("sm_count", count, c_int))

    @property
    def workspace(self) -> tuple[int, int]:
        """Address and bytes of the workspace in use; assign (0, 0) to go back to the handle's own."""
        address, size = c_void_p(), c_size_t()
        c.hgemm_get_workspace(self.raw, byref(address), byref(size))
        return address.value or 0, size.value

    @workspace.setter
    def workspace(self, workspace: tuple[int, int]) -> None:
        if not isinstance(workspace, (tuple, list)) or len(workspace) != 2:
            raise TypeError(f"workspace: {workspace!r}, must be a pair of an address and a number of bytes")
        address, size = workspace
        c.hgemm_set_workspace(self.raw, c.integer("workspace's address", address or 0, c_void_p) or None,
                              c.integer("workspace's bytes", size, c_size_t))

    @property
    def workspace_per_stream(self) -> int:
        """Each stream, and each captured CUDA graph, has a workspace of its own, of at most so many bytes, so that
        graphs may run beside each other and longer than the handle lives. 0: there is one for all."""
        return self._get(c.hgemm_get_workspace_per_stream, c_size_t)

    @workspace_per_stream.setter
    def workspace_per_stream(self, size: int) -> None:
        c.hgemm_set_workspace_per_stream(self.raw, size)

    def gemm(self, args: c.Args) -> None:
        """D = activation(alpha * op(A) * op(B) + beta * C + bias); on a GPU it returns before D is there."""
        c.hgemm_gemm_ex(self.raw, _pointer(args, c.Args))

    def grouped(self, args: c.GroupedArgs) -> None:
        c.hgemm_grouped_ex(self.raw, _pointer(args, c.GroupedArgs))

    def workspace_size(self, args: c.Args) -> int:
        size = c_size_t()
        c.hgemm_workspace_size(self.raw, _pointer(args, c.Args), byref(size))
        return size.value

    def explain(self, args: c.Args) -> str:
        """One line about how ``gemm(args)`` would run, and why so."""
        text = create_string_buffer(2048)
        c.hgemm_explain(self.raw, _pointer(args, c.Args), text, len(text))
        return text.value.decode()

    def tune(self, args: c.Args | c.GroupedArgs, *, max_candidates: int = 0, max_rounds: int = 0,
             max_seconds: float = 0, write: bool = False, path: str | os.PathLike[str] | None = None) -> Tuned:
        """Measure which kernel is the fastest for these arguments and use it from now on; see hgemm_tune()."""
        options, report = c.TuneOptions(), c.TuneReport()
        options.max_candidates, options.max_rounds, options.max_seconds = max_candidates, max_rounds, max_seconds
        options.write, options.path = write, _path_of(path)
        pointer = _pointer(args, c.Args, c.GroupedArgs)
        function = c.hgemm_tune_grouped if isinstance(args, c.GroupedArgs) else c.hgemm_tune
        function(self.raw, pointer, byref(options), byref(report))
        values = [getattr(report, name) for name in Tuned._fields]
        values = [value.decode() if isinstance(value, bytes) else value for value in values]
        return Tuned(*values)._replace(complete=bool(report.complete))


def _mode_of(mode: Any) -> c.Mode:
    try:
        return c.Mode(mode)
    except ValueError:
        raise ValueError(f"mode: {mode!r}, must be hgemm.Mode.DEFAULT, BATCH_INVARIANT or TREE") from None


def _pointer(args: Any, *kinds: Any) -> Any:
    if not isinstance(args, kinds):
        names = " or ".join(f"hgemm.{kind.__name__}" for kind in kinds)
        raise TypeError(f"args: {type(args).__name__}, must be {names}")
    return byref(args)


def _path_of(path: Any) -> bytes | None:
    try:
        name = None if path is None else os.fsencode(path)
    except TypeError:
        raise TypeError(f"path: {path!r}, must be a path") from None
    if name is not None and b"\0" in name:
        raise ValueError(f"path: {path!r} has a null character")
    return name


Lent = TypeVar("Lent", bound=Handle)

PER_THREAD = 2  # cudaStreamPerThread: this address is another stream in each thread


class Pool(Generic[Lent]):
    """Handles that are lent for one call each.

    A key stands for a device, a stream and a mode. No two threads have the same handle at a time, so there are as many
    as threads have called at the same time. They stay: CUDA graphs need their kernels. What is lent on CUDA's
    per-thread stream goes back to that thread, since work of its may still use the handle's workspace.
    """

    def __init__(self, create: Callable[..., Lent]) -> None:
        self._create = create
        self._idle: defaultdict[tuple[Any, ...], list[Lent]] = defaultdict(list)

    def _idle_for(self, device: int, stream: int, *rest: Any) -> list[Lent]:
        return self._idle[(device, stream, *rest) if stream != PER_THREAD else (device, stream, *rest, get_ident())]

    def take(self, *key: Any) -> Lent:
        try:
            return self._idle_for(*key).pop()
        except IndexError:
            return self._create(*key)

    def give_back(self, handle: Lent, *key: Any) -> None:
        self._idle_for(*key).append(handle)
