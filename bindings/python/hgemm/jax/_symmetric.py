"""Symmetric results, in half of the work of a product: their gradients, and an orthogonalisation by them."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
from jax import Array

from ._product import Setting, gradient_of_added, product, vary_alike


def setting_of(out_dtype: str, batch_invariant: bool = False, alpha: float = 1.0, beta: float = 0.0) -> Setting:
    return Setting(out_dtype, transpose_b=True, batch_invariant=batch_invariant, alpha=alpha, beta=beta, symmetric=True)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def syrk(setting: Setting, a: Array, c: Optional[Array] = None) -> Array:
    """alpha * a @ a.T + beta * c. Its gradient is one product, where that of ``product`` is the sum of two."""
    return product(setting, a, a, c)[0]


def _forward(setting: Setting, a: Array, c: Optional[Array]) -> tuple[Array, tuple[Any, ...]]:
    return syrk(setting, a, c), (a, c)


def _backward(setting: Setting, saved: tuple[Any, ...], gradient: Array) -> tuple[Optional[Array], ...]:
    a, c = saved
    wide = gradient.astype("float32")
    both = (wide + wide.swapaxes(-1, -2)).astype(a.dtype)
    plain = Setting(a.dtype.name, batch_invariant=setting.batch_invariant, alpha=setting.alpha)
    return product(plain, both, a)[0], None if c is None else gradient_of_added(setting, gradient, c)


syrk.defvjp(_forward, _backward)


@partial(jax.jit, static_argnums=(0, 1))
def compiled(function: Callable[..., Any], setting: Setting, *operands: Array) -> Any:
    return function(setting, *vary_alike(*operands))


# Elements of Gram matrices that are computed whole: with a C, mirroring one half takes as long as computing it.
_SMALL_GRAM = 2048**2


@partial(jax.jit, static_argnums=(1, 2, 3))
def newton_schulz(x: Array, steps: int, coefficients: tuple[float, float, float], eps: float) -> Array:
    a, b, c = coefficients
    tall = x.shape[-2] > x.shape[-1]
    result = x.swapaxes(-1, -2) if tall else x
    wide = result.astype("bfloat16").astype("float32")
    squares = jnp.square(wide).sum((-2, -1), keepdims=True)
    # The root of 0 has no finite gradient.
    result = (wide / jnp.sqrt(jnp.maximum(squares, eps * eps))).astype("bfloat16")
    polynomial, step = setting_of("bfloat16", alpha=c, beta=b), Setting("bfloat16", beta=a)
    plain = polynomial._replace(symmetric=False)
    for _ in range(steps):
        gram = syrk(setting_of("bfloat16"), result)
        added = gram if b else None
        if gram.size > _SMALL_GRAM:
            update = syrk(polynomial, gram, added)
        else:
            update, = product(plain, gram, gram, added)
        result, = product(step, update, result, result if a else None)
    return result.swapaxes(-1, -2) if tall else result
