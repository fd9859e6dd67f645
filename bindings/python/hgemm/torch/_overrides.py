"""enable() and batch_invariant(): the library serves torch's own operators."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import c
from . import _groups, _ops
from ._extension import BATCHED, serve, untraced
from ._ops import Names


class _Setting(NamedTuple):
    key: str = ""  # of torch's dispatcher; "": torch's operators are its own
    batch_invariant: bool = False
    strict: bool = False

    @property
    def seen(self) -> set[str]:
        """Keys at which operators are looked at. Strict refuses products of tensors that lie elsewhere."""
        return {self.key, "CPU"} if self.strict else {self.key} - {""}


class _Mode:
    """Of the process: torch's registrations are the process's as well."""

    def __init__(self) -> None:
        self.now = self.outside = _Setting()  # outside: of blocks
        self.blocks: list[_Block] = []        # that some thread is in, by when they began
        self.lock = Lock()
        self.libraries: dict[str, list[torch.library.Library]] = {}  # by key

    @property
    def batch_invariant(self) -> bool:
        return self.now.batch_invariant

    def apply(self) -> None:
        """Kernels stay where they are once registered, because other threads may be on their way into them."""
        setting = self.blocks[-1].setting if self.blocks else self.outside
        for key in setting.seen - self.libraries.keys():
            self.libraries[key] = _register(key)
        self.now = setting


class _Block:
    def __init__(self, setting: _Setting) -> None:
        self.setting = setting


mode = _Mode()
_counts: Counter[str] = Counter()


def counts() -> dict[str, int]:
    """How many products of torch's operators were "served" since the start, and why others were left to torch."""
    return dict(_counts)


class _Left(Exception):
    """This product is left to torch."""


def _run(names: Names, a: Tensor, b: Tensor, input: Tensor | None = None, alpha: Any = 1, beta: Any = 0,
         out_dtype: torch.dtype | None = None, out: Tensor | None = None, *, dimensions: int = 2,
         activation: str = "none") -> Tensor:
    """The functions of this package take more than torch's operators. What torch refuses it has to refuse itself."""
    if not isinstance(alpha, (int, float)) or not isinstance(beta, (int, float)):
        raise _Left("complex scalars")
    _ops._require(a.dim() == dimensions, ValueError, f"{names.a}: {a.dim()} dimensions, must be {dimensions}")
    dtype = out_dtype or a.dtype
    for name, other, right in (("input", input, (dtype, a.dtype)), ("out", out, (dtype,))):
        if other is not None and other.dtype not in right:
            raise TypeError(f"{name}: is {other.dtype}, must be {dtype}")
    matrix, bias = _ops.split_input(input, a, b, beta) if input is not None else (None, None)
    scalars = float(alpha), float(beta), activation
    try:
        if out is None:
            return _ops.run(a, b, matrix, bias, *scalars, out_dtype, mode.batch_invariant)[0]
        if out is not input:  # in place
            _ops.resize_empty(out, a, b, matrix, bias, names=names)
        _ops.gemm_out(a, b, matrix, bias, *scalars, out, mode.batch_invariant)
        return out
    except (TypeError, ValueError) as error:
        _ops.raise_named(error, a, b, matrix, bias, out_dtype, names)


def _mm(self: Tensor, mat2: Tensor, out_dtype: torch.dtype | None = None, *, out: Tensor | None = None,
        dimensions: int = 2) -> Tensor:
    return _run(Names("input", "mat2"), self, mat2, out_dtype=out_dtype, out=out, dimensions=dimensions)


def _addmm(self: Tensor, a: Tensor, b: Tensor, out_dtype: torch.dtype | None = None, *, beta: Any = 1,
           alpha: Any = 1, out: Tensor | None = None, dimensions: int = 2, activation: str = "none") -> Tensor:
    a_name, b_name = ("mat1", "mat2") if dimensions == 2 else ("batch1", "batch2")
    names = Names(a_name, b_name, bias="input")
    return _run(names, a, b, self, alpha, beta, out_dtype, out, dimensions=dimensions, activation=activation)


def _addmm_in_place(self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1,
                    dimensions: int = 2) -> Tensor:
    return _addmm(self, a, b, beta=beta, alpha=alpha, out=self, dimensions=dimensions)


def _addmm_activation(self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False,
                      out: Tensor | None = None) -> Tensor:
    """Torch's GELU is by tanh on CUDA devices, and by erf on the CPU."""
    gelu = "gelu_erf" if a.device.type == "cpu" else "gelu_tanh"
    return _addmm(self, a, b, beta=beta, alpha=alpha, out=out, activation=gelu if use_gelu else "relu")


