"""libhgemm_torch.so: products in C++, which take less of the host's time than the operators in Python.

It serves plain tensors that need no copy, and tells autograd nothing. What it leaves, and all there is where torch does
not have what it calls, is for the operators in Python, which also say what is wrong with arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CDLL, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import c

_GATE = "int form, int block, float limit, float slope, float offset"
_OPERATORS = ("_serve(Tensor a, Tensor b, int form) -> Tensor",
              "_serve_add(Tensor a, Tensor b, Tensor added, int form, float alpha, float beta) -> Tensor",
              f"_serve_gated(Tensor a, Tensor b, Tensor bias, {_GATE}) -> Tensor",
              f"_serve_aux(Tensor a, Tensor b, Tensor bias, {_GATE}) -> (Tensor, Tensor)",
              f"_serve_gate_gradient(Tensor product, Tensor grad, {_GATE}) -> Tensor",
              f"_serve_groups(Tensor a, Tensor b, Tensor ends, Tensor bias, {_GATE}) -> (Tensor, Tensor)",
              "_serve_route(Tensor indices, int experts) -> (Tensor, Tensor)",
              "_serve_gather(Tensor x, Tensor weights, Tensor rows, Tensor ends, int form) -> Tensor",
              "_serve_combine(Tensor values, Tensor weights, Tensor rows, int form) -> Tensor",
              "_serve_dot(Tensor x, Tensor values, Tensor rows, int type) -> Tensor")


def _load() -> CDLL | None:
    """The package's own, else that beside the library. None: torch does not have what it calls, or it is not there."""
    own = c.PACKAGE / "lib" / "libhgemm_torch.so"
    path = own if own.exists() else Path(c.library_path).parent / own.name
    try:
        extension = CDLL(str(path))
        torch_library = CDLL(torch._C.__file__)  # and what it depends on: all of torch
    except OSError:
        return None
    if not hasattr(extension, "hgemm_torch_form"):  # of an older build
        return None
    extension.hgemm_torch_load.restype, extension.hgemm_torch_load.argtypes = c_char_p, [c_void_p, c_void_p]
    extension.hgemm_torch_form.restype, extension.hgemm_torch_form.argtypes = c_int64, [c_char_p]
    extension.hgemm_torch_share.restype = c_void_p
    extension.hgemm_torch_share.argtypes = [c_int, c_void_p, c_int, c.hgemm_handle_t]
    extension.hgemm_torch_take.restype, extension.hgemm_torch_give_back.restype = c_int, None
    extension.hgemm_torch_take.argtypes = extension.hgemm_torch_give_back.argtypes = [c_void_p]
    missing = extension.hgemm_torch_load(torch_library._handle, c._library._handle)
    return extension if missing is None else None


library = _load()
#: False leaves all to the operators in Python.
enabled = library is not None


def _form(name: str) -> int:
    """Its number in extension/product.hpp; 0 where there is no extension, and nobody reads it."""
    number = 0 if library is None else library.hgemm_torch_form(name.encode())
    if number < 0:
        raise ImportError(f"libhgemm_torch.so has no form {name}; it is of another version than this package")
    return number


# Forms of products; an activation, shifted, is added.
BATCH_INVARIANT, WIDE, BATCHED = _form("BATCH_INVARIANT"), _form("WIDE"), _form("BATCHED")
LINEAR, SYMMETRIC, OUTER = _form("LINEAR"), _form("SYMMETRIC"), _form("OUTER")
OF_K, CLEAR, AUX, ADDED = _form("OF_K"), _form("CLEAR"), _form("AUX"), _form("ADDED")
ACTIVATION_SHIFT = _form("ACTIVATION_SHIFT")

#: By the dtype of the result that is asked for.
WIDTHS = {None: 0, torch.float32: WIDE}

