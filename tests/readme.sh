#!/usr/bin/env bash
# The C programs of README.md and of bindings/c/README.md, compiled as they stand there. Those for the CPU run; those for
# a GPU are linked with CUDA's runtime and run on the virtual driver, if these are given.
# usage: readme.sh <source folder> <C compiler> <folder of libhgemm.so> [<folder of cuda_runtime.h> <folder of the
#        virtual driver>]
set -euo pipefail
source=$1 cc=$2 library=$3
cuda=${4-} driver=${5-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run_program <file> <wanted output> <folder of libraries> <option of the compiler>...
run_program() {
    local output
    "$cc" -std=c99 -Wall -Wextra -Werror "$1" -I"$source/include" -L"$library" -lhgemm "${@:4}" -o "$work/program"
    output=$(LD_LIBRARY_PATH=$3:$library "$work/program") || true
    echo "$(basename "$1"): $output"
    test "$output" = "$2"
}

# run_page <page> <what each of its programs prints>...
run_page() {
    local page=$1 name count=0 program
    shift
    name=$(tr / _ <<<"$page")
    awk -v file="$work/$name" '
        /^```c$/ { inside = 1; program = file "-" ++count ".c"; next }
        /^```$/  { inside = 0 }
        inside   { print > program }
    ' "$source/$page"
    for program in "$work/$name"-*.c; do
        count=$((count + 1))
        if ! grep -q cuda_runtime "$program"; then
            run_program "$program" "${!count}" "$library"
        elif [ -n "$driver" ]; then
            EMU_ARCH=sm_90 run_program "$program" "${!count}" "$driver" -isystem "$cuda" -L"$driver" -lcudart
        else
            echo "$(basename "$program"): not compiled, for lack of CUDA and of a virtual driver with kernels for it"
        fi
    done
    test "$count" -eq $#
}

run_page README.md 7
run_page bindings/c/README.md 768
