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
    if [ "$outcome" != "$wanted" ] || ! tr -s '\n ' ' ' <"$work/log" | grep -E -- "$text" >/dev/null; then
        cat "$work/log" >&2
        echo "cmake $*: $outcome; wanted: $wanted, with: $text" >&2
        exit 1
    fi
}

answers works "CMake Warning.*CMAKE_CUDA_ARCHITECTURES is '90;100', .*HGEMM_ARCHS .* HGEMM_TARGETS" \
    -DHGEMM_CUDA=OFF "-DCMAKE_CUDA_ARCHITECTURES=90;100"
answers fails "HGEMM_SANITIZE is 'memory', known: address thread" -DHGEMM_CUDA=OFF -DHGEMM_SANITIZE=memory
# The programs, without the tests.
no_cli11=-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON
answers works "hgemm-bench and hgemm-tune are not built: CLI11 not found" -DHGEMM_CUDA=OFF $no_cli11
answers fails "CLI11" -DHGEMM_CUDA=OFF -DHGEMM_TOOLS=ON $no_cli11
answers works "Generating done" -DHGEMM_CUDA=OFF -DHGEMM_TESTS=ON -DHGEMM_TOOLS=OFF
answers fails "HGEMM_TOOLS is ON and BUILD_SHARED_LIBS is OFF" -DHGEMM_CUDA=OFF -DBUILD_SHARED_LIBS=OFF -DHGEMM_TOOLS=ON
answers fails "HGEMM_TESTS is ON and BUILD_SHARED_LIBS is OFF" -DHGEMM_CUDA=OFF -DBUILD_SHARED_LIBS=OFF -DHGEMM_TESTS=ON
if [ "$cuda_found" = TRUE ]; then
    answers fails "HGEMM_TARGETS is empty, must name some of sm80 sm90 sm100 sm120; .*HGEMM_CUDA=OFF" -DHGEMM_TARGETS=
    answers fails "HGEMM_TARGETS has 'sm_90', known: sm80 sm90 sm100 sm120" -DHGEMM_TARGETS=sm_90
    answers works "libhgemm [0-9.]+: sm80 sm90 host" -DHGEMM_TARGETS=sm90
    known="80 87 90 .*ptx \(CUDA [0-9.]+\)"
    answers fails "HGEMM_ARCHS is empty, must be all, native or some of $known" -DHGEMM_ARCHS=
    answers fails "HGEMM_ARCHS has '91', must be all, native or some of $known" "-DHGEMM_ARCHS=90;91"
    answers fails "HGEMM_ARCHS has 'sm_90', must be" -DHGEMM_ARCHS=sm_90
    answers fails "HGEMM_ARCHS has 'native', must be" "-DHGEMM_ARCHS=80;native"
    # 8.6 has the images of 8.0; backends without an image are left out.
    answers works "libhgemm [0-9.]+: sm80 host for 80 ptx \(CUDA" "-DHGEMM_ARCHS=86;80;ptx"
    answers works "libhgemm [0-9.]+: sm80 sm90 host for 90 \(CUDA" -DHGEMM_ARCHS=90 "-DHGEMM_TARGETS=sm80;sm90"
    # The GPUs that nvidia-smi lists: none, some that are the same or too old, none but such.
    finds_gpus() { printf '#!/bin/sh\n%s\n' "$1" >"$work/bin/nvidia-smi"; chmod +x "$work/bin/nvidia-smi"; }
    none="HGEMM_ARCHS is native, but nvidia-smi finds no GPU .*name some of $known"
    mkdir "$work/bin"
    PATH=$work/bin:$PATH
    finds_gpus "echo 9.0; exit 9"
    answers fails "$none" -DHGEMM_ARCHS=native
    finds_gpus "echo 9.0; echo 8.9; echo 9.0; echo 7.5"
    answers works "libhgemm [0-9.]+: sm80 sm90 .*host for 90 80 \(CUDA" -DHGEMM_ARCHS=native
    finds_gpus "echo 8.8"
    answers works "libhgemm [0-9.]+: sm80 host for ptx \(CUDA" -DHGEMM_ARCHS=native
    finds_gpus "echo 7.5"
    answers fails "$none" -DHGEMM_ARCHS=native
fi
