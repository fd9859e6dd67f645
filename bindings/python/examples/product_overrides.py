"""Other kernels for torch's products, in place of its own: one row at a time, or on another device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_libraries: list[torch.library.Library] = []  # torch keeps what is registered as long as these live


def override(operators: dict[str, Callable[..., Tensor]], key: str) -> Callable[[], None]:
    """Let these functions compute torch's operators (``aten::mm``) for CPU or CUDA tensors. Returns what undoes it."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():  # torch warns of every kernel that is replaced
        warnings.simplefilter("ignore")
        for name, function in operators.items():
            library.impl(name, function, key, allow_override=True)
    _libraries.append(library)

    def undo() -> None:
        library._destroy()
        _libraries.remove(library)
    return undo


def products_by(mm: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Callable[..., Tensor]]:
    """mm and bmm in terms of a product of two matrices; the models here have no bias."""
    def bmm(a: Tensor, b: Tensor) -> Tensor:
        return torch.stack([mm(x, y) for x, y in zip(a, b)])
    return {"mm": mm, "bmm": bmm}


def by_row(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, each row by itself, summed in fp32 by elementwise additions in one order. It is slow: a control, which is
    batch-invariant whatever the hardware does."""
    rows, (k, n) = [], b.shape
    wide = b.float()
    for row in a.float():
        terms = row[:, None] * wide
        while terms.shape[0] > 1:
            half = (terms.shape[0] + 1) // 2
            upper = terms[half:]
            terms = torch.cat([terms[:upper.shape[0]] + upper, terms[upper.shape[0]:half]])
        rows.append(terms[0] if k else wide.new_zeros(n))
    return torch.stack(rows).to(a.dtype) if rows else a.new_empty(0, n)


def on_the_gpu(functions: tuple[str, ...] = ("mm", "bmm", "_grouped_mm")) -> dict[str, Callable[..., Tensor]]:
    """For CPU tensors: torch's operators of CUDA tensors, and the result comes back."""
    def at(name: str) -> Callable[..., Tensor]:
        operator = getattr(torch.ops.aten, name).default

        def run(*arguments: Any, **others: Any) -> Tensor:
            def move(x: Any) -> Any:  # without a kernel of torch's, which a virtual driver may not run
                return _dense(x).cuda() if isinstance(x, Tensor) else x
            result: Tensor = operator(*map(move, arguments), **{name: move(x) for name, x in others.items()})
            return result.cpu()
        return run
    return {name: at(name) for name in functions}


def _dense(x: Tensor) -> Tensor:
    """x, or a copy that lies in memory without gaps."""
    return x if x.is_contiguous() or x.mT.is_contiguous() else x.contiguous()

