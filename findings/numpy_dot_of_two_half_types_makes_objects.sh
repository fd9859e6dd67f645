#!/usr/bin/env bash
# numpy.dot() of a bfloat16 and a float16 matrix is a matrix of Python objects. With numpy 2.4.6 and ml_dtypes 0.6.0
# (PyPI), 2026-11-28.
#   good guess:  float32, as the operator @ gives; or a TypeError, as numpy.promote_types() raises for the two types
#   seen:        dtype object, whose elements are Python's floats, in both orders; @ gives float32
# Such a product is right, but each multiplication calls Python. Exit status 1 if anything else is seen.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/pip" -q --disable-pip-version-check install numpy==2.4.6 ml_dtypes==0.6.0
"$work/bin/python" - <<'PYTHON'
import sys

import ml_dtypes
import numpy

a, b = numpy.ones((4, 4), ml_dtypes.bfloat16), numpy.ones((4, 4), numpy.float16)
seen = {"a @ b": (a @ b).dtype, "dot(a, b)": numpy.dot(a, b).dtype, "dot(b, a)": numpy.dot(b, a).dtype}
try:
    seen["promote_types"] = numpy.promote_types(a.dtype, b.dtype)
except TypeError:
    seen["promote_types"] = "TypeError"
print(*(f"{what}: {result}" for what, result in seen.items()), sep=", ")
print("an element of dot(a, b):", type(numpy.dot(a, b)[0, 0]).__name__)
sys.exit([str(result) for result in seen.values()] != ["float32", "object", "object", "TypeError"])
PYTHON
