#!/usr/bin/env bash
# cuStreamGetId() and cuStreamGetFlags() of a stream that is captured into a CUDA graph fail, and end the capture. With
# cuda-bindings 13.0.3 (PyPI) and driver 580.159.04 on an H200, 2026-11-28. Needs a GPU.
#   good guess:  a number and flags, as at other times: nothing is put on the stream, and cuStreamGetCtx() and
#                cuStreamGetPriority() answer; CUDA's documentation says nothing of captures there
#   seen:        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), in each capture mode, and the capture's end answers
#                CUDA_ERROR_STREAM_CAPTURE_INVALIDATED (901)
# Who tells streams apart by their number, since addresses are used again, must first ask whether one is captured. Exit status
# 1 if anything else is seen.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip -q --disable-pip-version-check install --target "$work" cuda-bindings==13.0.3
PYTHONPATH=$work python3 - <<'PYTHON'
import sys

from cuda.bindings import driver as cu


def check(answer):
    if answer[0] != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(answer[0].name)
    return answer[1] if len(answer) > 1 else None


check(cu.cuInit(0))
check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(0))))
seen = {}
for name in ("cuStreamGetCtx", "cuStreamGetPriority", "cuStreamGetFlags", "cuStreamGetId"):
    ask = getattr(cu, name)
    for mode in cu.CUstreamCaptureMode:
        stream = check(cu.cuStreamCreate(1))
        check(ask(stream))
        check(cu.cuStreamBeginCapture(stream, mode))
        seen.setdefault(name, set()).add((int(ask(stream)[0]), int(cu.cuStreamEndCapture(stream)[0])))
for name, answers in seen.items():
    print(name, *(f"answers {answer}, the capture's end {end}" for answer, end in answers))
sys.exit(list(seen.values()) != [{(0, 0)}, {(0, 0)}, {(900, 901)}, {(900, 901)}])
PYTHON
