"""The operators' results without memory, for torch.compile, and their gradients."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from . import _ops
from ._extension import BATCHED, is_plain, needs_gradient, refuse_forward_mode, serve_plain
from ._ops import GEMM, GEMM_AUX, GROUPED_MM, check_groups, kind, kind_or_none, result_shape


def _new(a: Tensor, b: Tensor, c: Tensor | None, bias: Tensor | None, out_dtype: torch.dtype | None) -> Tensor:
    shape = result_shape(kind(a), kind(b), kind_or_none(c), kind_or_none(bias), out_dtype or a.dtype)
    return a.new_empty(shape, dtype=out_dtype)


@torch.library.register_fake("hgemm::gemm")
def _gemm_fake(a: Tensor, b: Tensor, c: Tensor | None, bias: Tensor | None, alpha: float, beta: float,
               activation: str, out_dtype: torch.dtype | None, batch_invariant: bool) -> Tensor:
    return _new(a, b, c, bias, out_dtype)


@torch.library.register_fake("hgemm::gemm_aux")
def _gemm_aux_fake(a: Tensor, b: Tensor, c: Tensor | None, bias: Tensor | None, alpha: float, beta: float,
                   activation: str, out_dtype: torch.dtype | None, batch_invariant: bool) -> tuple[Tensor, Tensor]:
    return _new(a, b, c, bias, out_dtype), _new(a, b, c, bias, out_dtype)


@torch.library.register_fake("hgemm::gemm_out")
def _gemm_out_fake(a: Tensor, b: Tensor, c: Tensor | None, bias: Tensor | None, alpha: float, beta: float,
                   activation: str, out: Tensor, batch_invariant: bool) -> None:
    _new(a, b, c, bias, out.dtype)


@torch.library.register_fake("hgemm::grouped_mm")
def _grouped_mm_fake(a: Tensor, b: Tensor, ends: Tensor, clear: bool, batch_invariant: bool) -> Tensor:
    check_groups(kind(a), kind(b), kind(ends))
    return a.new_empty((a.shape[0], b.shape[2]))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    a, b, c, bias, ctx.alpha, ctx.beta, ctx.activation, _, ctx.batch_invariant = inputs
    ctx.save_for_backward(a, b, output[1] if isinstance(output, tuple) else None)
    ctx.c_dtype, ctx.bias_dtype = getattr(c, "dtype", None), getattr(bias, "dtype", None)
    ctx.set_materialize_grads(False)


def _product(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
    if ctx.alpha == 1:
        result = serve_plain(a, b, ctx.batch_invariant | BATCHED if a.dim() == 3 else ctx.batch_invariant)
        if result is not None:
            return result
    return GEMM(a, b, None, None, ctx.alpha, 0.0, "none", None, ctx.batch_invariant)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    """grad: of what is before the activation."""
    a, b, _ = ctx.saved_tensors
    need_a, need_b, need_c, need_bias = ctx.needs_input_grad[:4]
    half = grad.to(a.dtype)
    grad_a = grad_b = grad_c = grad_bias = None
    if need_a:
        grad_a = _product(ctx, half, b.transpose(-2, -1))
    if need_b:
        grad_b = _product(ctx, a.transpose(-2, -1), half)
    if need_c:
        grad_c = (grad * ctx.beta).to(ctx.c_dtype)
    if need_bias:
        grad_bias = grad.sum(tuple(range(grad.dim() - 1)), dtype=torch.float32).to(ctx.bias_dtype)
    return grad_a, grad_b, grad_c, grad_bias, None, None, None, None, None


def _gemm_backward(ctx: Any, grad: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    if grad is None:
        return (None,) * 9
    if ctx.activation != "none":
        raise RuntimeError("hgemm::gemm has no gradient of an activation; hgemm::gemm_aux has")
    return _gradients(ctx, grad)


def _activation_backward(activation: str, grad: Tensor, aux: Tensor) -> Tensor:
    if activation == "relu":
        return torch.ops.aten.threshold_backward(grad, aux, 0)
    if activation == "silu":
        if torch.is_grad_enabled():  # a gradient of this gradient is wanted, which silu_backward() does not have
            sigmoid = aux.sigmoid()
            return grad * sigmoid * (1 + aux * (1 - sigmoid))
        return torch.ops.aten.silu_backward(grad, aux)
    if activation == "none":
        return grad
    return torch.ops.aten.gelu_backward(grad, aux, approximate="tanh" if "tanh" in activation else "none")


def _gemm_aux_backward(ctx: Any, grad: Optional[Tensor],
                       grad_aux: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    """grad_aux: of the values before the activation, on which the gradient itself depends."""
    if grad is not None:
        grad = _activation_backward(ctx.activation, grad, ctx.saved_tensors[2])
        grad_aux = grad if grad_aux is None else grad + grad_aux
    return _gradients(ctx, grad_aux) if grad_aux is not None else (None,) * 9


def _save_grouped(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ends, _, ctx.batch_invariant = inputs
    ctx.save_for_backward(a, b, ends)


def _grouped_mm_backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    a, b, ends = ctx.saved_tensors
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = GROUPED_MM(grad, b.transpose(-2, -1), ends, True, ctx.batch_invariant)
    if ctx.needs_input_grad[1]:
        # Sums over the rows of each group: the library has no such product.
        grad_b = torch._grouped_mm(a.t(), grad.contiguous(), offs=ends.to(torch.int32))
    return grad_a, grad_b, None, None, None


torch.library.register_autograd("hgemm::gemm", _gemm_backward, setup_context=_save)
torch.library.register_autograd("hgemm::gemm_aux", _gemm_aux_backward, setup_context=_save)
torch.library.register_autograd("hgemm::grouped_mm", _grouped_mm_backward, setup_context=_save_grouped)


class _Gemm(torch.autograd.Function):
    """As the operator, whose gradient costs more of the host's time. So would setup_context()."""
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        result = _ops.gemm(*inputs)
        _save(ctx, inputs, result)
        return result

    backward = staticmethod(_gemm_backward)


class _GemmAux(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        results = _ops.gemm_aux(*inputs)
        _save(ctx, inputs, results)
        return results

    backward = staticmethod(_gemm_aux_backward)


def gemm(*arguments: Any) -> Tensor:
    """The operator hgemm::gemm."""
    refuse_forward_mode(*arguments[:4])
    if needs_gradient(*arguments[:4]) and is_plain(*arguments[:4]):
        return _Gemm.apply(*arguments)
    return GEMM(*arguments)


def gemm_aux(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The operator hgemm::gemm_aux."""
    refuse_forward_mode(*arguments[:4])
    if needs_gradient(*arguments[:4]) and is_plain(*arguments[:4]):
        return _GemmAux.apply(*arguments)
    return GEMM_AUX(*arguments)
