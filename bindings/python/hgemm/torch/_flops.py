"""What torch.utils.flop_counter counts of the operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch.utils.flop_counter import register_flop_formula

from . import _gates, _groups, _symmetric, _tree  # noqa: F401  define operators, and so do the modules that they import

_ops = torch.ops.hgemm


@register_flop_formula([_ops.gemm, _ops.gemm_aux, _ops.gemm_out, _ops.tree_mm, _ops.gated,
                        _ops.gated_aux])
def _of_product(a: Sequence[int], b: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * prod(a) * b[-1]


@register_flop_formula([_ops.syrk, _ops.syrkx])
def _of_symmetric_result(a: Sequence[int], *_: Any, **__: Any) -> int:
    """Of one half and the diagonal."""
    return prod(a) * (a[-2] + 1)


@register_flop_formula([_ops.grouped_mm, _ops.grouped_mm_k, _ops.grouped_gated_mm, _ops.grouped_gated_mm_aux])
def _of_groups(a: Sequence[int], b: Sequence[int], *_: Any, **__: Any) -> int:
    """Of all rows, or all K: which are in a group is known on the device alone."""
    return 2 * prod(a) * b[-1]
