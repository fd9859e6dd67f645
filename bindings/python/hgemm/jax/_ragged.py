"""Grouped products as XLA calls them, with their rules for vmap and for gradients: those over groups of rows and those
over groups of K are each other's gradients.

``ends``: where each group ends, int32. A group begins where the one before it ends.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ._product import GROUPED_TARGET, batchable


class Setting(NamedTuple):
    """All that is known of a grouped product when it is compiled."""
    out_dtype: str
    batch_invariant: bool
    transpose_b: bool = False
    of_k: bool = False


def _as_jax(setting: Setting, a: Array, b: Array, ends: Array) -> Array:
    """An array of the result's shape and type, made of all operands."""
    if setting.of_k:
        d = jnp.einsum("...rm,...rn,...g->...gmn", a, b, ends.astype(a.dtype))
    else:
        d = jnp.einsum("...mk,...gnk,...g->...mn" if setting.transpose_b else "...mk,...gkn,...g->...mn", a, b,
                       ends.astype(a.dtype))
    return d.astype(setting.out_dtype)


def _call(setting: Setting, workspace: int, a: Array, b: Array, ends: Array) -> list[Array]:
    """Of operands with as many leading dimensions each."""
    result = jax.eval_shape(partial(_as_jax, setting), a, b, ends)  # also over which axes of a mesh it varies
    call = jax.ffi.ffi_call(GROUPED_TARGET, [result, jax.ShapeDtypeStruct((workspace,), np.uint8)])
    return call(a, b, ends, of_k=np.int32(setting.of_k), transpose_b=np.int32(setting.transpose_b),
                batch_invariant=np.int32(setting.batch_invariant))[:-1]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def by_rows(setting: Setting, a: Array, b: Array, ends: Array) -> Array:
    """(M, N): the rows of ``a`` (M, K) by the matrix of ``b`` that is their group's. Rows of no group are zero."""
    result, = batchable(_call, setting)(a, b, ends)
    # The library leaves them as they are. Without groups there is no last end.
    in_a_group = jnp.arange(a.shape[0], dtype=ends.dtype) < ends.max(initial=0)
    return jnp.where(in_a_group[:, None], result, jnp.zeros((), result.dtype))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def by_k(setting: Setting, a: Array, b: Array, ends: Array) -> Array:
    """(G, M, N): of each group the sum over its rows of ``a`` (R, M) and ``b`` (R, N)."""
    return batchable(_call, setting._replace(of_k=True))(a, b, ends)[0]


def _gradient(setting: Setting, function: Any, a: Array, b: Array, ends: Array, like: Array,
              transpose_b: bool = False) -> Array:
    return function(Setting(like.dtype.name, setting.batch_invariant, transpose_b), a, b, ends)


def _forward(function: Any, setting: Setting, a: Array, b: Array, ends: Array) -> tuple[Array, tuple[Array, ...]]:
    return function(setting, a, b, ends), (a, b, ends)


def _backward_by_rows(setting: Setting, saved: tuple[Array, ...], gradient: Array) -> tuple[Any, ...]:
    a, b, ends = saved
    half = gradient.astype(a.dtype)
    pair = (half, a) if setting.transpose_b else (a, half)
    return (_gradient(setting, by_rows, half, b, ends, a, not setting.transpose_b),
            _gradient(setting, by_k, *pair, ends, b), None)


def _backward_by_k(setting: Setting, saved: tuple[Array, ...], gradient: Array) -> tuple[Any, ...]:
    a, b, ends = saved
    half = gradient.astype(a.dtype)
    return (_gradient(setting, by_rows, b, half, ends, a, True), _gradient(setting, by_rows, a, half, ends, b), None)


by_rows.defvjp(partial(_forward, by_rows), _backward_by_rows)
by_k.defvjp(partial(_forward, by_k), _backward_by_k)
