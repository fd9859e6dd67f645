"""libhgemm for JAX: products of float16 and bfloat16 arrays on CUDA devices, and on the CPU.

Functions work under jit, vmap and grad, inside of compiled functions too: XLA calls the library by its FFI.
"""

from __future__ import annotations

from functools import partial
from math import isinf, prod
from typing import Any, Optional

try:
    import jax
except ModuleNotFoundError as error:
    raise ImportError("hgemm.jax needs JAX, which is not installed") from error
if jax.__version_info__ < (0, 6, 2):
    raise ImportError(f"hgemm.jax needs JAX 0.6.2 or newer, and {jax.__version__} is installed")
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._operand import activation_of
from . import _ragged, _symmetric
from ._product import EXPORT_CHECKS, Setting, product, vary_alike

__all__ = ["EXPORT_CHECKS", "linear", "matmul", "newton_schulz", "ragged_dot", "syrk", "syrkx"]

_HALF = ("float16", "bfloat16")


def _as_array(name: str, array: ArrayLike, dtypes: tuple[str, ...], dimensions: int) -> Array:
    array = jnp.asarray(array)
    if array.dtype.name not in dtypes:
        raise TypeError(f"{name}: its elements are {array.dtype.name}, must be {' or '.join(dtypes)}")
    if array.ndim < dimensions:
        raise ValueError(f"{name}: {array.ndim} dimensions, must be {dimensions} or more")
    return array


def _out_dtype(dtype: DTypeLike | None, a: Array, argument: str = "out_dtype") -> str:
    name = a.dtype.name if dtype is None else jnp.dtype(dtype).name
    if name not in (*_HALF, "float32"):
        raise TypeError(f"{argument}: is {name}, must be float16, bfloat16 or float32")
    return name


@partial(jax.jit, static_argnames=("out_dtype", "transpose_a", "transpose_b", "batch_invariant"))
def matmul(a: ArrayLike, b: ArrayLike, *, out_dtype: Optional[DTypeLike] = None, transpose_a: bool = False,
           transpose_b: bool = False, batch_invariant: bool = False) -> Array:
    """As jax.numpy.matmul(), with fp32 sums that are rounded once.

    ``a``: (..., M, K), ``b``: (..., K, N), both float16 or both bfloat16; leading dimensions are broadcast without
    copies. The result is of ``out_dtype``: float16, bfloat16 or float32, or that of ``a`` where it is None.
    ``transpose_a``: ``a`` is (..., K, M). ``transpose_b``: ``b`` is (..., N, K). They cost nothing, whereas XLA copies
    ``b.T`` before it hands it over. ``batch_invariant``: the bits of a row of the result depend on that row of ``a``
    and on ``b`` alone; on CUDA devices.

    TypeError or ValueError names a wrong argument. What the library itself refuses, XLA raises where it computes.
    """
    a, b = _as_array("a", a, _HALF, 2), _as_array("b", b, _HALF, 2)
    if a.dtype != b.dtype:
        raise TypeError(f"b: its elements are {b.dtype.name}, must be {a.dtype.name} as those of a")
    if a.shape[-2 if transpose_a else -1] != b.shape[-1 if transpose_b else -2]:
        raise ValueError(f"b: its shape {b.shape} does not fit that of a, {a.shape}")
    if b.ndim > 2 and a.ndim > 2:
        try:
            jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError as error:
            raise ValueError(f"b: its leading dimensions {b.shape[:-2]} do not fit those of a, "
                             f"{a.shape[:-2]}") from error
    setting = Setting(_out_dtype(out_dtype, a), transpose_a, transpose_b, batch_invariant)
    if b.ndim == 2 and not transpose_a:
        return _of_rows(setting, a, b)
    return product(setting, *vary_alike(a, b))[0]


def _of_rows(setting: Setting, a: Array, b: Array, *bias: Array) -> Array:
    """All rows of ``a`` by one matrix: a single product, and so are its gradients."""
    rows = a.reshape(prod(a.shape[:-1]), a.shape[-1])
    result, = product(setting, *vary_alike(rows, b, *bias))
    return result.reshape(*a.shape[:-1], result.shape[-1])


