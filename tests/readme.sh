#!/usr/bin/env bash
# The C programs of the README, compiled as they stand there. The one for the CPU runs; the one for a GPU is linked with
# CUDA's runtime and runs on the virtual driver, if these are given.
# usage: readme.sh <source folder> <C compiler> <folder of libhgemm.so> [<folder of cuda_runtime.h> <folder of the
#        virtual driver>]
set -euo pipefail
source=$1 cc=$2 library=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -v folder="$work" '
    /^```c$/ { inside = 1; file = folder "/program" ++count ".c"; next }
    /^```$/  { inside = 0 }
    inside   { print > file }
' "$source/README.md"

# run_program <file> <wanted output> <folder of libraries> <option of the compiler>...
run_program() {
    local output
    "$cc" -std=c99 -Wall -Wextra -Werror "$1" -I"$source/include" -L"$library" -lhgemm "${@:4}" -o "$work/program"
    output=$(LD_LIBRARY_PATH=$3:$library "$work/program") || true
    echo "$(basename "$1"): $output"
    test "$output" = "$2"
}

count=0
for program in "$work"/*.c; do
    count=$((count + 1))
    if ! grep -q cuda_runtime "$program"; then
        run_program "$program" "11, right" "$library"
    elif [ $# -eq 5 ]; then
        EMU_ARCH=sm_90 run_program "$program" "2304, right" "$5" -isystem "$4" -L"$5" -lcudart
    fi
done
test "$count" -eq 2
