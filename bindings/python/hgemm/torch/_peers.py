"""Memory of GPUs that all ranks of a group read and write, by torch's symmetric memory (over NVLink).

Ranks make a group's calls in the same order. A call begins on the stream where the call before has ended, and all that
it does with shared memory is done when the stream has done the call. So behind a barrier no rank uses the memory for
calls before any more.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, distributed

from .._driver import capture_of
from ._exchange import Meeting, bytes_of_flags

_log = logging.getLogger("hgemm.torch.distributed")

#: Up to so many bytes, there are buffers that calls take in turn.
IN_TURN = 64 << 20

_Made = TypeVar("_Made")


def _bytes_of_buffers(bytes: int) -> int:
    return bytes * (4 if bytes <= IN_TURN else 1)


def _allocate(device: torch.device, bytes: int, ranks: int) -> Tensor:
    """This rank's memory for Peers: buffers, then flags. No other rank is asked."""
    from torch.distributed import _symmetric_memory as symmetric
    memory = symmetric.empty(_bytes_of_buffers(bytes) + bytes_of_flags(ranks), dtype=torch.uint8, device=device)
    memory[_bytes_of_buffers(bytes):].zero_()
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()  # before another rank raises one
    return memory


class Peers(Meeting):
    """A buffer in each rank's device, of so many bytes.

    Up to IN_TURN bytes there are more, which calls take in turn. A call with a barrier, or an add(), in its midst then
    needs none at its beginning: what it writes before has been read before that of the call before. Graphs have
    two buffers of their own, since they are replayed at any time, and a barrier before their first call."""

    def __init__(self, group: Any, memory: Tensor, bytes: int) -> None:
        """``memory``: of _allocate(). Waits for all ranks of the group."""
        from torch.distributed import _symmetric_memory as symmetric
        self.bytes, self._device, self._in_turn = bytes, memory.device, bytes <= IN_TURN
        self._memory = memory
        self._handle = symmetric.rendezvous(memory, group)
        self._ranks = range(self._handle.world_size)
        flags = [self._handle.get_buffer(rank, (bytes_of_flags(len(self._ranks)),), torch.uint8,
                                         _bytes_of_buffers(bytes)).data_ptr() for rank in self._ranks]
        super().__init__(flags, self._handle.rank)
        self._views: dict[Any, list[Tensor]] = {}  # those of former calls, which take time to make
        self._turns, self._start = [0, 0], 0  # of calls, and of those that graphs capture
        self._capture = 0  # that of the last call
        self._last = torch.cuda.Event()  # the end of the last call that no graph has captured
        self._last.record()
        self._side = torch.cuda.Stream(memory.device)

    def views(self, shape: tuple[int, ...], dtype: torch.dtype, offset: int = 0,
              by_rows: bool = False) -> list[Tensor]:
        """Of all ranks' buffers, from a byte on; by rows: each of their rows. A kernel or a copy goes over NVLink by
        itself."""
        start = (self._start + offset) // dtype.itemsize
        key = (shape, dtype, start, by_rows)
        found = self._views.get(key)
        if found is None:
            with torch.inference_mode(False):  # written to in any mode
                found = [self._handle.get_buffer(rank, shape, dtype, start) for rank in self._ranks]
                if by_rows:
                    found = [row for view in found for row in view.unbind()]
            if len(self._views) >= 1024:
                self._views.clear()
            self._views[key] = found
        return found

    @contextmanager
    def call(self) -> Generator[None, None, None]:
        """Around a call, on the current stream. Calls on other streams wait for its end.

        Not so in a CUDA graph, which may not wait for what is not in it: whoever replays graphs orders them."""
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream()
            capture = capture_of(stream.cuda_stream) if torch.cuda.is_current_stream_capturing() else 0
            if not capture:
                stream.wait_event(self._last)
            if self._in_turn:
                kind = int(capture != 0)
                self._turns[kind] = 1 - self._turns[kind]
                self._start = self.bytes * (self._turns[kind] + 2 * kind)
            if not self._in_turn or (capture and capture != self._capture):
                self.barrier()
            self._capture = capture or self._capture
            try:
                yield
            finally:
                if not capture:
                    self._last.record(stream)

    def barrier(self) -> None:
        """On the current stream: what each rank has done before it is seen by all behind it."""
        self._handle.barrier(channel=0)

    def send(self, copies: list[tuple[Tensor, Tensor]]) -> list[torch.cuda.Event]:
        """To views, what tensors hold, beside what the current stream does next: by copy engines, in this order.

        ``wait()`` for each, or for the last one: until then the tensors have to live."""
        self._side.wait_stream(torch.cuda.current_stream())
        sent = []
        with self._side:
            for there, here in copies:
                there.copy_(here)
                sent.append(self._side.record_event())
        return sent

    def wait(self, sent: torch.cuda.Event) -> None:
        torch.cuda.current_stream().wait_event(sent)


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    return platform.node() + (boot.read_text().strip() if boot.exists() else "")


