"""Products whose sums over K are trees (hgemm_mode_t): processes that hold a part of K each get the bits of one."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .. import c
from . import _extension, _ops
from ._autograd import Differentiable
from ._ops import Names, require_dimensions, require_tensors

_OF_TREE_MM = Names("input", "mat2")

# a @ b + bias: (M, K) by (K, N).
_ops._library.define("tree_mm(Tensor a, Tensor b, Tensor? bias, ScalarType? out_dtype) -> Tensor")


def _kernel(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None) -> Tensor:
    return _ops.run(a, b, None, bias, 1.0, 0.0, "none", out_dtype, c.Mode.TREE)[0]


for _key in ("CPU", "CUDA"):
    _ops._library.impl("tree_mm", _extension.untraced(_kernel), _key)
TREE_MM = torch.ops.hgemm.tree_mm.default


@torch.library.register_fake("hgemm::tree_mm")
def _fake(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None) -> Tensor:
    return a.new_empty(_ops.check(a, b, None, bias, out_dtype, Names()), dtype=out_dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, bias, _ = inputs
    ctx.save_for_backward(a, b)
    ctx.bias_dtype = getattr(bias, "dtype", None)


def _backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    a, b = ctx.saved_tensors
    return *gradients(ctx.needs_input_grad[:3], a, b, grad, ctx.bias_dtype), None


def gradients(needed: tuple[bool, ...], a: Tensor, b: Tensor, grad: Tensor,
              bias_dtype: torch.dtype | None) -> tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    """Of a, b and the bias. Those of parts of K are parts, bit by bit, of those of all of K."""
    half = grad.to(a.dtype)
    grad_a = _apply(half, b.t(), None, None) if needed[0] else None
    grad_b = _apply(a.t(), half, None, None) if needed[1] else None
    grad_bias = grad.sum(0, dtype=torch.float32).to(bias_dtype) if needed[2] else None
    return grad_a, grad_b, grad_bias


_TREE_MM = Differentiable(TREE_MM, _kernel, _save, _backward)


def _apply(*arguments: Any) -> Tensor:
    return _TREE_MM.of(*arguments[:3])(*arguments)


def tree_mm(input: Tensor, mat2: Tensor, bias: Optional[Tensor] = None,
            out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """(M, K) by (K, N), and ``bias``, (N,), added to each row. ``out_dtype`` may be torch.float32.

    An element's bits depend on its row, its column, its bias and K alone. K is cut into halves as long as each is a
    multiple of 64 and at least 512, and the float32 sums of the parts are added pairwise. So float32 products of
    halves of K, added, have the bits of the whole product. The products of gradients are computed in the same way.
    """
    require_dimensions(2, input=input, mat2=mat2)
    if bias is not None:
        require_tensors(bias=bias)
    try:
        return _apply(input, mat2, bias, out_dtype)
    except (TypeError, ValueError) as error:
        _ops.raise_named(error, input, mat2, None, bias, out_dtype, _OF_TREE_MM)
