"""Tokens per second of a model, and their ratio to those by cuBLAS."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

KINDS = ("prefill", "decode", "graph")
WINDOWS, WINDOW_SECONDS, CALLS = 10, 0.1, 3
METHOD = (f"Tokens per second: the best of {WINDOWS} windows of about {WINDOW_SECONDS} s and at least {CALLS} calls.\n"
          "prefill: the prompt at once; decode: one more token, eager; graph: that as a CUDA graph.")
COLUMNS = ("model", "batch", "way", "experts", *KINDS, *(f"{kind}/cublas" for kind in KINDS))


def seconds(function: Callable[[], Any], wait: Callable[[], None], agree: Callable[[int], int]) -> float:
    """Of one call, on average over the best window. ``agree`` gives one number of calls to all processes that compute
    together."""
    def window(calls: int) -> float:
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        wait()
        return (time.perf_counter() - start) / calls
    window(2)
    calls = agree(max(CALLS, math.ceil(WINDOW_SECONDS / window(CALLS))))
    return min(window(calls) for _ in range(WINDOWS))


def graph_of(function: Callable[[], Any]) -> Callable[[], None]:
    """Replays what the function does to the GPU."""
    import torch
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # NCCL has a thread that asks for events
        function()
    return graph.replay


def times(prompt: Any, batch: int, with_graph: bool, agree: Callable[[int], int]) -> dict[str, float]:
    """Of a batch of sequences with ``prompt.prompt`` tokens each."""
    import torch
    model = prompt.model
    tokens = prompt.random(model.vocabulary, batch, prompt.prompt).to(model.device)
    positions = torch.arange(prompt.prompt).expand(batch, -1).contiguous().to(model.device)
    last, end = tokens[:, :1].contiguous(), torch.full((batch, 1), prompt.prompt).to(model.device)
    wait = torch.cuda.synchronize if model.device == "cuda" else lambda: None

    def decode() -> None:
        model(last, end)
    result = {"batch": batch,
              "prefill": batch * prompt.prompt / seconds(lambda: model(tokens, positions), wait, agree),
              "decode": batch / seconds(decode, wait, agree)}
    if with_graph:
        result["graph"] = batch / seconds(graph_of(decode), wait, agree)
    return result


def with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows by model and batch, with the ratio of each to cublas's, where that was run."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    rows = sorted(rows, key=lambda row: (models.index(row["model"]), row["batch"]))
    base = {(row["model"], row["batch"]): row for row in rows if row["way"] == "cublas"}
    result = []
    for row in rows:
        other = base.get((row["model"], row["batch"]), {})
        result.append(row | {f"{kind}/cublas": round(row[kind] / other[kind], 3) for kind in KINDS
                             if kind in row and kind in other})
    return result