def _addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1,
           out: Tensor | None = None) -> Tensor:
    column, names = vec.unsqueeze(-1), Names("mat", "vec")
    if out is not None and out is not self and out.numel() == 0:
        out.resize_(_ops.check(mat, column, None, None, out.dtype, names)[:1])
    result = _run(names, mat, column, self.unsqueeze(-1), alpha, beta, out=None if out is None else out.unsqueeze(-1))
    return result.squeeze(-1) if out is None else out


def _addmv_in_place(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _addmv(self, mat, vec, beta=beta, alpha=alpha, out=self)


def _grouped(self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None,
             out_dtype: torch.dtype | None = None) -> Tensor:
    if bias is not None or out_dtype not in (None, self.dtype):
        raise _Left("grouped_mm with a bias or another type of result")
    if offs is None:
        return _run(Names("mat_a", "mat_b"), self, mat2, dimensions=3)
    if self.dim() != 2:
        raise _Left("grouped_mm over columns")
    _ops._require(offs.dtype == torch.int32, TypeError, f"offs: is {offs.dtype}, must be torch.int32")
    if mat2.dim() == 2:
        return _groups.run_by_k(self, mat2, offs, None, mode.batch_invariant)
    return _groups.run_by_rows(self, mat2, offs, False, mode.batch_invariant)


def _of_other_operands(*_: Any, **__: Any) -> Tensor:
    raise _Left("a product of quantized or sparse matrices")


def _of_chunks(*_: Any, **__: Any) -> Tensor:
    raise _Left("a product that waits for parts of a matrix")


_bmm, _baddbmm = partial(_mm, dimensions=3), partial(_addmm, dimensions=3)
_baddbmm_in_place = partial(_addmm_in_place, dimensions=3)

# aten::linear and aten::mv are made of these. test_torch_operators.py knows what else torch multiplies by.
_OPERATORS: dict[str, Callable[..., Tensor]] = {
    "mm": _mm, "mm.out": _mm, "mm.dtype": _mm, "mm.dtype_out": _mm,
    "bmm": _bmm, "bmm.out": _bmm, "bmm.dtype": _bmm, "bmm.dtype_out": _bmm,
    "addmm": _addmm, "addmm.out": _addmm, "addmm.dtype": _addmm, "addmm.dtype_out": _addmm,
    "baddbmm": _baddbmm, "baddbmm.out": _baddbmm, "baddbmm.dtype": _baddbmm, "baddbmm.dtype_out": _baddbmm,
    "addmm_": _addmm_in_place, "baddbmm_": _baddbmm_in_place,
    "addmv": _addmv, "addmv.out": _addmv, "addmv_": _addmv_in_place,
    "_addmm_activation": _addmm_activation, "_addmm_activation.out": _addmm_activation,
    "_grouped_mm": _grouped,
    **dict.fromkeys(("_weight_int4pack_mm", "_weight_int8pack_mm", "_mixed_dtypes_linear", "_cslt_sparse_mm",
                     "_sparse_semi_structured_mm", "_sparse_semi_structured_addmm", "_sparse_semi_structured_linear"),
                    _of_other_operands),
    "symm_mem::_async_input_mm": _of_chunks,
}


def _direct(kernel: Callable[..., Tensor], form: int, key: str) -> Callable[..., Tensor]:
    """A kernel of mm or bmm that asks the extension first."""
    def direct(keys: Any, self: Tensor, mat2: Tensor) -> Tensor:
        now = mode.now
        if now.key == key and self.dtype in _ops.HALF:
            result = serve(self, mat2, form | now.batch_invariant)
            if result is not None:
                _counts["served"] += 1
                return result
        return kernel(keys, self, mat2)
    return direct


def _direct_add(kernel: Callable[..., Tensor], form: int, key: str) -> Callable[..., Tensor]:
    """A kernel of addmm or baddbmm that asks the extension first."""
    def direct(keys: Any, self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        now = mode.now
        if (now.key == key and a.dtype in _ops.HALF and self.dtype == a.dtype and not isinstance(alpha, complex)
                and not isinstance(beta, complex)):
            result = serve(a, b, form | now.batch_invariant, self, alpha, beta)
            if result is not None:
                _counts["served"] += 1
                return result
        return kernel(keys, self, a, b, beta=beta, alpha=alpha)
    return direct


_DIRECT = {"mm": (_direct, 0), "bmm": (_direct, BATCHED), "addmm": (_direct_add, 0), "baddbmm": (_direct_add, BATCHED)}


def _override(name: str, function: Callable[..., Tensor], original: Any, key: str) -> Callable[..., Tensor]:
    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Tensor:
        now = mode.now
        if key not in now.seen or not any(isinstance(x, Tensor) and x.dtype in _ops.HALF for x in args):
            return original.call_boxed(keys, *args, **kwargs)
        if now.key != key:
            raise RuntimeError(f"{name} of {key} tensors is not served by libhgemm, and strict is set: enable() and "
                               f"batch_invariant() act on {now.key} tensors")
        try:
            result = function(*args, **kwargs)
            _counts["served"] += 1
            return result
        except _Left as left:
            why, detail = str(left), ""
        except c.Error as error:
            why, detail = f"libhgemm: {error.status.name}", str(error)
        except (TypeError, ValueError) as error:
            why, detail = f"arguments: {str(error).split(':')[0]}", str(error)
        if now.strict:
            raise RuntimeError(f"{name} is not served by libhgemm, and strict is set: {detail or why}")
        _counts[why] += 1
        return original.call_boxed(keys, *args, **kwargs)
    return kernel


def _register(key: str) -> list[torch.library.Library]:
    libraries = {namespace: torch.library.Library(namespace, "IMPL") for namespace in ("aten", "symm_mem")}
    for name, function in _OPERATORS.items():
        namespace, operator = name.split("::") if "::" in name else ("aten", name)
        try:
            original = torch.library.get_kernel(f"{namespace}::{operator}", key)
        except RuntimeError:  # torch has no such kernel for this key
            continue
        kernel = _override(f"{namespace}::{operator}", function, original, key)
        if name in _DIRECT:
            direct, form = _DIRECT[name]
            kernel = direct(kernel, form, key)
        with warnings.catch_warnings():  # torch warns of every kernel that is replaced
            warnings.simplefilter("ignore")
            libraries[namespace].impl(operator, untraced(kernel), key, with_keyset=True, allow_override=True)
    return [*libraries.values()]


def _checked(dispatch_key: str, batch_invariant: bool, strict: bool) -> _Setting:
    if dispatch_key not in ("CUDA", "CPU"):
        raise ValueError(f"dispatch_key: {dispatch_key!r}, must be CUDA or CPU")
    if dispatch_key == "CUDA" and not torch.backends.cuda.is_built():
        raise RuntimeError(f"enable() concerns CUDA tensors, and PyTorch {torch.__version__} is built without CUDA")
    if not hasattr(torch.library, "get_kernel"):
        raise RuntimeError(f"enable() needs torch.library.get_kernel(), which PyTorch {torch.__version__} has not; "
                           "the functions of hgemm.torch do without")
    return _Setting(dispatch_key, batch_invariant, strict)


def enable(batch_invariant: bool = False, *, strict: bool = False, dispatch_key: str = "CUDA") -> None:
    """Let the library serve mm, bmm, addmm, baddbmm, addmv, _addmm_activation and _grouped_mm of float16 and bfloat16
    CUDA tensors.

    It holds for the whole process, all its threads included: for ``@``, torch.nn.Linear and all else that calls these
    operators, and for gradients. What the library does not serve torch computes as before; with ``strict`` that is a
    RuntimeError instead, and so are such products of CPU tensors. ``batch_invariant``: the bits of a row of a result do
    not depend on the other rows. While some thread is in a batch_invariant() block, that block's setting holds.
    ``dispatch_key="CPU"`` is for tests: CPU tensors instead of CUDA tensors.
    """
    setting = _checked(dispatch_key, batch_invariant, strict)
    with mode.lock:
        mode.outside = setting
        mode.apply()


def disable() -> None:
    """Leave torch's operators to torch again, outside of batch_invariant() blocks.

    They are still called by way of Python, which costs the host a few microseconds each.
    """
    with mode.lock:
        mode.outside = _Setting()
        mode.apply()


@contextmanager
def batch_invariant(*, strict: bool = False, dispatch_key: str = "CUDA") -> Iterator[None]:
    """In the block as ``enable(batch_invariant=True)``, afterwards as before.

    The functions of this module are batch-invariant there as well. It holds for all threads of the process, as long as
    one of them is in such a block. Gradients of torch's own operators are batch-invariant where backward() is called in
    the block as well.
    """
    block = _Block(_checked(dispatch_key, True, strict))
    try:
        with mode.lock:
            mode.blocks.append(block)
            mode.apply()
        yield
    finally:
        with mode.lock:
            if block in mode.blocks:
                mode.blocks.remove(block)
            mode.apply()
