#!/usr/bin/env python3
"""Do the bits of a prompt's logits depend on what else is in the batch? And what does it cost that they do not?

    batch_invariance.py [--models llama,qwen3-moe] [--ways cublas,hgemm] [--batches 2,64] [--gpus 2]

For each way to multiply matrices, in a process of its own: the logits of a prompt alone, and of a few tokens after it,
are compared bit by bit with those of the same tokens in batches. There the prompt is prefilled at once, in chunks, or
token by token, and then decoded in steps with a cache. All but the products is batch-invariant in these models, as
invariant_models.py says and checks. Weights are random; nothing is loaded from anywhere. With more than one GPU the
model is split over them, as tensor_parallel.py says.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import timing
from launch import launch

WAYS = {
    "cublas": "PyTorch as it is: by cuBLAS, and on the CPU by what PyTorch has there",
    "cublas-no-split-k": "cuBLASLt without a workspace, split-K and sums in half precision, as serving engines set it",
    "triton": "persistent Triton kernels with one size of tiles",
    "hgemm": "hgemm.torch.batch_invariant()",
    "hgemm-default": "hgemm.torch.enable(), not batch-invariant",
    "shim": "libhgemm's cuBLAS shim in batch-invariant mode",
    "shim-default": "the shim, not batch-invariant",
    "rows": "each row by itself, in fp32: slow, a control of all that is not a product",
}
INVARIANT = ("hgemm", "shim")
COLUMNS = ("model", "way", "device", "experts", "comparisons", "logits", "differ", "largest", "served", "remark")
EXIT_STATUS = "exit status: 0; 1 if hgemm or shim differ anywhere; 2 if neither was run, or a way failed"


class NotRun(Exception):
    """This way cannot be run here."""


def progress(text: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        print(text, file=sys.stderr, flush=True)


def numbers(text: str) -> list[int]:
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise ValueError
    return values


def names(allowed: Any) -> Callable[[str], list[str]]:
    def names_of(text: str) -> list[str]:
        unknown = [name for name in text.split(",") if name not in allowed]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(allowed)}")
        return text.split(",")
    return names_of


def parse(arguments: list[str] | None) -> argparse.Namespace:
    ways = "\n".join(f"  {name:18}{text}" for name, text in WAYS.items())
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                  epilog=f"ways:\n{ways}\n\n{EXIT_STATUS}")
    top.add_argument("--models", type=names(("llama", "qwen3-moe")), default=["llama", "qwen3-moe"])
    top.add_argument("--ways", type=names(WAYS), default=[way for way in WAYS if way != "rows"])
    top.add_argument("--batches", type=numbers, default=[2, 5, 16, 64], help="sequences in a batch (2,5,16,64)")
    top.add_argument("--timed", type=numbers, default=[1, 8, 32], help="batches whose times are taken (1,8,32)")
    top.add_argument("--gpus", type=int, default=1, help="tensor parallel, a process for each; CPU processes with "
                     "--device cpu")
    top.add_argument("--layers", type=int, default=4)
    top.add_argument("--device", choices=("cuda", "cpu"), help="default: cuda where there is one")
    top.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16")
    top.add_argument("--small", action="store_true", help="hidden width 64 and short prompts, for tests")
    top.add_argument("--experts", choices=("grouped", "loop"), help="torch's grouped product, which the shim does not "
                     "serve, or a product for each expert; default: grouped where it is served")
    top.add_argument("--products-on-gpu", action="store_true",
                     help="with --device cpu: products alone run on the GPU, as a virtual CUDA driver needs it")
    top.add_argument("--no-times", action="store_true", help="compare only")
    top.add_argument("--csv", metavar="FILE", help="comparisons; times go beside it, as FILE-times.csv for FILE.csv")
    top.add_argument("--worker", metavar="WAY", help=argparse.SUPPRESS)
    options = top.parse_args(arguments)
    if options.gpus < 1 or (options.gpus > 1 and options.products_on_gpu):
        top.error("--gpus is at least 1, and 1 with --products-on-gpu")
    return options


# ---- One way, in its own process


@contextmanager
def multiply_by(way: str, on_gpu: bool) -> Iterator[Callable[[], int]]:
    """Products are computed this way. Gives how many libhgemm has served."""
    import product_overrides as overrides
    import torch
    key = "CUDA" if on_gpu else "CPU"
    undo: Callable[[], None] = lambda: None
    served: Callable[[], int] = lambda: 0
    if not on_gpu and (way in ("cublas-no-split-k", "triton") or way.startswith("shim")):
        raise NotRun("it needs a GPU")
    if way.startswith("hgemm"):
        import hgemm.torch
        hgemm.torch.enable(batch_invariant=way == "hgemm", strict=True, dispatch_key=key)
        undo, served = hgemm.torch.disable, lambda: hgemm.torch.counts().get("served", 0)
    elif way == "cublas-no-split-k":
        neither: Any = (False, False)  # sums in half precision, split-K
        torch.backends.cuda.preferred_blas_library("cublaslt")  # cuBLAS cannot be told so
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = neither
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = neither
    elif way == "triton":
        try:
            import triton_products
        except ModuleNotFoundError as error:
            raise NotRun(str(error)) from error
        undo = overrides.override(triton_products.operators(), key)
    elif way == "rows":
        undo = overrides.override(overrides.products_by(overrides.by_row), key)
    elif way.startswith("shim"):
        count = getattr(ctypes.CDLL(None), "hgemm_shim_served", None)
        if count is None:
            raise NotRun("the shim is not loaded")
        count.restype = ctypes.c_uint64
        served = count
    try:
        yield served
    finally:
        undo()


class Prompt:
    """Tokens of a prompt and of what follows it, and the others of a batch."""

    def __init__(self, model: Any, small: bool) -> None:
        import torch
        self.model = model
        self.prompt, self.decoded = (24, 4) if small else (128, 16)
        self.generator = torch.Generator().manual_seed(3)
        self.tokens = self.random(model.vocabulary, self.prompt + self.decoded)

    def random(self, below: int, *shape: int) -> Any:
        import torch
        return torch.randint(below, shape, generator=self.generator)

    def logits(self, batch: int, chunk: int) -> Any:
        """Of all its tokens, one by one behind the prompt, on the CPU: (tokens, vocabulary). The others are other
        tokens at other positions, and the prompt stands anywhere among them."""
        import torch
        count = self.prompt + self.decoded
        tokens = self.random(self.model.vocabulary, batch, count)
        starts = self.random(self.model.step.length - count, batch, 1)
        place = int(self.random(batch, 1))
        tokens[place], starts[place] = self.tokens, 0
        positions = (starts + torch.arange(count)).to(self.model.device)
        tokens = tokens.to(self.model.device)
        ends = [*range(chunk, self.prompt, chunk), *range(self.prompt, count + 1)]
        rows = [self.model(tokens[:, start:end], positions[:, start:end])[place].cpu()
                for start, end in zip([0, *ends], ends)]
        return torch.cat(rows)


def compare(prompt: Prompt, batches: list[int], chunks: list[int], say: Callable[[str], None]) -> dict[str, Any]:
    """Logits of the prompt in batches with those of the prompt alone, that is prefilled at once."""
    import torch
    alone = prompt.logits(1, prompt.prompt)
    if not bool(alone.isfinite().all()) or float(alone.float().std()) == 0:
        raise RuntimeError("the logits are no numbers, or all the same: there is nothing to compare")
    result = {"comparisons": 0, "logits": 0, "differ": 0, "largest": 0.0}
    for batch in (1, *batches):
        for chunk in chunks:
            logits = prompt.logits(batch, chunk)
            differ = int((logits.view(torch.int16) != alone.view(torch.int16)).sum())
            result["comparisons"] += 1
            result["logits"] += logits.numel()
            result["differ"] += differ
            result["largest"] = max(result["largest"], float((logits.float() - alone.float()).abs().max()))
            say(f"batch {batch}, chunks of {chunk}: {differ} of {logits.numel()} logits differ")
    return result


def measure(options: argparse.Namespace, way: str, row: dict[str, Any]) -> None:
    """Fills the row, step by step: what was compared stays if times fail."""
    import product_overrides as overrides
    import tensor_parallel
    import torch
    from invariant_models import Model, check_parts
    name, dtype = row["model"], getattr(torch, options.dtype)
    on_gpu = options.device == "cuda" or options.products_on_gpu
    if options.device == "cuda" and torch.cuda.device_count() < options.gpus:
        raise NotRun(f"there are fewer than {options.gpus} GPUs")
    grouped = options.experts == "grouped" if options.experts else not way.startswith(("rows", "shim"))
    device = torch.cuda.get_device_name() if on_gpu else "CPU"
    model = Model(name, layers=options.layers, small=options.small, length=64 if options.small else 256,
                  grouped=grouped, device=options.device, dtype=dtype)
    if parts := check_parts(model, 128 if options.small else 8192, dtype):
        raise RuntimeError(f"not batch-invariant by PyTorch {torch.__version__}, and no product: {', '.join(parts)}")
    if options.gpus > 1:
        try:
            tensor_parallel.split(model.model)
        except ValueError as error:
            raise NotRun(str(error)) from error
    prompt = Prompt(model, options.small)
    with multiply_by(way, on_gpu) as served:
        undo = overrides.override(overrides.on_the_gpu(), "CPU") if options.products_on_gpu else lambda: None
        before = served()
        compared = compare(prompt, options.batches, [prompt.prompt, prompt.prompt * 3 // 8, 1],
                           lambda text: progress(f"{way}, {name}: {text}"))
        row |= {"device": device if options.gpus == 1 else f"{options.gpus} x {device}", "served": served() - before,
                **compared}
        if name != "llama":
            row["experts"] = "grouped" if grouped else "loop"
        if way.startswith(("hgemm", "shim")) and not row["served"]:
            raise RuntimeError("libhgemm has served no product")
        for batch in [] if options.no_times else options.timed:
            progress(f"{way}, {name}: times of batch {batch}")
            graphs = options.device == "cuda" and (name == "llama" or grouped)
            row.setdefault("times", []).append(timing.times(prompt, batch, graphs, tensor_parallel.agree))
        undo()


def work(options: argparse.Namespace, way: str) -> int:
    """Prints rows as JSON."""
    import tensor_parallel
    import torch
    if options.device is None:
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    enough = options.device == "cpu" or torch.cuda.device_count() >= options.gpus  # else measure() says so
    with tensor_parallel.group(options.gpus if enough else 1, options.device):
        for name in options.models:
            row: dict[str, Any] = {"model": name, "way": way}
            try:
                with torch.no_grad():
                    measure(options, way, row)
            except NotRun as error:
                row["remark"] = f"not run: {error}"
            except Exception as error:  # others go on
                where = f"rank {tensor_parallel.rank()}: " if options.gpus > 1 else ""
                row["remark"] = f"failed: {where}{' '.join(str(error).split())}"
            if failed(row) or tensor_parallel.rank() == 0:
                print(json.dumps(row), flush=True)
            if failed(row) and options.gpus > 1:
                sys.exit(1)  # or the other processes would wait for this one
    return 0


# ---- All of them


def environment_of(way: str) -> dict[str, str]:
    """Of the process. Variables decide before the first product."""
    environment = dict(os.environ)
    if way == "cublas-no-split-k":
        environment |= {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "1"}
    if way.startswith("shim"):
        from hgemm.__main__ import shim_environment
        invariant = way == "shim"
        environment = shim_environment(argparse.Namespace(batch_invariant=invariant, strict=True, log="summary"))
        environment["HGEMM_SHIM_MODE"] = "batch-invariant" if invariant else "default"
    return environment


def run(way: str, models: list[str], gpus: int, arguments: list[str]) -> list[dict[str, Any]]:
    """In processes of its own; a row for each model."""
    try:
        environment = environment_of(way)
    except (ImportError, ValueError) as error:
        return [{"model": name, "way": way, "remark": f"not run: {error}"} for name in models]
    ended = launch([sys.executable, os.path.abspath(__file__), *arguments, "--worker", way], gpus, environment)
    rows = {name: {"model": name, "way": way} for name in models}
    silent = []  # those that failed and did not say why in a row
    for process in ended:
        printed = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
        for row in printed:  # the first process prints all of them, others what failed there
            merged = rows[row["model"]]
            remarks = [one["remark"] for one in (merged, row) if "remark" in one]
            merged |= row | ({"remark": "; ".join(remarks)} if remarks else {})
        if process.failure and not any(map(failed, printed)):
            silent.append(process.failure)
    add_failures(list(rows.values()), silent)
    return list(rows.values())


def add_failures(rows: list[dict[str, Any]], failures: list[str]) -> None:
    """Of processes, to the remarks of rows that have failed or are missing; if there is none, to that of the last."""
    unfinished = [row for row in rows if failed(row) or len(row) == 2]
    for row in unfinished or (rows[-1:] if failures else []):
        said = [row["remark"].removeprefix("failed: ")] if "remark" in row else []
        row["remark"] = "failed: " + ("; ".join(failures + said) or "its process ended before")


def text_of(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) and value < 1e4 else f"{value:.0f}" \
        if isinstance(value, float) else str(value)


def print_table(rows: list[dict[str, Any]], columns: Iterable[str]) -> None:
    """One line for each row; remarks stand below it."""
    shown = [column for column in columns if column not in ("device", "remark") and any(column in row for row in rows)]
    lines = [shown] + [[text_of(row.get(column, "-")) for column in shown] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*lines)]
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) if name in ("model", "way", "experts") else cell.rjust(width)
                 for name, cell, width in zip(shown, line, widths)]
        print("  ".join(cells).rstrip())
        if number and "remark" in rows[number - 1]:
            print(f"    {rows[number - 1]['remark']}")


def write_csv(path: Path, rows: list[dict[str, Any]], columns: Iterable[str]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(rows)


def failed(row: dict[str, Any]) -> bool:
    return bool(row.get("remark", "").startswith("failed"))


def exit_status(rows: list[dict[str, Any]]) -> int:
    compared = [row for row in rows if row["way"] in INVARIANT and "differ" in row]
    if any(row["differ"] for row in compared):
        return 1
    return 2 if any(map(failed, rows)) or not compared else 0


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    options = parse(given)
    if options.worker:
        return work(options, options.worker)
    rows: list[dict[str, Any]] = []
    for way in options.ways:
        progress(f"{way}: {WAYS[way]}")
        rows += run(way, options.models, options.gpus, given)
    times = timing.with_ratios([{key: row[key] for key in ("model", "way", "experts") if key in row} | line
                                for row in rows for line in row.pop("times", [])])
    devices = {row["device"] for row in rows if "device" in row}
    print(f"Device: {', '.join(sorted(devices)) or 'none'}.")
    print_table(rows, COLUMNS)
    if times:
        print(f"\n{timing.METHOD}")
        print_table(times, timing.COLUMNS)
    if options.csv:
        path = Path(options.csv)
        write_csv(path, rows, COLUMNS)
        if times:
            write_csv(path.with_stem(f"{path.stem}-times"), times, timing.COLUMNS)
    status = exit_status(rows)
    print({0: "The ways of libhgemm that are batch-invariant gave equal bits everywhere.",
           1: "A way of libhgemm that must be batch-invariant gave other bits.",
           2: "Nothing is proved: a way failed, or no batch-invariant way of libhgemm was run."}[status])
    return status


if __name__ == "__main__":
    sys.exit(main())
