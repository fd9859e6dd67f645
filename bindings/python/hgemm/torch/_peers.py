"""Memory of GPUs that all ranks of a group read and write, by torch's symmetric memory (over NVLink).

A group has one buffer in each rank's device for all calls. A call begins with a barrier. Behind it no rank still uses
the buffers for the call before, if each rank makes the group's calls in the same order. All that a call does with the
buffers is behind its barrier on the stream, and done when the stream has done the call.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, distributed

_log = logging.getLogger("hgemm.torch.distributed")


class Peers:
    """The buffers of a group's ranks, so many bytes each."""

    def __init__(self, group: Any, device: torch.device, bytes: int) -> None:
        from torch.distributed import _symmetric_memory as symmetric
        self.bytes, self.device = bytes, device
        self._memory = symmetric.empty(bytes, dtype=torch.uint8, device=device)
        self._handle = symmetric.rendezvous(self._memory, group)
        self._last = torch.cuda.Event()  # the end of the last call that no graph has captured
        self._last.record()
        self._side = torch.cuda.Stream(device)

    def view(self, rank: int, shape: tuple[int, ...], dtype: torch.dtype, offset: int = 0) -> Tensor:
        """Of a rank's buffer, from a byte on. Any rank's: a kernel or a copy goes over NVLink by itself."""
        return self._handle.get_buffer(rank, shape, dtype, offset // dtype.itemsize)

    @contextmanager
    def call(self) -> Generator[None, None, None]:
        """Around a call, on the current stream. Calls on other streams wait for its end.

        Not so in a CUDA graph, which may not wait for what is not in it: whoever replays graphs orders them."""
        stream, captured = torch.cuda.current_stream(self.device), torch.cuda.is_current_stream_capturing()
        if not captured:
            stream.wait_event(self._last)
        self.barrier()
        try:
            yield
        finally:
            if not captured:
                self._last.record(stream)

    def barrier(self) -> None:
        """On the current stream: what each rank has done before it is seen by all behind it."""
        self._handle.barrier(channel=0)

    def send(self, copies: list[tuple[Tensor, Tensor]]) -> list[torch.cuda.Event]:
        """To views, what tensors hold, beside what the current stream does next: by copy engines, in this order.

        ``wait()`` for each, or for the last one: until then the tensors have to live."""
        self._side.wait_stream(torch.cuda.current_stream(self.device))
        sent = []
        with torch.cuda.stream(self._side):
            for there, here in copies:
                there.copy_(here)
                sent.append(self._side.record_event())
        return sent

    def wait(self, sent: torch.cuda.Event) -> None:
        torch.cuda.current_stream(self.device).wait_event(sent)


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    return platform.node() + (boot.read_text().strip() if boot.exists() else "")


class _Space:
    """The buffers of one group with devices of one kind."""

    def __init__(self, group: Any, device: torch.device) -> None:
        self._made: list[Peers] = []  # graphs use the smaller ones as long as they live
        each = self._of_all(group, device, (_machine(), str(torch.cuda.get_device_properties(device).uuid)))
        reason = None
        if len({machine for machine, _ in each}) > 1:
            reason = "they are on several machines"
        elif len({*each}) < len(each):
            reason = "two of them have the same device"
        elif not (self._grow(group, device, 1 << 20)):
            reason = "there is no symmetric memory"
        self.used = reason is None
        _log.debug("group %s on %s: %s", group.group_name, device,
                   "by peers" if self.used else f"by collectives, as {reason}")

    @staticmethod
    def _of_all(group: Any, device: torch.device, own: Any) -> list[Any]:
        each = [None] * distributed.get_world_size(group)
        with torch.cuda.device(device):
            distributed.all_gather_object(each, own, group=group)
        return each

    def _grow(self, group: Any, device: torch.device, bytes: int) -> bool:
        """All ranks have the buffer, or none."""
        made = None
        try:
            with torch.cuda.device(device):
                made = Peers(group, device, bytes)
        except RuntimeError as error:
            _log.debug("group %s on %s: %s", group.group_name, device, error)
        if made is None or not all(self._of_all(group, device, made is not None)):
            return False
        self._made.append(made)
        return True

    def of(self, group: Any, device: torch.device, bytes: int) -> Peers:
        if self._made[-1].bytes < bytes:
            _refuse_capture()
            if not self._grow(group, device, 1 << (bytes - 1).bit_length()):
                raise torch.cuda.OutOfMemoryError(f"hgemm.torch.distributed: a rank has no memory for {bytes} bytes "
                                                  "that its peers can write")
        return self._made[-1]


def _refuse_capture() -> None:
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("hgemm.torch.distributed: ranks cannot share memory while a CUDA graph is captured. Call "
                           "the function with as many rows before")


_spaces: WeakKeyDictionary[Any, dict[torch.device, _Space]] = WeakKeyDictionary()


def find(group: Any, device: torch.device, bytes: int) -> Peers | None:
    """None: the ranks cannot reach each other's memory. All ranks ask together and get the same answer."""
    if device.type != "cuda":
        return None
    spaces = _spaces.setdefault(group, {})
    if device not in spaces:
        _refuse_capture()
        spaces[device] = _Space(group, device)
    space = spaces[device]
    return space.of(group, device, bytes) if space.used else None
