"""The plug-in for SGLang."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _plugin

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def _replacements(plugin: _plugin.Plugin, originals: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    from ._products import Products, require_batches
    multiply = Products(plugin.left)
    matmul, bmm = originals["matmul_persistent"], originals["bmm_batch_invariant"]

    def matmul_persistent(a: Tensor, b: Tensor, bias: Tensor | None = None,
                          out_dtype: torch.dtype | None = None) -> Tensor:
        result = multiply("matmul_persistent", a, b, bias, out_dtype)
        return matmul(a, b, bias, out_dtype) if result is None else result

    def bmm_batch_invariant(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
        require_batches(a, b)
        result = multiply("bmm_batch_invariant", a, b, out=out)
        return bmm(a, b, out=out) if result is None else result

    return {function.__name__: function for function in (matmul_persistent, bmm_batch_invariant)}


def _check() -> None:
    """These compute the products of unquantized layers themselves, also in the engine's deterministic mode."""
    unquantized = sys.modules.get("sglang.srt.layers.quantization.unquant")
    if unquantized is not None:
        backend = unquantized.get_bf16_gemm_backend()
        if backend.is_gemv() or backend.is_cutedsl():
            raise _plugin.Refused(f"--bf16-gemm-backend {backend.value} computes products by kernels of its own; "
                                  "auto or torch leaves them to the batch-invariant functions")


ENGINE = _plugin.Engine(
    name="sglang",
    versions=("0.5.23",),
    module="sglang.srt.batch_invariant_ops.batch_invariant_ops",
    signatures={
        "matmul_persistent": "(a, b, bias=None, out_dtype=None)",
        "bmm_batch_invariant": "(a, b, *, out=None)",
    },
    starts="enable_batch_invariant_mode",
    layers="sglang.srt.layers.linear",
    heads="sglang.srt.layers.vocab_parallel_embedding",
    replacements=_replacements,
    prepare=lambda mode: {},
    check=_check,
)


def load() -> None:
    """The entry point in the group sglang.srt.plugins. SGLang logs exceptions of plug-ins and goes on without them,
    which would be a silent fall-back; this ends the process."""
    try:
        _plugin.load(ENGINE)
    except Exception as error:
        raise SystemExit(f"hgemm: {error}") from error
