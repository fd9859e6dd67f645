#!/usr/bin/env bash
# CMake options that cannot mean what was wanted get an answer.
# usage: options.sh <source folder> <is nvcc there: TRUE or FALSE>
set -euo pipefail
source=$1 cuda_found=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# answers <works|fails> <extended regular expression of the output> <option>...
answers() {
    local wanted=$1 text=$2 outcome=works
    shift 2
    cmake -S "$source" -B "$work/build" --fresh -DHGEMM_TESTS=OFF "$@" >"$work/log" 2>&1 || outcome=fails
    # CMake breaks the lines of its messages.
    if [ "$outcome" != "$wanted" ] || ! tr -s '\n ' ' ' <"$work/log" | grep -Eq -- "$text"; then
        cat "$work/log" >&2
        echo "cmake $*: $outcome; wanted: $wanted, with: $text" >&2
        exit 1
    fi
}

answers works "CMake Warning.*CMAKE_CUDA_ARCHITECTURES is '90;100', .*HGEMM_TARGETS" \
    -DHGEMM_CUDA=OFF "-DCMAKE_CUDA_ARCHITECTURES=90;100"
answers fails "HGEMM_SANITIZE is 'memory', known: address thread" -DHGEMM_CUDA=OFF -DHGEMM_SANITIZE=memory
answers fails "HGEMM_TESTS is ON and BUILD_SHARED_LIBS is OFF" -DHGEMM_CUDA=OFF -DBUILD_SHARED_LIBS=OFF -DHGEMM_TESTS=ON
if [ "$cuda_found" = TRUE ]; then
    answers fails "HGEMM_TARGETS is empty, must name some of sm80 sm90 sm100 sm120; .*HGEMM_CUDA=OFF" -DHGEMM_TARGETS=
    answers fails "HGEMM_TARGETS has 'sm_90', known: sm80 sm90 sm100 sm120" -DHGEMM_TARGETS=sm_90
    answers works "libhgemm [0-9.]+: sm80 sm90 host" -DHGEMM_TARGETS=sm90
fi
