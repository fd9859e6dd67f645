"""Other kernels for torch's products, in place of its own: Triton, one row at a time, or on another device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:
    triton = None

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


if triton is not None:
    # One kernel for any M: Triton would compile other kernels for an M of 1 or a multiple of 16.
    @triton.jit(do_not_specialize=["m", "batch_a", "batch_b", "batch_d"])
    def _kernel(a, b, d, m, n, k, batch_a, row_a, column_a, batch_b, row_b, column_b, batch_d,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
        """One tile of D. An element's sum goes over K in blocks, in one order."""
        batch = tl.program_id(2).to(tl.int64)
        rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        columns = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            inner = start + tl.arange(0, BLOCK_K)
            left = tl.load(a + batch * batch_a + rows[:, None] * row_a + inner[None, :] * column_a,
                           mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
            right = tl.load(b + batch * batch_b + inner[:, None] * row_b + columns[None, :] * column_b,
                            mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0)
            sums = tl.dot(left, right, sums)
        tl.store(d + batch * batch_d + rows[:, None] * n + columns[None, :], sums.to(d.dtype.element_ty),
                 mask=(rows[:, None] < m) & (columns[None, :] < n))


def by_triton(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for matrices or batches of them, with one size of tiles whatever the shape."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    batches = a.shape[0] if a.dim() == 3 else 1
    d = a.new_empty((*a.shape[:-1], n))
    tile = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64}
    grid = (triton.cdiv(m, tile["BLOCK_M"]), triton.cdiv(n, tile["BLOCK_N"]), batches)
    strides_a, strides_b = (((0, *x.stride()) if x.dim() == 2 else x.stride()) for x in (a, b))
    if d.numel():
        _kernel[grid](a, b, d, m, n, k, *strides_a, *strides_b, m * n, **tile, num_warps=4, num_stages=3)
    return d
