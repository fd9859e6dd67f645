#!/usr/bin/env bash
# The mixed second derivative of jax.lax.ragged_dot() exists in one order of its operands alone. With jax 0.10.2 and
# jaxlib 0.10.2 (PyPI) on the CPU, 2026-11-29.
#   good guess:  d/drhs of d/dlhs and d/dlhs of d/drhs both work, and are the same numbers transposed: mixed derivatives
#                commute, and both first derivatives work; or neither works
#   seen:        d/drhs of d/dlhs works; d/dlhs of d/drhs raises NotImplementedError (RAGGED_CONTRACTING), as does the
#                second derivative by rhs
# So a Hessian-vector product by reverse over reverse fails or not by which gradient is taken first. Exit status 1 if
# anything else is seen.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/pip" -q --disable-pip-version-check install jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$work/bin/python" - <<'PYTHON'
import sys

import jax
import jax.numpy as jnp

lhs, rhs = jnp.arange(24.0).reshape(6, 4) / 8, jnp.arange(60.0).reshape(3, 4, 5) / 16
sizes = jnp.array([2, 0, 4], jnp.int32)


def loss(lhs, rhs):
    return (jax.lax.ragged_dot(lhs, rhs, sizes) ** 2).sum()


def second(first, then):
    """By argument number `first`, summed, and then by `then`."""
    try:
        gradient = jax.grad(lambda *both: jax.grad(loss, first)(*both).sum(), then)(lhs, rhs)
        return f"sum {float(gradient.sum()):g}"
    except NotImplementedError:
        return "NotImplementedError"


seen = {f"d/d{name[then]} of d/d{name[first]}": second(first, then)
        for name in [("lhs", "rhs")] for first in (0, 1) for then in (0, 1)}
for what, result in seen.items():
    print(f"{what}: {result}")
sys.exit([result == "NotImplementedError" for result in seen.values()] != [False, False, True, True])
PYTHON
