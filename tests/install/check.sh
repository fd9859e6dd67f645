#!/usr/bin/env bash
# Installs the built library into a fresh prefix and builds the examples against it, as a user would.
# usage: check.sh pkg-config|moved|find-package|fortran|rust <build folder> <source folder> <C compiler>
#        <C++ compiler>
set -euo pipefail
mode=$1 build=$2 source=$3 cc=$4 cxx=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

install_to() { cmake --install "$build" --prefix "$1" >"$work/install.log" || { cat "$work/install.log"; exit 1; }; }
find_pc() { find "$1" -name hgemm.pc -printf '%h\n'; }

# Makes pkg-config find the library under the prefix; sets libdir.
use_prefix() {
    export PKG_CONFIG_PATH
    PKG_CONFIG_PATH=$(find_pc "$1")
    test -n "$PKG_CONFIG_PATH"
    pkg-config --exists --print-errors hgemm
    libdir=$(pkg-config --variable=libdir hgemm)
}

# Builds and runs the examples with what pkg-config says of the prefix.
try_pkg_config() {
    use_prefix "$1"
    local flags
    read -ra flags <<<"$(pkg-config --cflags --libs hgemm)"
    "$cc" -std=c99 -Wall -Wextra -Werror "$source/bindings/c/example.c" "${flags[@]}" -o "$work/example"
    LD_LIBRARY_PATH=$libdir "$work/example"
    LD_LIBRARY_PATH=$libdir ldd "$work/example" | grep "libhgemm.so.1 => $(realpath "$libdir")"
    "$cxx" -std=c++20 -Wall -Wextra -Werror "$source/bindings/cpp/example.cpp" "${flags[@]}" -o "$work/cpp"
    LD_LIBRARY_PATH=$libdir "$work/cpp"
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
fortran)
    install_to "$prefix"
    use_prefix "$prefix"
    read -ra flags <<<"$(pkg-config --libs hgemm)"
    (cd "$work" && gfortran "$(pkg-config --variable=fortran_source hgemm)" \
        "$source/bindings/fortran/example.f90" "${flags[@]}" -o example)
    LD_LIBRARY_PATH=$libdir "$work/example"
    ;;
rust)
    install_to "$prefix"
    use_prefix "$prefix"
    # A crate of a user's own, which finds the library by pkg-config alone.
    mkdir -p "$work/user/src"
    cp "$source/bindings/rust/hgemm/examples/linear.rs" "$work/user/src/main.rs"
    printf '[package]\nname = "user"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nhgemm = { path = "%s" }\n' \
        "$prefix/share/hgemm/rust/hgemm" >"$work/user/Cargo.toml"
    unset HGEMM_LIB_DIR HGEMM_NO_PKG_CONFIG
    LD_LIBRARY_PATH=$libdir cargo run --offline --manifest-path "$work/user/Cargo.toml"
    ;;
find-package)
    install_to "$prefix"
    mkdir "$work/project"
    cat >"$work/project/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.16)
project(user C CXX)
find_package(hgemm REQUIRED)
add_executable(example "${BINDINGS}/c/example.c")
target_link_libraries(example PRIVATE hgemm::hgemm)
add_executable(cpp "${BINDINGS}/cpp/example.cpp")
target_compile_features(cpp PRIVATE cxx_std_20)
target_link_libraries(cpp PRIVATE hgemm::hgemm)
file(WRITE "${CMAKE_BINARY_DIR}/cblas.c" "#include <hgemm_cblas.h>\nint main(void) { return hgemm_cblas_status(); }\n")
add_executable(cblas "${CMAKE_BINARY_DIR}/cblas.c")
target_link_libraries(cblas PRIVATE hgemm::cblas)
PROJECT
    mv "$prefix" "$work/elsewhere"
    cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$work/elsewhere" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DBINDINGS="$source/bindings"
    cmake --build "$work/project/build"
    for program in example cpp cblas; do
        "$work/project/build/$program"
    done
    ;;
*)
    echo "unknown mode $mode" >&2
    exit 2
    ;;
esac
