"""One program in several processes of this machine. One that fails ends the others, and is named.

Each process finds its number in RANK and LOCAL_RANK, their count in WORLD_SIZE, and in INIT_METHOD how to meet the
others: ``torch.distributed.init_process_group(init_method=...)`` takes it. It names a file, so that no server has to
answer until the last of them has ended.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

GRACE = 10.0  # seconds that a process has to end by itself when it is asked to


@dataclass
class Ended:
    """A process that has ended."""
    rank: int
    stdout: str
    failure: str = ""  # how it ended, if that was neither with status 0 nor because of another's failure


class _Process:
    """One rank, which runs. Lines of its stderr go to that of this process at once."""

    def __init__(self, rank: int, command: list[str], environment: Mapping[str, str]) -> None:
        self.rank, self.last_line = rank, ""
        self.stdout: IO[str] = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(command, env=environment, stdout=self.stdout, stderr=subprocess.PIPE, text=True,
                                        errors="replace")
        self.reader = threading.Thread(target=self._pass_on, daemon=True)
        self.reader.start()

    def _pass_on(self) -> None:
        assert self.process.stderr
        with self.process.stderr as lines:
            for line in lines:
                sys.stderr.write(line)
                sys.stderr.flush()
                self.last_line = line.strip() or self.last_line

    def end(self, seconds: float) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(1)  # not longer: a child of it may live on, and hold its stderr

    def ended(self, failed: bool) -> Ended:
        with self.stdout as file:
            file.seek(0)
            stdout, status = file.read(), self.process.returncode
        if not failed:
            return Ended(self.rank, stdout)
        how = f"ended with status {status}" if status > 0 else f"was ended by {_name(-status)}"
        return Ended(self.rank, stdout, f"rank {self.rank} {how}" + (f": {self.last_line}" if self.last_line else ""))


def _name(number: int) -> str:
    """Of a signal. Those of real time have none."""
    return {each.value: each.name for each in signal.Signals}.get(number, f"signal {number}")


def _environment(environment: Mapping[str, str], rank: int, processes: int, folder: str) -> Mapping[str, str]:
    if processes == 1:
        return environment
    # One thread each, as torchrun has it, since each would use all cores. They meet on this machine alone.
    return {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **environment, "RANK": str(rank),
            "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes), "INIT_METHOD": f"file://{folder}/store"}


def _wait(started: list[_Process]) -> list[bool]:
    """For all, or for one that fails: which of them have failed."""
    while True:
        statuses = [each.process.poll() for each in started]
        if any(statuses) or None not in statuses:
            return [bool(status) for status in statuses]
        time.sleep(0.05)


def launch(command: list[str], processes: int, environment: Mapping[str, str]) -> list[Ended]:
    """Runs a command in so many processes, until all have ended: one result for each rank, in their order.

    If one fails, the others are terminated, and killed if they have not ended after ``GRACE`` seconds. Those that fail
    within a twentieth of a second, as one that waits for another may, all count as failed. A single process gets the
    environment as it is.
    """
    started: list[_Process] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for rank in range(processes):
                started.append(_Process(rank, command, _environment(environment, rank, processes, folder)))
            failed = _wait(started)
        finally:
            for each in started:
                each.process.terminate()
            deadline = time.monotonic() + GRACE
            for each in started:
                each.end(max(0.0, deadline - time.monotonic()))
    return [each.ended(has_failed) for each, has_failed in zip(started, failed)]
