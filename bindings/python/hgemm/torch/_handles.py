"""Which handle computes: that of the tensors' device and of torch's current stream, in torch's memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, py_object, pythonapi
from typing import Any

import torch

from .. import c
from .._driver import allow_while_capturing
from .._handle import PER_THREAD, Handle, Pool
from . import _extension

#: Of GPU memory, for each stream on which products run; cuBLAS takes as much on an H100. It holds for later handles.
WORKSPACE_BYTES = 32 << 20


class TorchHandle(Handle):
    """Its workspace is a tensor, which torch's allocator knows of."""

    def __init__(self, device: int, stream: int, batch_invariant: bool) -> None:
        mode = c.Mode.BATCH_INVARIANT if batch_invariant else c.Mode.DEFAULT
        self.memory: torch.Tensor | None = None
        self._shared: int | None = None  # for the extension
        if device == c.DEVICE_HOST:
            super().__init__(device, mode=mode)
            return
        with allow_while_capturing():
            super().__init__(device, workspace_bytes=0, mode=mode)
        self.stream = stream

    def own_memory(self, device: torch.device) -> None:
        if self.memory is None:
            memory = _lasting_memory(device)
            self.workspace = memory.data_ptr(), WORKSPACE_BYTES
            self.memory = memory

    def share(self, device: int, stream: int, batch_invariant: bool) -> None:
        """From now on the extension uses it too, whenever it is idle. What is captured has no workspace to share."""
        shares = _extension.library is not None and stream != PER_THREAD
        if shares and self._shared is None and (device == c.DEVICE_HOST or self.memory is not None):
            pythonapi.Py_IncRef(py_object(self))  # it stays
            self._shared = _extension.library.hgemm_torch_share(device, stream, batch_invariant, self.raw)

    def take(self) -> bool:
        return self._shared is None or bool(_extension.library.hgemm_torch_take(self._shared))

    def give_back(self) -> None:
        if self._shared is not None:
            _extension.library.hgemm_torch_give_back(self._shared)


def _lasting_memory(device: torch.device) -> torch.Tensor:
    """A workspace on torch's current stream. torch.compile's CUDA graphs and ``torch.cuda.use_mem_pool`` divert what a
    thread allocates to a pool, in which nothing may stay. So another thread allocates it."""
    stream = torch.cuda.current_stream(device)

    def allocate() -> torch.Tensor:
        with torch.cuda.stream(stream):
            return torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=device)
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(allocate).result()


_refused: dict[tuple[int, bool], c.Error] = {}  # by device and batch invariance: there is no use in trying again


def _create(device: int, stream: int, batch_invariant: bool) -> TorchHandle:
    if (device, batch_invariant) in _refused:
        refused = _refused[device, batch_invariant]
        raise c.Error(refused.status, str(refused), refused.argument)
    try:
        return TorchHandle(device, stream, batch_invariant)
    except c.Error as error:
        if error.status in (c.Status.NOT_SUPPORTED, c.Status.NO_DEVICE):
            _refused[device, batch_invariant] = error
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


def call(function: Any, args: Any, device: torch.device, batch_invariant: bool) -> None:
    """A function of the C API, on torch's current stream."""
    on_gpu = device.type != "cpu"
    key: tuple[Any, ...] = (c.DEVICE_HOST, 0, batch_invariant)
    if on_gpu:
        key = (device.index, torch.cuda.current_stream(device).cuda_stream, batch_invariant)
    handle = _pool.take(*key)
    try:
        if on_gpu and _is_captured(device):
            _call_captured(function, handle, args, device)
        else:
            if on_gpu:
                handle.own_memory(device)
            function(handle.raw, byref(args))
    finally:
        _pool.give_back(handle, *key)


def _is_captured(device: torch.device) -> bool:
    """Torch tells it of the current device alone."""
    if device.index == torch.cuda.current_device():
        return torch.cuda.is_current_stream_capturing()
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


def _call_captured(function: Any, handle: TorchHandle, args: Any, device: torch.device) -> None:
    """A graph may run beside others, and on any stream, so that its workspace is its own: memory of the graph's pool,
    which goes back there at once, for whatever the graph does next."""
    before = handle.workspace
    memory = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=device)
    handle.workspace = memory.data_ptr(), WORKSPACE_BYTES
    try:
        function(handle.raw, byref(args))
    finally:
        handle.workspace = before
