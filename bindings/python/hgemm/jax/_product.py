"""The product as XLA calls it, with its rules for vmap and for gradients."""

from __future__ import annotations

import ctypes
from functools import lru_cache, partial
from typing import Any, Callable, NamedTuple, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_batching import custom_vmap
from jax.export import DisabledSafetyCheck

from .. import c
from .._operand import activation_of

#: Of GPU memory, which XLA plans for each product and uses for others in between; hgemm.torch takes as much.
WORKSPACE_BYTES = 32 << 20

_ACTIVATIONS = {"relu": jax.nn.relu, "silu": jax.nn.silu, "gelu_tanh": partial(jax.nn.gelu, approximate=True),
                "gelu_erf": partial(jax.nn.gelu, approximate=False)}
_TARGET = "hgemm_matmul"

#: Of grouped products.
GROUPED_TARGET = "hgemm_grouped"

#: What ``jax.export.export(..., disabled_checks=hgemm.jax.EXPORT_CHECKS)`` takes: JAX does not know whether a later
#: libhgemm understands what is exported. Call it where ``hgemm.jax`` of the same version is imported.
EXPORT_CHECKS = [DisabledSafetyCheck.custom_call(target) for target in (_TARGET, GROUPED_TARGET)]

#: Beyond it all derivatives of activations are 0 or 1 in fp32, as at infinity, where formulas multiply 0 by infinity. The
#: values before an activation may be infinite: they overflow in half precision before the activation does.
_SATURATED = 128.0


def _register() -> None:
    path = c.PACKAGE / "lib" / "libhgemm_xla.so"
    try:
        library = ctypes.CDLL(str(path))  # with the libhgemm that hgemm.c has loaded
    except OSError as error:
        raise ImportError(f"hgemm.jax cannot load the package's handler for XLA: {error}") from error
    for target in (_TARGET, GROUPED_TARGET):
        for platform, name in (("cpu", "host"), ("CUDA", "cuda")):
            function = jax.ffi.pycapsule(getattr(library, f"hgemm_xla_{target.removeprefix('hgemm_')}_{name}"))
            jax.ffi.register_ffi_target(target, function, platform=platform)


_register()


class Setting(NamedTuple):
    """All that is known of a product when it is compiled. aux: the values before the activation are wanted as well.
    beta: a matrix C is added, so often; 0: none is. symmetric: the caller knows that the result is."""
    out_dtype: str
    transpose_a: bool = False
    transpose_b: bool = False
    batch_invariant: bool = False
    activation: Optional[str] = None
    aux: bool = False
    alpha: float = 1.0
    beta: float = 0.0
    symmetric: bool = False


def _call(setting: Setting, workspace: int, a: Array, b: Array, *added: Array) -> list[Array]:
    """Of operands with as many leading dimensions each."""
    result = jax.eval_shape(partial(_as_jax, setting), a, b, *added)  # also over which axes of a mesh it varies
    results = [result] * (2 if setting.aux else 1)
    call = jax.ffi.ffi_call(_TARGET, [*results, jax.ShapeDtypeStruct((workspace,), np.uint8)])
    return call(a, b, *added, alpha=np.float32(setting.alpha), beta=np.float32(setting.beta),
                transpose_a=np.int32(setting.transpose_a), transpose_b=np.int32(setting.transpose_b),
                symmetric=np.int32(setting.symmetric), batch_invariant=np.int32(setting.batch_invariant),
                activation=np.int32(activation_of(setting.activation)))[:-1]


def _as_jax(setting: Setting, a: Array, b: Array, *added: Array) -> Array:
    """The product by JAX itself, for its shape and type."""
    d = jnp.matmul(a.swapaxes(-1, -2) if setting.transpose_a else a, b.swapaxes(-1, -2) if setting.transpose_b else b)
    for x in added:
        d = d + (x if setting.beta else x[..., None, :])
    return d.astype(setting.out_dtype)


