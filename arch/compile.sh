#!/bin/sh
# Runs nvcc and keeps what it says in a file. Fails where nvcc fails, and where it has made slow code of kernels, as some
# versions do without a warning (NVCC.md). Of this ptxas -v tells:
#   gmem              objects in global memory: template arguments of class type that the code reads there
#   stack, spill      arrays and registers in local memory
#   C75.., Loss       a kernel waits for each wgmma by itself
# usage: compile.sh <log> <slow kernels are allowed: 1 or 0> <output> <nvcc> <argument>...
log=$1 allowed=$2 output=$3 nvcc=$4
shift 3
"$@" -o "$output" 2>"$log" || { cat "$log" >&2; exit 1; }
grep -i warning "$log" >&2

slow=$(awk '
    / entry function / { split($0, part, "\047"); kernel = part[2] ": " }
    / gmem/ { kernel = "" }
    { sub(/^ptxas info *: /, ""); sub(/^ +/, "") }
    /[1-9][0-9]* bytes (gmem|stack frame|spill)/ { print "  " kernel $0 }
    /\(C75|Potential Performance Loss/ { print "  " $0 }' "$log")
# PTX, of which ptxas has said nothing yet.
[ "${output##*.}" != ptx ] || slow=$(grep -E '^ *\.(visible |weak |extern )*\.global ' "$output" | sed 's/^/  /')
[ -n "$slow" ] || exit 0

{
    echo "$("$nvcc" --version | sed -n 's/.*release/CUDA/p') makes slow code of kernels: ${output##*/}"
    echo "$slow" | head -n 8
    echo "  $(echo "$slow" | wc -l) such lines; ptxas tells all in $log"
} >&2
[ "$allowed" -eq 0 ] || exit 0
rm -f "$output"
echo "arch/NVCC.md names versions of nvcc that make fast code. -DHGEMM_ALLOW_SLOW_KERNELS=ON builds all the same." >&2
exit 1
