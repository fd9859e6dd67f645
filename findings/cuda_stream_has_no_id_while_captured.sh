#!/usr/bin/env bash
# cuStreamGetId() of a stream that is captured into a CUDA graph fails, and ends the capture. With cuda-bindings 13.0.3
# (PyPI) and driver 580.159.04 on an H200, 2026-11-28. Needs a GPU.
#   good guess:  a number, as for other streams: nothing is put on the stream, and cuStreamGetCtx() and cuStreamGetFlags()
#                answer; CUDA's documentation says nothing of captures there
#   seen:        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), in each capture mode, and the capture's end answers
#                CUDA_ERROR_STREAM_CAPTURE_INVALIDATED (901)
# Who keys memory by the number, since addresses of streams are used again, must ask before. Exit status 1 if anything else
# is seen.
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
seen = set()
for mode in cu.CUstreamCaptureMode:
    stream = check(cu.cuStreamCreate(1))
    before = check(cu.cuStreamGetId(stream))
    check(cu.cuStreamBeginCapture(stream, mode))
    flags = cu.cuStreamGetFlags(stream)[0]
    number = cu.cuStreamGetId(stream)[0]
    end = cu.cuStreamEndCapture(stream)[0]
    print(f"{mode.name}: before {before > 0}, flags {flags.name}, number {number.name}, end {end.name}")
    seen.add((flags.name, number.name, end.name))
sys.exit(seen != {("CUDA_SUCCESS", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")})
PYTHON
