"""The operators' results without memory, for torch.compile, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from . import _ops
from ._extension import (BATCHED, is_plain, is_transformed, needs_gradient, no_forward_mode, refuse_forward_mode,
                         serve_plain)
from ._ops import GEMM, GEMM_AUX, kind, kind_or_none, result_shape


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


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    a, b, c, bias, ctx.alpha, ctx.beta, ctx.activation, _, ctx.batch_invariant = inputs
    ctx.save_for_backward(a, b, output[1] if isinstance(output, tuple) else None)
    ctx.c_dtype, ctx.bias_dtype = getattr(c, "dtype", None), getattr(bias, "dtype", None)
    ctx.set_materialize_grads(False)


def product(a: Tensor, b: Tensor, batch_invariant: bool, alpha: float = 1.0) -> Tensor:
    if alpha == 1:
        result = serve_plain(a, b, batch_invariant | BATCHED if a.dim() == 3 else batch_invariant)
        if result is not None:
            return result
    return gemm(a, b, None, None, alpha, 0.0, "none", None, batch_invariant)


def factor_gradients(needed: Sequence[bool], a: Tensor, b: Tensor, grad: Tensor, batch_invariant: bool,
                     alpha: float = 1.0) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """Of a and b, from that of their product, in their type."""
    grad_a = grad_b = None
    if needed[0]:
        grad_a = product(grad, b.mT, batch_invariant, alpha)
    if needed[1]:  # stored as b is: torch would copy it else
        grad_b = (product(grad.mT, a, batch_invariant, alpha).mT if b.stride(-2) == 1
                  else product(a.mT, grad, batch_invariant, alpha))
    return grad_a, grad_b


def _gradients(ctx: Any, a: Tensor, b: Tensor, grad: Tensor) -> tuple[Optional[Tensor], ...]:
    """grad: of what is before the activation. a and b: as ctx has saved them. Whoever calls this reads all that is
    saved at once, since torch's checkpoints give it once."""
    *needed, need_c, need_bias = ctx.needs_input_grad[:4]
    grad_a, grad_b = factor_gradients(needed, a, b, grad.to(a.dtype), ctx.batch_invariant, ctx.alpha)
    grad_c = grad_bias = None
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
    a, b, _ = ctx.saved_tensors
    return _gradients(ctx, a, b, grad)


#: Beyond it the derivatives of SiLU and GELU are 0 or 1 in fp32, as at infinity, where formulas multiply 0 by infinity.
_SATURATED = 128.0


def activation_backward(activation: str, aux: Tensor, grad: Tensor) -> Tensor:
    """aux may be infinite: the sum overflows in half precision before the activation does."""
    if activation == "none":
        return grad
    if activation == "relu":
        return torch.ops.aten.threshold_backward(grad, aux, 0)
    aux = aux.clamp(-_SATURATED, _SATURATED)
    if torch.is_grad_enabled():  # a gradient of this gradient is wanted, whose cubes half precision does not have
        aux, grad = aux.float(), grad.float()
    if activation == "silu":
        if torch.is_grad_enabled():  # silu_backward() has no gradient
            sigmoid = aux.sigmoid()
            return grad * sigmoid * (1 + aux * (1 - sigmoid))
        return torch.ops.aten.silu_backward(grad, aux)
    return torch.ops.aten.gelu_backward(grad, aux, approximate="tanh" if "tanh" in activation else "none")


def _gemm_aux_backward(ctx: Any, grad: Optional[Tensor],
                       grad_aux: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    """grad_aux: of the values before the activation, on which the gradient itself depends."""
    if grad is None and grad_aux is None:
        return (None,) * 9
    a, b, aux = ctx.saved_tensors
    if grad is not None:
        grad = activation_backward(ctx.activation, aux, grad)
        grad_aux = grad if grad_aux is None else grad + grad_aux
    return _gradients(ctx, a, b, grad_aux)


def _direct(kernel: Any, save: Any, gradient: Any) -> Any:
    """As an operator with this kernel, at less of the host's time: without the dispatcher, and setup_context()."""
    class Direct(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            results = kernel(*inputs)
            save(ctx, inputs, results)
            return results

        backward = staticmethod(gradient)

    return Direct.apply


def _transformed(operator: Any, save: Any, gradient: Any) -> Any:
    """For transforms of torch.func, which differentiate no custom operator."""
    class Transformed(torch.autograd.Function):
        generate_vmap_rule = True
        forward = staticmethod(lambda *inputs: operator(*inputs))
        setup_context = staticmethod(save)
        backward = staticmethod(gradient)

        @staticmethod
        def jvp(*_: Any) -> Any:
            raise no_forward_mode()

    return Transformed.apply


class Differentiable:
    """An operator with its gradient, and what stands for it where torch need not see it."""

    def __init__(self, operator: Any, kernel: Any, save: Any, gradient: Any) -> None:
        torch.library.register_autograd(operator, gradient, setup_context=save)
        self._operator, self._kernel = operator, kernel
        self._direct, self._transformed = _direct(kernel, save, gradient), _transformed(operator, save, gradient)

    def of(self, *tensors: Tensor | None) -> Any:
        """What is called with the operator's arguments, among which are these tensors."""
        refuse_forward_mode(*tensors)
        if is_plain(*tensors):
            return self._direct if needs_gradient(*tensors) else self._kernel
        return self._transformed if is_transformed() else self._operator


_GEMM = Differentiable(GEMM, _ops.gemm, _save, _gemm_backward)
_GEMM_AUX = Differentiable(GEMM_AUX, _ops.gemm_aux, _save, _gemm_aux_backward)


def gemm(*arguments: Any) -> Tensor:
    """The operator hgemm::gemm."""
    return _GEMM.of(*arguments[:4])(*arguments)


def gemm_aux(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The operator hgemm::gemm_aux."""
    return _GEMM_AUX.of(*arguments[:4])(*arguments)
