"""libhgemm for PyTorch: products of float16 and bfloat16 tensors on CUDA devices, and on the CPU.

Functions have the signatures of torch's own, run on torch's current stream, and work with autograd, torch.compile
and CUDA graphs. ``enable()`` and ``batch_invariant()`` let them serve torch's own operators.
"""

from __future__ import annotations

from typing import Any, Optional

try:
    import torch
except ModuleNotFoundError as error:
    raise ImportError("hgemm.torch needs PyTorch, which is not installed") from error
from torch import Tensor

from .._operand import ACTIVATIONS
from . import _autograd, _flops, _groups, _linear, _ops  # noqa: F401  define torch.ops.hgemm
from ._extension import ACTIVATION_SHIFT, BATCHED, LINEAR, WIDTHS, needs_gradient, serve_plain
from ._gates import gated_linear, grouped_gated_mm
from ._moe import moe
from ._ops import Names, require_dimensions, require_tensors
from ._overrides import batch_invariant, counts, disable, enable, mode
from ._symmetric import newton_schulz, syrk, syrkx
from ._tree import tree_mm

__all__ = ["addmm", "baddbmm", "batch_invariant", "bmm", "counts", "disable", "enable", "gated_linear",
           "grouped_gated_mm", "grouped_mm", "linear", "mm", "moe", "newton_schulz", "syrk", "syrkx", "tree_mm"]

_LINEAR = {name: LINEAR | activation << ACTIVATION_SHIFT for name, activation in ACTIVATIONS.items()}


def _gemm(names: Names, a: Tensor, b: Tensor, *, c: Tensor | None = None, bias: Tensor | None = None,
          alpha: float = 1, beta: float = 0, out_dtype: torch.dtype | None = None, out: Tensor | None = None) -> Tensor:
    """names: those of the function that was called."""
    if out is not None:
        require_tensors(out=out)
    try:
        if out is None:
            return _autograd.gemm(a, b, c, bias, float(alpha), float(beta), "none", out_dtype, mode.batch_invariant)
        names = names._replace(dtype="out")
        _ops._require(out_dtype in (None, out.dtype), TypeError, f"out_dtype: is {out_dtype}, and out is {out.dtype}")
        if needs_gradient(a, b, c, bias, out):
            raise RuntimeError("out: there is no gradient where it is given, as in torch, and an argument requires one")
        _ops.resize_empty(out, a, b, c, bias, names=names)
        _ops.GEMM_OUT(a, b, c, bias, float(alpha), float(beta), "none", out, mode.batch_invariant)
        return out
    except (TypeError, ValueError) as error:
        _ops.raise_named(error, a, b, c, bias, getattr(out, "dtype", out_dtype), names)


_OF_MM, _OF_ADDMM = Names("input", "mat2"), Names("mat1", "mat2", "input", "input")
_OF_BADDBMM = Names("batch1", "batch2", "input", "input")
_OF_LINEAR, _OF_GROUPED_MM = Names("input", "weight"), Names("mat_a", "mat_b")


def mm(input: Tensor, mat2: Tensor, out_dtype: Optional[torch.dtype] = None, *,
       out: Optional[Tensor] = None) -> Tensor:
    """As torch.mm(): (M, K) by (K, N). ``out_dtype`` may be torch.float32."""
    if out is None and out_dtype in WIDTHS:
        result = serve_plain(input, mat2, mode.now.batch_invariant | WIDTHS[out_dtype])
        if result is not None:
            return result
    require_dimensions(2, input=input, mat2=mat2)
    return _gemm(_OF_MM, input, mat2, out_dtype=out_dtype, out=out)


def bmm(input: Tensor, mat2: Tensor, out_dtype: Optional[torch.dtype] = None, *,
        out: Optional[Tensor] = None) -> Tensor:
    """As torch.bmm(): (batch, M, K) by (batch, K, N)."""
    if out is None and out_dtype in WIDTHS:
        result = serve_plain(input, mat2, mode.now.batch_invariant | WIDTHS[out_dtype] | BATCHED)
        if result is not None:
            return result
    require_dimensions(3, input=input, mat2=mat2)
    return _gemm(_OF_MM, input, mat2, out_dtype=out_dtype, out=out)


