"""Which handle computes: that of the tensors' device and of torch's current stream."""

from __future__ import annotations

from ctypes import byref, py_object, pythonapi
from typing import Any

import torch

from .. import c
from .._handle import PER_THREAD, Handle, Pool
from . import _extension

#: Of GPU memory, for each stream and each captured graph at most; cuBLAS takes as much for a stream on an H100. It
#: holds for later handles.
WORKSPACE_BYTES = 32 << 20


class TorchHandle(Handle):
    """Idle, the extension may use it. ``mode``: of c.Mode; a bool is whether it is batch-invariant."""

    def __init__(self, device: int, stream: int, mode: int) -> None:
        self._shared: int | None = None  # for the extension
        if device == c.DEVICE_HOST:
            super().__init__(device, mode=c.Mode(mode))
            return
        super().__init__(device, workspace_bytes=0, mode=c.Mode(mode))
        self.workspace_per_stream = WORKSPACE_BYTES
        self.stream = stream

    def share(self, device: int, stream: int, mode: int) -> None:
        """From now on the extension uses it too, whenever it is idle. It has no products in tree mode."""
        if (_extension.library is not None and stream != PER_THREAD and mode != c.Mode.TREE
                and self._shared is None):
            pythonapi.Py_IncRef(py_object(self))  # it stays
            self._shared = _extension.library.hgemm_torch_share(device, stream, mode, self.raw)

    def take(self) -> bool:
        return self._shared is None or bool(_extension.library.hgemm_torch_take(self._shared))

    def give_back(self) -> None:
        if self._shared is not None:
            _extension.library.hgemm_torch_give_back(self._shared)


_refused: dict[tuple[int, int], c.Error] = {}  # by device and mode: there is no use in trying again


def _create(device: int, stream: int, mode: int) -> TorchHandle:
    if (device, mode) in _refused:
        refused = _refused[device, mode]
        raise c.Error(refused.status, str(refused), refused.argument)
    try:
        return TorchHandle(device, stream, mode)
    except c.Error as error:
        if error.status in (c.Status.NOT_SUPPORTED, c.Status.NO_DEVICE):
            _refused[device, mode] = error
        raise


class _SharedPool(Pool[TorchHandle]):
    """Idle handles are the extension's as well."""

    def take(self, *key: Any) -> TorchHandle:
        busy: list[TorchHandle] = []  # in the extension, now
        try:
            while not (handle := super().take(*key)).take():
                busy.append(handle)
            return handle
        finally:
            for each in busy:
                super().give_back(each, *key)

    def give_back(self, handle: TorchHandle, *key: Any) -> None:
        handle.share(*key)
        handle.give_back()
        super().give_back(handle, *key)


_pool = _SharedPool(_create)


def call(function: Any, args: Any, device: torch.device, mode: int) -> None:
    """A function of the C API, on torch's current stream."""
    key: tuple[Any, ...] = (c.DEVICE_HOST, 0, mode)
    if device.type != "cpu":
        key = (device.index, torch.cuda.current_stream(device).cuda_stream, mode)
    handle = _pool.take(*key)
    try:
        _run(function, handle, args)
    finally:
        _pool.give_back(handle, *key)


def _run(function: Any, handle: TorchHandle, args: Any) -> None:
    """Memory that torch keeps for later may be what a workspace lacks."""
    try:
        function(handle.raw, byref(args))
    except c.Error as error:
        if error.status != c.Status.ALLOC_FAILED:
            raise
        if not torch.cuda.is_current_stream_capturing():
            torch.cuda.empty_cache()
        try:
            function(handle.raw, byref(args))
        except c.Error as again:
            raise (torch.cuda.OutOfMemoryError(f"hgemm.torch: no memory for a workspace: {again}")
                   if again.status == c.Status.ALLOC_FAILED else again) from error