@partial(jax.jit, static_argnames=("activation", "batch_invariant"))
def linear(x: ArrayLike, weight: ArrayLike, bias: Optional[ArrayLike] = None, activation: Optional[str] = None, *,
           batch_invariant: bool = False) -> Array:
    """activation(x @ weight.T + bias) in one kernel, as hgemm.torch.linear().

    ``x``: (..., K), ``weight``: (N, K), ``bias``: (N,), float16, bfloat16 or float32. ``activation``: "relu",
    "gelu_tanh", "gelu_erf" or "silu", of the fp32 sum. Where a gradient is needed, the values before it are kept.
    """
    x, weight = _as_array("x", x, _HALF, 1), _as_array("weight", weight, _HALF, 2)
    if weight.dtype != x.dtype:
        raise TypeError(f"weight: its elements are {weight.dtype.name}, must be {x.dtype.name} as those of x")
    if weight.shape != (weight.shape[0], x.shape[-1]):
        raise ValueError(f"weight: its shape {weight.shape} does not fit that of x, {x.shape}")
    if bias is not None:
        bias = _as_array("bias", bias, (*_HALF, "float32"), 1)
        if bias.shape != weight.shape[:1]:
            raise ValueError(f"bias: its shape is {bias.shape}, must be {weight.shape[:1]}")
    activation_of(activation)
    setting = Setting(x.dtype.name, transpose_b=True, batch_invariant=batch_invariant,
                      activation=None if activation == "none" else activation)
    return _of_rows(setting, x, weight, *(() if bias is None else (bias,)))


@partial(jax.jit, static_argnames=("precision", "preferred_element_type", "batch_invariant"))
def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, precision: None = None,
               preferred_element_type: Optional[DTypeLike] = None, group_offset: None = None, *,
               batch_invariant: bool = False) -> Array:
    """As jax.lax.ragged_dot(), in one kernel on CUDA devices, with fp32 sums that are rounded once.

    ``lhs``: (M, K), the rows of one group behind those of the other. ``rhs``: (G, K, N), a matrix for each group.
    Both are float16 or both bfloat16. ``group_sizes``: (G,), integers, how many rows each group has. Rows behind the
    last group are zero in the result (M, N), which is of ``preferred_element_type``: float16, bfloat16 or float32, or
    that of ``lhs`` where it is None. ``precision`` and ``group_offset`` must be None. ``batch_invariant``: as of
    matmul().

    On the CPU sizes that are negative, or add up to more than M, raise an error where XLA computes. On CUDA devices
    groups end at row M.
    """
    lhs, rhs = _as_array("lhs", lhs, _HALF, 2), _as_array("rhs", rhs, _HALF, 3)
    sizes = jnp.asarray(group_sizes)
    for name, array, dimensions in (("lhs", lhs, 2), ("rhs", rhs, 3), ("group_sizes", sizes, 1)):
        if array.ndim != dimensions:
            raise ValueError(f"{name}: {array.ndim} dimensions, must be {dimensions}")
    if rhs.dtype != lhs.dtype:
        raise TypeError(f"rhs: its elements are {rhs.dtype.name}, must be {lhs.dtype.name} as those of lhs")
    if not jnp.issubdtype(sizes.dtype, jnp.integer):
        raise TypeError(f"group_sizes: its elements are {sizes.dtype.name}, must be integers")
    if rhs.shape[1] != lhs.shape[1]:
        raise ValueError(f"rhs: its shape {rhs.shape} does not fit that of lhs, {lhs.shape}")
    if sizes.shape != rhs.shape[:1]:
        raise ValueError(f"group_sizes: its shape {sizes.shape} does not fit that of rhs, {rhs.shape}")
    for name, value in (("precision", precision), ("group_offset", group_offset)):
        if value is not None:
            raise ValueError(f"{name}: must be None")
    setting = _ragged.Setting(_out_dtype(preferred_element_type, lhs, "preferred_element_type"), batch_invariant)
    return _ragged.by_rows(setting, *vary_alike(lhs, rhs, jnp.cumsum(sizes, dtype="int32")))


def _scalar(name: str, value: float) -> float:
    try:
        value = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: must be a number that is known when the function is compiled") from error
    with np.errstate(over="ignore"):
        if isinf(np.float32(value)) and not isinf(value):
            raise ValueError(f"{name}: is {value}, which is infinite in float32")
    return value