def _add(names: Names, input: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float, out_dtype: torch.dtype | None,
         out: Tensor | None) -> Tensor:
    matrix, bias = _ops.split_input(input, a, b, beta)
    return _gemm(names, a, b, c=matrix, bias=bias, alpha=alpha, beta=beta, out_dtype=out_dtype, out=out)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: Optional[torch.dtype] = None, *, beta: float = 1,
          alpha: float = 1, out: Optional[Tensor] = None) -> Tensor:
    """As torch.addmm(): beta * input + alpha * mat1 @ mat2."""
    require_tensors(input=input)
    if out is None and out_dtype in WIDTHS:
        form = mode.now.batch_invariant | WIDTHS[out_dtype]
        result = serve_plain(mat1, mat2, form, input, alpha, beta)
        if result is not None:
            return result
    require_dimensions(2, mat1=mat1, mat2=mat2)
    return _add(_OF_ADDMM, input, mat1, mat2, beta, alpha, out_dtype, out)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, out_dtype: Optional[torch.dtype] = None, *,
            beta: float = 1, alpha: float = 1, out: Optional[Tensor] = None) -> Tensor:
    """As torch.baddbmm(): beta * input + alpha * batch1 @ batch2."""
    require_tensors(input=input)
    if out is None and out_dtype in WIDTHS:
        form = mode.now.batch_invariant | WIDTHS[out_dtype] | BATCHED
        result = serve_plain(batch1, batch2, form, input, alpha, beta)
        if result is not None:
            return result
    require_dimensions(3, batch1=batch1, batch2=batch2)
    return _add(_OF_BADDBMM, input, batch1, batch2, beta, alpha, out_dtype, out)


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, activation: Optional[str] = None) -> Tensor:
    """As torch.nn.functional.linear(), and then an activation, in one kernel.

    ``input``: (..., K), ``weight``: (N, K), ``bias``: (N,). ``activation``: "relu", "gelu_tanh", "gelu_erf" or "silu".
    The activation is that of the fp32 sum. Where a gradient is needed, the values before it are kept.
    """
    if activation in _LINEAR:
        served = serve_plain(input, weight, mode.now.batch_invariant | _LINEAR[activation], bias)
        if served is None:
            served = _linear.linear(input, weight, bias, activation, mode.now.batch_invariant)
        if served is not None:
            return served
    require_tensors(input=input)
    require_dimensions(2, weight=weight)
    if bias is not None:
        require_tensors(bias=bias)
    _ops._require(input.dim() > 0, ValueError, "input: 0 dimensions, must be 1 or more")
    _ops._require(input.shape[-1] == weight.shape[1], ValueError,
                  lambda: f"weight: its shape {tuple(weight.shape)} does not fit that of input, {tuple(input.shape)}")
    _ops._require(activation in ACTIVATIONS, ValueError,
                  lambda: f"activation: {activation!r}, must be one of {', '.join(map(str, ACTIVATIONS))}")
    rows = 1
    for length in input.shape[:-1]:
        rows *= length
    a = input.reshape(rows, input.shape[-1])
    activation = activation or "none"
    arguments = (a, weight.t(), None, bias, 1.0, 0.0, activation, None, mode.batch_invariant)
    try:
        if activation != "none" and needs_gradient(input, weight, bias):
            result = _autograd.gemm_aux(*arguments)[0]
        else:
            result = _autograd.gemm(*arguments)
    except (TypeError, ValueError) as error:
        _ops.raise_named(error, a, weight.t(), None, bias, None, _OF_LINEAR)
    return result.reshape(*input.shape[:-1], weight.shape[0])


def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """As torch.nn.functional.grouped_mm(): rows of mat_a (M, K) in groups, each by its own matrix of mat_b (G, K, N).

    ``offs``: int32, (G,), where each group ends, on the device. Rows behind the last end are not written. If mat_b is
    (K, N), the groups are of K: the result (G, M, N) has the product of each group's columns of mat_a and rows of
    mat_b, as gradients of weights are. Its ``out_dtype`` may be torch.float32. Without ``offs`` both are batches.
    ``bias``: (G, N), of mat_a's type or float32, is added to the rows of each group of rows. For other forms, or an
    ``out_dtype`` of another type, call torch's.
    """
    require_tensors(mat_a=mat_a, mat_b=mat_b)
    of_k = offs is not None and mat_a.dim() == mat_b.dim() == 2
    if bias is not None:
        _ops._require(offs is not None and not of_k, ValueError, "bias: must be None unless groups are of rows")
        require_tensors(bias=bias)
    _ops._require(of_k or out_dtype in (None, mat_a.dtype), TypeError,
                  lambda: f"out_dtype: is {out_dtype}, must be {mat_a.dtype}")
    if offs is None:
        require_dimensions(3, mat_a=mat_a, mat_b=mat_b)
        return _gemm(_OF_GROUPED_MM, mat_a, mat_b)
    require_tensors(offs=offs)
    if of_k:
        return _groups.grouped_mm_k(mat_a, mat_b, offs, out_dtype, mode.batch_invariant)
    return _groups.grouped_mm(mat_a, mat_b, offs, False, mode.batch_invariant, None, bias)