@lru_cache(maxsize=None)
def batchable(call: Callable[..., list[Array]], setting: NamedTuple) -> Any:
    """``call(setting, workspace, *operands)``. Under vmap its operands have one leading dimension more, of length 1
    where one is shared."""
    @custom_vmap
    def run(*operands: Array) -> list[Array]:
        return jax.lax.platform_dependent(*operands, cpu=partial(call, setting, 0),
                                          cuda=partial(call, setting, WORKSPACE_BYTES))

    @run.def_vmap
    def _(size: int, batched: list[bool], *operands: Array) -> tuple[list[Array], list[bool]]:
        results = run(*(x if is_batched else x[None] for x, is_batched in zip(operands, batched)))
        return results, [True] * len(results)

    return run


def vary_alike(*arrays: Array) -> list[Array]:
    """Under shard_map: arrays that vary over the same axes of the mesh, so that a gradient is summed over those along
    which its array was shared."""
    def axes_of(array: Array) -> frozenset[str]:
        found = jax.typeof(array)
        return found.vma if hasattr(found, "vma") else found.manual_axis_type.varying

    every = frozenset().union(*map(axes_of, arrays))
    cast = partial(jax.lax.pcast, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary
    return [cast(x, tuple(every - axes_of(x))) if every - axes_of(x) else x for x in arrays]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def product(setting: Setting, a: Array, b: Array, added: Optional[Array] = None) -> list[Array]:
    """[activation(alpha * op(a) @ op(b) + beta * c + bias)], and what is before the activation if ``setting.aux``.
    ``added``: c where there is a beta, else the bias."""
    rank = max(a.ndim, b.ndim)
    operands = [x.reshape((1,) * (rank - x.ndim) + x.shape) for x in (a, b)]
    if added is not None:
        dimensions = rank if setting.beta else rank - 1
        operands.append(added.reshape((1,) * (dimensions - added.ndim) + added.shape))
    return batchable(_call, setting)(*operands)


def _forward(setting: Setting, a: Array, b: Array, added: Optional[Array]) -> tuple[list[Array], tuple[Any, ...]]:
    if setting.activation is None:
        return product(setting, a, b, added), (a, b, added, None)
    results = product(setting._replace(aux=True), a, b, added)
    return results[:2 if setting.aux else 1], (a, b, added, results[1])


def _sum_to(gradient: Array, like: Array) -> Array:
    """Over the leading dimensions along which an operand was shared."""
    more = gradient.ndim - like.ndim
    shared = [i for i in range(gradient.ndim) if i < more or like.shape[i - more] != gradient.shape[i]]
    return gradient.sum(shared, dtype=np.float32).astype(like.dtype).reshape(like.shape)


def _gradient(setting: Setting, x: Array, y: Array, like: Array, transpose_x: bool, transpose_y: bool) -> Array:
    """alpha * op(x) @ op(y), which is rounded once if it is summed."""
    batch = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    summed = like.shape[:-2] != batch
    dtype = "float32" if summed else like.dtype.name
    result, = product(Setting(dtype, transpose_x, transpose_y, setting.batch_invariant, alpha=setting.alpha), x, y)
    return _sum_to(result, like) if summed else result


def gradient_of_added(setting: Setting, gradient: Array, added: Array) -> Array:
    if setting.beta:
        return _sum_to(setting.beta * gradient.astype("float32"), added)
    return gradient.sum(tuple(range(gradient.ndim - 1)), dtype=np.float32).astype(added.dtype)


def _backward(setting: Setting, saved: tuple[Any, ...], gradients: list[Array]) -> tuple[Optional[Array], ...]:
    a, b, added, aux = saved
    gradient = gradients[0]
    if setting.activation is not None:
        # In half precision a cube overflows, and differences of sigmoids are rounded.
        aux = jnp.clip(aux.astype("float32"), -_SATURATED, _SATURATED)
        gradient, = jax.vjp(_ACTIVATIONS[setting.activation], aux)[1](gradient.astype("float32"))
    if setting.aux:
        gradient += gradients[1]
    half = gradient.astype(a.dtype)
    pair = partial(_gradient, setting)
    turned_a, turned_b = setting.transpose_a, setting.transpose_b
    grad_a = pair(b, half, a, turned_b, True) if turned_a else pair(half, b, a, False, not turned_b)
    grad_b = pair(half, a, b, True, turned_a) if turned_b else pair(a, half, b, not turned_a, False)
    return grad_a, grad_b, None if added is None else gradient_of_added(setting, gradient, added)


product.defvjp(_forward, _backward)
