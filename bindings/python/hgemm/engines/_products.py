"""Products in the place of an engine's: batch-invariant, and an operator of the library's in compiled graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import c
from ..torch._extension import BATCH_INVARIANT, BATCHED, WIDTHS, serve_plain
from ..torch._ops import GEMM, GEMM_OUT, HALF


def _why_not(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None, out: Tensor | None) -> str:
    """"": the library has this product, if its arguments fit each other."""
    if a.dtype not in HALF:
        return f"the product is of {a.dtype}"
    if b.dtype != a.dtype:
        return f"the product is of {a.dtype} by {b.dtype}"
    if bias is not None and bias.dtype not in (a.dtype, torch.float32):
        return f"the bias is {bias.dtype}, and the product of {a.dtype}"
    for dtype in (out_dtype, None if out is None else out.dtype):
        if dtype not in (None, a.dtype, torch.float32):
            return f"the result is to be {dtype}"
    return ""


def teller(left: Callable[[str, str], None]) -> Any:
    """left: is told which function leaves a product to the engine, and why; raises an error if it is strict. A graph
    that torch.compile makes keeps what it was told while tracing."""
    def tell(name: str, why: str) -> None:
        left(name, why)
    return torch.compiler.assume_constant_result(tell)


class Products:
    """left: as teller() has it."""

    def __init__(self, left: Callable[[str, str], None]) -> None:
        self._tell = teller(left)

    def __call__(self, name: str, a: Tensor, b: Tensor, bias: Tensor | None = None,
                 out_dtype: torch.dtype | None = None, out: Tensor | None = None) -> Tensor | None:
        """a @ b + bias, for matrices or batches of them. None: it is left to the engine. name: of its function."""
        why = _why_not(a, b, bias, out_dtype, out)
        if not why and torch.compiler.is_compiling():
            return self._operator(a, b, bias, out_dtype, out)
        if not why:
            try:
                return self._at_once(a, b, bias, out_dtype, out)
            except c.Error as error:
                why = str(error)
        self._tell(name, why)
        return None

    @staticmethod
    def _operator(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None,
                  out: Tensor | None) -> Tensor:
        """It stays in compiled graphs, and finds out how many rows there are when it runs."""
        if out is None:
            return GEMM(a, b, None, bias, 1.0, 0.0, "none", out_dtype, True)
        GEMM_OUT(a, b, None, bias, 1.0, 0.0, "none", out, True)
        return out

    def _at_once(self, a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None,
                 out: Tensor | None) -> Tensor:
        if out is None:
            form = BATCH_INVARIANT | WIDTHS[None if out_dtype == a.dtype else out_dtype]
            served = serve_plain(a, b, form | BATCHED if a.dim() == 3 else form, bias)
            if served is not None:
                return served
        return self._operator(a, b, bias, out_dtype, out)


def require_batches(a: Tensor, b: Tensor) -> None:
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError(f"bmm_batch_invariant expects 3D tensors, got shapes {a.shape} and {b.shape}")
