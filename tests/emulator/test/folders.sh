#!/usr/bin/env bash
# Where the installed programs look for their libraries, for folders that are relative to the prefix and for those that
# are not.
#   folders.sh <cmake> <generator> <folder of the emulator> <folder to work in>
set -euo pipefail
cmake=$1 generator=$2 source=$3 work=$4
problems=0
# expect <folder that the program names> <setting of CMake>...
expect() {
    local expected=$1
    shift
    rm -rf "$work" && mkdir -p "$work"
    "$cmake" -S "$source" -B "$work" -G "$generator" -DCMAKE_INSTALL_PREFIX=/prefix "$@" >"$work/log" || { cat "$work/log"; exit 1; }
    grep -rqF "PTXRACE_LIBRARIES=\\\"$expected\\\"" "$work" --include=flags.make --include=build.ninja ||
        { echo "$*: the programs do not look into $expected"; problems=1; }
}
expect ../lib/ptxrace -DCMAKE_INSTALL_LIBDIR=lib
expect ../lib/some/ptxrace -DCMAKE_INSTALL_LIBDIR=lib/some
expect /elsewhere/lib/ptxrace -DCMAKE_INSTALL_LIBDIR=/elsewhere/lib
expect /prefix/lib/ptxrace -DCMAKE_INSTALL_BINDIR=/elsewhere/bin -DCMAKE_INSTALL_LIBDIR=lib
exit $problems
