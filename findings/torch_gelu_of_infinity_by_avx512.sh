#!/usr/bin/env bash
# torch's GELU of large numbers depends on how many there are, and on the processor. With torch 2.11.0 (PyPI) on a CPU with
# AVX-512, where oneDNN computes it, 2026-11-30.
#   good guess:  GELU of infinity is infinity, and GELU of 3.4e38 is 3.4e38, as the formula's limits are
#   seen:        so it is for one number. Two or more infinities, float32 or bfloat16, become NaN. Two or more 3.4e38 in
#                float32 become infinity. float64, float16, the form by tanh, and the same processor held to AVX2 (ONEDNN_MAX_CPU_ISA) give what
#                one guesses.
# So GELU of a sum that has overflowed is infinity on one processor and NaN on another. Exit status 1 if anything else is
# seen, as on a CPU without AVX-512.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/pip" -q --disable-pip-version-check install torch==2.11.0 numpy==2.4.6
cat >"$work/gelu.py" <<'PYTHON'
import math
import sys

import torch
from torch.nn.functional import gelu

print(torch.__version__, torch.backends.cpu.get_cpu_capability(), "held to", sys.argv[1])


def first(number, count, dtype=torch.float32, form="none"):
    return gelu(torch.full((count,), number, dtype=dtype), approximate=form)[0].item()


large, wrong = 3.4e38, sys.argv[1] == "nothing"
seen = {"inf, one number": (first(math.inf, 1), math.inf),
        "3.4e38, one number": (first(large, 1), large),
        "inf, two": (first(math.inf, 2), math.nan if wrong else math.inf),
        "3.4e38, two": (first(large, 2), math.inf if wrong else large),
        "inf, two bfloat16": (first(math.inf, 2, torch.bfloat16), math.nan if wrong else math.inf),
        "inf, two float64": (first(math.inf, 2, torch.float64), math.inf),
        "inf, two float16": (first(math.inf, 2, torch.float16), math.inf),
        "inf, two, by tanh": (first(math.inf, 2, form="tanh"), math.inf)}
for what, (found, _) in seen.items():
    print(f"  gelu of {what}: {found:.4g}")
same = [math.isclose(found, expected, rel_tol=1e-6) or math.isnan(found) and math.isnan(expected)
        for found, expected in seen.values()]
sys.exit(not all(same))
PYTHON
"$work/bin/python" "$work/gelu.py" nothing
ONEDNN_MAX_CPU_ISA=AVX2 "$work/bin/python" "$work/gelu.py" AVX2
