#!/usr/bin/env bash
# Installs the built library into a fresh prefix and builds the C example against it, as a user would.
# usage: check.sh pkg-config|moved|find-package <build folder> <source folder> <C compiler>
set -euo pipefail
mode=$1 build=$2 source=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

install_to() { cmake --install "$build" --prefix "$1" >"$work/install.log" || { cat "$work/install.log"; exit 1; }; }
find_pc() { find "$1" -name hgemm.pc -printf '%h\n'; }

# Builds and runs the example with what pkg-config says of the prefix.
try_pkg_config() {
    export PKG_CONFIG_PATH
    PKG_CONFIG_PATH=$(find_pc "$1")
    test -n "$PKG_CONFIG_PATH"
    pkg-config --exists --print-errors hgemm
    local flags libdir
    read -ra flags <<<"$(pkg-config --cflags --libs hgemm)"
    libdir=$(pkg-config --variable=libdir hgemm)
    "$cc" -std=c99 -Wall -Wextra -Werror "$source/bindings/c/example.c" "${flags[@]}" -o "$work/example"
    LD_LIBRARY_PATH=$libdir "$work/example"
    LD_LIBRARY_PATH=$libdir ldd "$work/example" | grep "libhgemm.so.1 => $(realpath "$libdir")"
    # A program must not need CUDA to be built.
    if pkg-config --print-requires --print-requires-private hgemm | grep -i cuda; then exit 1; fi
    test "$(pkg-config --modversion hgemm)" = "$(sed -n 's/^#define HGEMM_VERSION_[A-Z]* \([0-9]*\)$/\1/p' \
        "$source/include/hgemm.h" | paste -sd.)"
}

case $mode in
pkg-config)
    install_to "$prefix"
    try_pkg_config "$prefix"
    ;;
moved)
    install_to "$prefix"
    mv "$prefix" "$work/elsewhere"
    try_pkg_config "$work/elsewhere"
    ;;
find-package)
    install_to "$prefix"
    mkdir "$work/project"
    cat >"$work/project/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(hgemm REQUIRED)
add_executable(example "${EXAMPLE}")
target_link_libraries(example PRIVATE hgemm::hgemm)
PROJECT
    mv "$prefix" "$work/elsewhere"
    cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$work/elsewhere" \
        -DCMAKE_C_COMPILER="$cc" -DEXAMPLE="$source/bindings/c/example.c"
    cmake --build "$work/project/build"
    "$work/project/build/example"
    ;;
*)
    echo "unknown mode $mode" >&2
    exit 2
    ;;
esac