def _symmetric_setting(a: Array, b: Array, alpha: float, beta: float | None, c: Array | None,
                       out_dtype: DTypeLike | None, batch_invariant: bool) -> tuple[Setting, tuple[Array, ...]]:
    """How to multiply, and (c,) if it is read."""
    if b.dtype != a.dtype:
        raise TypeError(f"b: its elements are {b.dtype.name}, must be {a.dtype.name} as those of a")
    if b.shape != a.shape:
        raise ValueError(f"b: its shape is {b.shape}, must be {a.shape} as that of a")
    if c is not None:
        c = _as_array("c", c, (*_HALF, "float32"), 2)
        if c.shape != (*a.shape[:-1], a.shape[-2]):
            raise ValueError(f"c: its shape is {c.shape}, must be {(*a.shape[:-1], a.shape[-2])}")
    beta = _scalar("beta", c is not None if beta is None else beta)
    if beta and c is None:
        raise ValueError("c: must be given where beta is not 0")
    setting = _symmetric.setting_of(_out_dtype(out_dtype, a), batch_invariant, _scalar("alpha", alpha), beta)
    return setting, (c,) if beta else ()


def syrk(a: ArrayLike, *, alpha: float = 1.0, beta: Optional[float] = None, c: Optional[ArrayLike] = None,
         out_dtype: Optional[DTypeLike] = None, batch_invariant: bool = False) -> Array:
    """alpha * a @ a.T + beta * c, symmetric bit for bit. A large one takes about half of the work of a product.

    ``a``: (..., N, K), float16 or bfloat16. ``c``: (..., N, N), float16, bfloat16 or float32, not read where ``beta``
    is 0. Of ``c`` the half above the diagonal counts, and the diagonal; pass a symmetric one, for which its gradient,
    beta times the result's, is right. ``beta`` is 1 by default if there is a ``c``, and must be 0 without one.
    ``alpha`` and ``beta`` are numbers, known when the function is compiled. ``out_dtype``, ``batch_invariant``: as of
    matmul().
    """
    a = _as_array("a", a, _HALF, 2)
    setting, added = _symmetric_setting(a, a, alpha, beta, c, out_dtype, batch_invariant)
    return _symmetric.compiled(_symmetric.syrk, setting, a, *added)


def syrkx(a: ArrayLike, b: ArrayLike, *, alpha: float = 1.0, beta: Optional[float] = None,
          c: Optional[ArrayLike] = None, out_dtype: Optional[DTypeLike] = None,
          batch_invariant: bool = False) -> Array:
    """alpha * a @ b.T + beta * c as :func:`syrk`, where the caller knows that the product is symmetric.

    So it is if ``b`` is ``a`` times a symmetric matrix, or if both are powers of one symmetric matrix. Of other
    products the half above the diagonal is computed, and mirrored. Gradients are those of the plain product.
    """
    a, b = _as_array("a", a, _HALF, 2), _as_array("b", b, _HALF, 2)
    setting, added = _symmetric_setting(a, b, alpha, beta, c, out_dtype, batch_invariant)
    return _symmetric.compiled(product, setting, a, b, *added)[0]


def newton_schulz(x: ArrayLike, steps: int = 5, coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
                  eps: float = 1e-7) -> Array:
    """The orthogonalisation of the Muon optimizer: x's singular vectors, with singular values between 0.6 and 1.3.

    ``x``: (..., M, N), matrices of any floating type, each orthogonalised by itself; the result is bfloat16. A step
    makes a polynomial of x and of its Gram matrix A = x @ x.T (where M > N, of the transpose): ``coefficients[0] * x +
    (coefficients[1] * A + coefficients[2] * A @ A) @ x``. Both A and the polynomial of A are symmetric, so that half
    of them is computed where they are large. ``eps``: the least norm by which x is divided.
    """
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(f"x: its elements are {x.dtype.name}, must be of a floating type")
    if x.ndim < 2:
        raise ValueError(f"x: {x.ndim} dimensions, must be 2 or more")
    if len(coefficients) != 3:
        raise ValueError(f"coefficients: {len(coefficients)} of them, must be 3")
    a, b, c = (_scalar("coefficients", value) for value in coefficients)
    return _symmetric.newton_schulz(x, steps, (a, b, c), _scalar("eps", eps))
