"""Products by Triton with one size of tiles whatever the shape, as batch-invariant inference uses them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
LAUNCH = {"num_warps": 8, "num_stages": 3}


@triton.jit
def _tile(a, b, d, first_row, row_end, first_column, n, k, row_a, column_a, row_b, column_b,
          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One tile of D, whose rows are n apart. An element's sum goes over K in blocks, in one order."""
    rows = first_row + tl.arange(0, BLOCK_M)
    columns = first_column + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    inside_row, inside_column = rows[:, None] < row_end, columns[None, :] < n
    left = a + rows.to(tl.int64)[:, None] * row_a + inner[None, :] * column_a
    right = b + inner[:, None] * row_b + columns.to(tl.int64)[None, :] * column_b
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inside = start + inner < k
        x = tl.load(left, mask=inside_row & inside[None, :], other=0.0)
        y = tl.load(right, mask=inside[:, None] & inside_column, other=0.0)
        sums = tl.dot(x, y, sums)
        left += BLOCK_K * column_a
        right += BLOCK_K * row_b
    tl.store(d + rows.to(tl.int64)[:, None] * n + columns[None, :], sums.to(d.dtype.element_ty),
             mask=inside_row & inside_column)


# One kernel for any M: Triton would compile others for an M of 1 or a multiple of 16. It may do so for all the rest,
# as it loads 16 bytes at a time only where it knows that strides are multiples of that.
@triton.jit(do_not_specialize=["batches", "m"])
def _product(a, b, d, batches, m, n, k, batch_a, row_a, column_a, batch_b, row_b, column_b,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BAND: tl.constexpr):
    """Persistent: each program takes every num_programs-th tile. They run through a matrix in bands of BAND tiles of
    rows, down the columns of a band, so that tiles computed at once share operands in the L2 cache."""
    down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in range(tl.program_id(0), batches * down * across, tl.num_programs(0)):
        batch, place = (tile // (down * across)).to(tl.int64), tile % (down * across)
        band = place // (BAND * across)
        height = min(BAND, down - band * BAND)
        within = place - band * BAND * across
        _tile(a + batch * batch_a, b + batch * batch_b, d + batch * m * n,
              (band * BAND + within % height) * BLOCK_M, m, within // height * BLOCK_N, n, k,
              row_a, column_a, row_b, column_b, BLOCK_M, BLOCK_N, BLOCK_K)


@triton.jit
def _grouped_product(a, b, d, ends, groups, n, k, row_a, column_a, batch_b, row_b, column_b,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """As _product, for the tiles of all groups, whose numbers of rows only the device knows."""
    across = tl.cdiv(n, BLOCK_N)
    tile, first, row = tl.program_id(0), 0, 0
    for group in range(groups):
        end = tl.load(ends + group)
        down = tl.cdiv(end - row, BLOCK_M)
        while tile < first + down * across:
            place = tile - first
            _tile(a, b + tl.cast(group, tl.int64) * batch_b, d, row + place % down * BLOCK_M, end,
                  place // down * BLOCK_N, n, k, row_a, column_a, row_b, column_b, BLOCK_M, BLOCK_N, BLOCK_K)
            tile += tl.num_programs(0)
        first += down * across
        row = end


@functools.cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 3


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for matrices, (m, k) and (k, n), or batches of them."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    batches = a.shape[0] if a.dim() == 3 else 1
    d = a.new_empty((*a.shape[:-1], n))
    if d.numel():
        # Strides along one element mean nothing, so that they must not choose the kernel.
        batch_a, batch_b = (a.stride(0), b.stride(0)) if batches > 1 else (0, 0)
        row_a, column_a = a.stride()[-2:] if m > 1 else (k, a.stride(-1))
        tile = {**TILE, "BLOCK_K": TILE["BLOCK_K"] * 2 // a.element_size()}  # fp32 takes as much shared memory
        tiles = batches * triton.cdiv(m, TILE["BLOCK_M"]) * triton.cdiv(n, TILE["BLOCK_N"])
        _product[min(_multiprocessors(a.device), tiles),](
            a, b, d, batches, m, n, k, batch_a, row_a, column_a, batch_b, b.stride(-2), b.stride(-1), **tile, BAND=8,
            **LAUNCH)
    return d


def grouped_product(a: Tensor, b: Tensor, offs: Tensor | None = None, bias: Tensor | None = None,
                    out_dtype: torch.dtype | None = None) -> Tensor:
    """torch's _grouped_mm of a (rows, k) and b (groups, k, n): group i are the rows of a before offs[i] (int32)."""
    if a.dim() != 2 or b.dim() != 3 or offs is None or bias is not None or out_dtype not in (None, a.dtype):
        raise NotImplementedError("grouped products of other forms")
    (rows, k), (groups, _, n) = a.shape, b.shape
    d = a.new_empty(rows, n)
    if d.numel():
        row_a, column_a = a.stride() if rows > 1 else (k, a.stride(1))
        _grouped_product[_multiprocessors(a.device),](a, b, d, offs, groups, n, k, row_a, column_a, *b.stride(), **TILE,
                                                      **LAUNCH)
    return d


def operators() -> dict[str, Callable[..., Tensor]]:
    """What torch multiplies by in models without bias."""
    return {"mm": product, "bmm": product, "_grouped_mm": grouped_product}