class _Space:
    """The buffers of one group with devices of one kind."""

    def __init__(self, group: Any, device: torch.device) -> None:
        # Those whose calls take turns and others, each larger than the one before: graphs use the smaller ones.
        self._made: dict[bool, list[Peers]] = {True: [], False: []}
        self._refused: int | None = None  # the least size that a rank had no memory for
        self._group, self._device = group.group_name, device
        with torch.inference_mode(False):  # written to in any mode
            self._able = torch.ones(1, dtype=torch.int32, device=device)  # now: later a rank's memory may be full
        each = self._of_all(group, (_machine(), str(torch.cuda.get_device_properties(device).uuid)))
        reason = None
        if len({machine for machine, _ in each}) > 1:
            reason = "they are on several machines"
        elif len({*each}) < len(each):
            reason = "two of them have the same device"
        elif not self._grow(group, 1 << 20):
            reason = "they have no symmetric memory"
        self.used = reason is None
        self._say("the ranks reach each other's memory" if self.used else f"collectives, as {reason}")

    def _say(self, text: object) -> None:
        _log.debug("group %s on %s: %s", self._group, self._device, text)

    def _of_all(self, group: Any, own: Any) -> list[Any]:
        each = [None] * distributed.get_world_size(group)
        with torch.cuda.device(self._device):
            distributed.all_gather_object(each, own, group=group)
        return each

    def _made_by_all(self, group: Any, make: Callable[[], _Made]) -> _Made | None:
        """What this rank makes; None in all ranks if one of them cannot."""
        made = None
        try:
            made = make()
        except RuntimeError as error:
            self._say(str(error))  # not the error: its frames hold memory
        self._able.fill_(made is not None)
        distributed.all_reduce(self._able, distributed.ReduceOp.MIN, group=group)
        return made if self._able.item() else None

    def _grow(self, group: Any, bytes: int) -> bool:
        """All ranks have the buffer, or none."""
        made = None
        with torch.cuda.device(self._device):
            # All have memory before one waits for the others: a rank without memory would not come.
            ranks = distributed.get_world_size(group)
            memory = self._made_by_all(group, lambda: _allocate(self._device, bytes, ranks))
            if memory is not None:
                made = self._made_by_all(group, lambda: Peers(group, memory, bytes))
        if made is not None:
            self._made[bytes <= IN_TURN].append(made)
        return made is not None

    def of(self, group: Any, bytes: int) -> Peers | None:
        """None: a rank has no memory for so many bytes. No rank asks for as many again."""
        made = self._made[bytes <= IN_TURN]
        if made and made[-1].bytes >= bytes:
            return made[-1]
        bytes = 1 << (bytes - 1).bit_length()
        if self._refused is not None and bytes >= self._refused:
            return None
        _refuse_capture()
        if self._grow(group, bytes):
            return made[-1]
        self._refused = bytes
        _log.warning("group %s on %s: collectives for calls that need buffers of %d bytes or more, as a rank has no "
                     "memory for one that its peers can write", self._group, self._device, bytes)
        return None


def _refuse_capture() -> None:
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("hgemm.torch.distributed: ranks cannot share memory while a CUDA graph is captured. Call "
                           "the function with as many rows before")


_spaces: WeakKeyDictionary[Any, dict[torch.device, _Space]] = WeakKeyDictionary()


def find(group: Any, device: torch.device, bytes: int) -> Peers | None:
    """None: the ranks cannot reach each other's memory, or one has none for so many bytes. All ranks ask together and
    get the same answer."""
    if device.type != "cuda":
        return None
    spaces = _spaces.setdefault(group, {})
    if device not in spaces:
        _refuse_capture()
        spaces[device] = _Space(group, device)
    space = spaces[device]
    return space.of(group, bytes) if space.used else None
