"""What benchmarks of several arms share: who is timed when, and what is told of it. `hgemm` is one of the arms."""

import statistics
import subprocess
import time

import torch


def eager_us(run, steps):
    """Microseconds of a call, of so many in a row, between events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(steps):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / steps


def eager_in_turn(arms, steps, rounds):
    """Microseconds of each arm in each round. Who is first changes from round to round."""
    times = {arm: [] for arm in arms}
    for i in range(rounds):
        for arm in (list(arms) if i % 2 == 0 else reversed(list(arms))):
            times[arm].append(eager_us(arms[arm], steps))
    return times


def medians(times):
    """Of each arm's times, and of the ratios of its times by hgemm's in the same round."""
    return ({arm: statistics.median(t) for arm, t in times.items()},
            {arm: statistics.median(x / y for x, y in zip(t, times["hgemm"])) for arm, t in times.items()})


def told_of_device():
    """The device, its driver, PyTorch and the date, for the first line of a file."""
    device = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True).stdout.strip()
    return f"# {device}, PyTorch {torch.__version__}, {time.strftime('%Y-%m-%d')}"