if library is not None:
    _definitions = torch.library.Library("hgemm", "FRAGMENT")
    for _operator in _OPERATORS:
        _definitions.impl(_definitions.define(_operator), torch.library.fallthrough_kernel, "Autograd")
    # What the overloads call: half a microsecond less.
    _operators = SimpleNamespace(**{name: getattr(torch.ops.hgemm, name).default._op
                                    for name in (each.partition("(")[0] for each in _OPERATORS)})
    _serve, _serve_add = _operators._serve, _operators._serve_add


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel, and what it calls, that torch.compile leaves as it is. What a graph does not contain torch.compile runs
    as Python code, and traces the code of kernels there too. It frees copies of operands as soon as their addresses are
    taken, before the library reads them."""
    try:
        frames = torch._C._dynamo.eval_frame
        strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP)
        frames.set_code_exec_strategy(function.__code__, strategy)  # a call costs nothing more
    except (AttributeError, TypeError):
        return torch._disable_dynamo(function)
    return function


_PLAIN = (Tensor, torch.nn.Parameter)
_PLAIN_OR_NONE = (*_PLAIN, type(None))
_records = torch.is_grad_enabled
_is_compiling, _is_tracing = torch.compiler.is_dynamo_compiling, torch._C._is_tracing
_modes, _transforms = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack


def is_transformed() -> bool:
    """By torch.func, and not compiled."""
    return not _is_compiling() and _transforms() is not None


def is_plain(*tensors: Tensor | None) -> bool:
    """False where torch has to see operators, as its compiler, its modes, its transforms and its dispatcher do."""
    if _is_compiling() or _modes() or _transforms() is not None or _is_tracing():
        return False
    for x in tensors:
        if x is not None and (type(x) not in _PLAIN or not (x.is_cuda or x.is_cpu) or x.layout is not torch.strided
                              or x.is_neg()):
            return False
    return True


def no_forward_mode() -> NotImplementedError:
    return NotImplementedError("hgemm.torch has no forward-mode derivatives (torch.func.jvp, forward_ad)")


def refuse_forward_mode(*tensors: Tensor | None) -> None:
    """Tangents would be lost: NotImplementedError."""
    if forward_ad._current_level >= 0 and any([x is not None and forward_ad.unpack_dual(x).tangent is not None
                                               for x in tensors]):
        raise no_forward_mode()


def needs_gradient(*tensors: Tensor | None) -> bool:
    return _records() and any([tensor is not None and tensor.requires_grad for tensor in tensors])


def serve(a: Tensor, b: Tensor, form: int, added: Tensor | None = None, alpha: float = 1,
          beta: float = 1) -> Tensor | None:
    """For kernels. ``added``: a matrix, or a row that is added to all others."""
    if not enabled:
        return None
    return _serve(a, b, form) if added is None else _serve_add(a, b, added, form, alpha, beta)


def serve_plain(a: Tensor, b: Tensor, form: int, added: Tensor | None = None, alpha: float = 1,
                beta: float = 1) -> Tensor | None:
    """Elsewhere, where neither autograd nor another part of torch has to see an operator."""
    # As is_plain() and needs_gradient(), without calls: this is what most products cost.
    if not enabled or _is_compiling() or _modes() or _transforms() is not None or _is_tracing():
        return None
    if forward_ad._current_level >= 0:
        return None
    if type(a) not in _PLAIN or type(b) not in _PLAIN or type(added) not in _PLAIN_OR_NONE:
        return None
    if _records() and (a.requires_grad or b.requires_grad or (added is not None and added.requires_grad)):
        return None
    try:
        return _serve(a, b, form) if added is None else _serve_add(a, b, added, form, float(alpha), float(beta))
    except NotImplementedError:  # neither on the CPU nor on a CUDA device, or sparse
        return None


def _flagged(tensor: Tensor | None, another: Tensor, flag: int) -> tuple[Tensor, int]:
    """The extension takes no None: where this is one, any tensor stands for it."""
    return (another, 0) if tensor is None else (tensor, flag)


def serve_aux(a: Tensor, b: Tensor, bias: Tensor | None, form: int, block: int = 0, limit: float = 0,
              slope: float = 0, offset: float = 0) -> tuple[Tensor | None, Tensor | None]:
    """For kernels: a product with an activation or a gate, and in rows the product before it."""
    if not enabled:
        return None, None
    bias, biased = _flagged(bias, a, ADDED)
    return _operators._serve_aux(a, b, bias, form | biased, block, limit, slope, offset)


def serve_gate_gradient(product: Tensor, grad: Tensor, form: int, *gate: Any) -> Tensor | None:
    """For kernels. ``gate``: block, limit, slope and offset."""
    return _operators._serve_gate_gradient(product, grad, form, *gate) if enabled else None


def serve_groups(a: Tensor, b: Tensor, ends: Tensor, bias: Tensor | None, form: int, block: int = 0, limit: float = 0,
                 slope: float = 0, offset: float = 0) -> tuple[Tensor | None, Tensor | None]:
    """For kernels: a product by groups, and with AUX the product before the gate."""
    if not enabled:
        return None, None
    bias, biased = _flagged(bias, ends, ADDED)
    return _operators._serve_groups(a, b, ends, bias, form | biased, block, limit, slope, offset)


def serve_route(indices: Tensor, experts: int) -> tuple[Tensor | None, Tensor | None]:
    return _operators._serve_route(indices, experts) if enabled else (None, None)


def serve_gather(x: Tensor, weights: Tensor | None, rows: Tensor, ends: Tensor | None) -> Tensor | None:
    """For kernels. ``ends``: clears the rows behind the last of them."""
    if not enabled:
        return None
    (weights, weighted), (ends, clear) = _flagged(weights, rows, ADDED), _flagged(ends, rows, CLEAR)
    return _operators._serve_gather(x, weights, rows, ends, weighted | clear)


def serve_combine(values: Tensor, weights: Tensor | None, rows: Tensor) -> Tensor | None:
    if not enabled:
        return None
    weights, weighted = _flagged(weights, rows, ADDED)
    return _operators._serve_combine(values, weights, rows, weighted)


def serve_dot(x: Tensor, values: Tensor, rows: Tensor, type: int) -> Tensor | None:
    return _operators._serve_dot(x, values, rows, type) if enabled else None


def serve_gated(a: Tensor, b: Tensor, bias: Tensor | None, form: int, *gate: Any) -> Tensor | None:
    """As serve_plain(), of a gated product. ``gate``: block, limit, slope and offset."""
    if not enabled or not is_plain(a, b, bias) or needs_gradient(a, b, bias) or forward_ad._current_level >= 0:
        return None
    bias, biased = _flagged(bias, a, ADDED)
    return _operators._serve_gated(a, b, bias, form | biased, *gate)


def may_differentiate(*tensors: Tensor | None) -> bool:
    """Whether what the extension computes of these tensors may have a gradient from a torch.autograd.Function."""
    return enabled and is_plain(*tensors) and needs_gradient(*tensors) and forward_ad._current_level < 0
