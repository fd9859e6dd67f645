#!/usr/bin/env bash
# optax.contrib.muon() divides float16 gradients by a norm that has left float16. With optax 0.2.8, jax 0.10.2 and jaxlib
# 0.10.2 (PyPI) on the CPU, 2026-11-30.
#   good guess:  an update is orthogonalised, so its size does not depend on that of the gradient: for float16 it is that
#                for float32 to two digits, for gradients around 1 as for those around 0.01; and 0 for a gradient of 0
#   seen:        256 x 512 gradients of standard normal numbers give an update of zeros: their norm, 362, is the root of a
#                sum of squares that is infinite in float16. A gradient of 0 gives NaN: eps, 1e-8, is 0 in float16.
#                Scaled by 0.1 or less the gradients give what float32 does. bfloat16 always does.
# So float16 weights stand still without a warning while gradients are large, and those that a loss does not use become
# NaN. Exit status 1 if anything else is seen.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/pip" -q --disable-pip-version-check install optax==0.2.8 jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$work/bin/python" - <<'PYTHON'
import math
import sys

import jax
import jax.numpy as jnp
from optax.contrib import muon

gradient = jax.random.normal(jax.random.key(1), (256, 512))


def update(scale, dtype):
    """The norm of the first update by a gradient that is scaled."""
    weights = {"w": jnp.zeros(gradient.shape, dtype)}
    optimizer = muon(1.0)
    updates, _ = optimizer.update({"w": (scale * gradient).astype(dtype)}, optimizer.init(weights), weights)
    return float(jnp.linalg.norm(updates["w"].astype("float32")))


seen = {}
for scale in (1.0, 0.1, 0.01, 0.0):
    seen[scale] = [update(scale, dtype) for dtype in ("float32", "bfloat16", "float16")]
    print(f"scale {scale:g}: float32 {seen[scale][0]:.4g}, bfloat16 {seen[scale][1]:.4g}, float16 {seen[scale][2]:.4g}")
right = all(abs(half / seen[scale][0] - 1) < 0.05
            for scale in (1.0, 0.1, 0.01) for half in seen[scale][1:(2 if scale == 1.0 else 3)])
odd = seen[1.0][2] == 0 and seen[0.0][:2] == [0, 0] and math.isnan(seen[0.0][2])
sys.exit(not (right and odd))
PYTHON
