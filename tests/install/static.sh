#!/usr/bin/env bash
# libhgemm.a as README has it built, linked into programs in C and C++ by every compiler that is found, and as a
# subproject. With kernels that have PTX a program also finds them on the virtual driver.
# usage: static.sh <build folder of the shared library> <source folder> <C compiler> <C++ compiler>
#        [<folder of kernels> <folder of the virtual driver>]
set -euo pipefail
shared=$1 source=$2 cc=$3 cxx=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=$source/tests/install/static

# quietly <command>...: shows what it printed only if it fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "failed: $*" >&2; exit 1; }; }

# build_static <name> <option of cmake>...: installs into $work/<name>/prefix, and sets flags. Its global symbols are
# the functions of the shared library.
build_static() {
    local folder=$work/$1
    quietly cmake -S "$source" -B "$folder" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DHGEMM_TESTS=OFF \
        -DCMAKE_UNITY_BUILD=ON -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" "${@:2}"
    quietly cmake --build "$folder" --parallel 2
    quietly cmake --install "$folder" --prefix "$folder/prefix"
    export PKG_CONFIG_PATH
    PKG_CONFIG_PATH=$(find "$folder/prefix" -name hgemm.pc -printf '%h\n')
    local archive
    archive=$(pkg-config --variable=libdir hgemm)/libhgemm.a
    if find "$folder/prefix" -name "libhgemm.so*" | grep .; then exit 1; fi
    nm -gj --defined-only "$archive" | grep -v ":$" | sed '/^$/d' | sort >"$work/archive"
    nm -Dj --defined-only "$shared/libhgemm.so.1" | grep -v "^HGEMM" | sed 's/@.*//' | sort >"$work/shared"
    diff "$work/shared" "$work/archive"
    read -ra flags <<<"$(pkg-config --cflags --libs --static hgemm)"
}

# run_program <name> <command that builds it>...
run_program() {
    local program=$work/$1
    quietly "${@:2}" -o "$program"
    "$program" >"$work/log" || { cat "$work/log"; echo "failed: $*" >&2; exit 1; }
}

# The compilers of the machine, each by one of its names.
compilers() {
    local name
    for name in $(compgen -c | grep -xE "(g\+\+|clang\+\+)(-[0-9]+)?"); do
        echo "$(readlink -f "$(command -v "$name")") $name"
    done | sort -u -k 1,1 | cut -d " " -f 2
}

build_static host -DHGEMM_CUDA=OFF
run_program example "$cc" -std=c99 "$source/bindings/c/example.c" "${flags[@]}"
run_program example_cpp "$cxx" -std=c++20 "$source/bindings/cpp/example.cpp" "${flags[@]}"
for compiler in $(compilers); do
    for options in "-std=c++17 -O0" "-std=c++20 -O0" "-std=c++20 -O2 -D_GLIBCXX_ASSERTIONS"; do
        # shellcheck disable=SC2086
        run_program uses_cxx "$compiler" $options "$programs/uses_cxx.cpp" "${flags[@]}"
    done
    echo "$compiler: right"
done

# project <name> <option of cmake>...: its programs.
project() {
    quietly cmake -S "$programs" -B "$work/$1" -DCMAKE_BUILD_TYPE=Release -DBINDINGS="$source/bindings" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" "${@:2}"
    quietly cmake --build "$work/$1" --parallel 2
}
project find_package -DCMAKE_PREFIX_PATH="$work/host/prefix"
quietly "$work/find_package/example"
project subproject -DSUBPROJECT="$source" -DHGEMM_CUDA=OFF -DHGEMM_BINDINGS=OFF -DCMAKE_UNITY_BUILD=ON
quietly "$work/subproject/example"
quietly "$work/subproject/uses_cxx"

if [ $# -eq 6 ]; then
    build_static cuda -DHGEMM_CUDA=ON -DHGEMM_IMAGES="$5" -DHGEMM_ARCHS=90
    run_program uses_cxx "$cxx" -std=c++20 "$programs/uses_cxx.cpp" "${flags[@]}"
    quietly "$cc" "$source/tests/emulator/create_handle.c" "${flags[@]}" -o "$work/create"
    answer=$(LD_LIBRARY_PATH=$6 EMU_ARCH=sm_90 "$work/create")
    test "$answer" = "HGEMM_STATUS_SUCCESS: sm90"
fi
