#!/usr/bin/env bash
# A library with the images of one architecture, on the virtual driver: it serves that one and says why no other.
# usage: archs.sh <folder of images that have PTX> <folder of the virtual driver> <source folder> <C compiler>
#        <C++ compiler>
set -euo pipefail
images=$1 driver=$2 source=$3 cc=$4 cxx=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake -S "$source" -B "$work" -DCMAKE_BUILD_TYPE=Debug -DHGEMM_TESTS=OFF -DHGEMM_BINDINGS=OFF -DHGEMM_ARCHS=90 \
    -DCMAKE_UNITY_BUILD=ON -DHGEMM_IMAGES="$images" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx"
cmake --build "$work" --parallel 2
"$cc" -I"$source/include" "$source/tests/emulator/create_handle.c" -L"$work" -lhgemm -o "$work/create"

# answers <architecture> <extended regular expression of the output>
answers() {
    local output
    output=$(LD_LIBRARY_PATH=$work:$driver EMU_ARCH=$1 "$work/create")
    echo "$1: $output"
    grep -Eq -- "$2" <<<"$output" || { echo "$1: wanted: $2" >&2; exit 1; }
}
answers sm_90 "^HGEMM_STATUS_SUCCESS: sm90$"
for architecture in sm_80 sm_100 sm_120; do
    answers $architecture "^HGEMM_STATUS_NOT_SUPPORTED: .* was built for GPUs 90 alone \(HGEMM_ARCHS\)"
done
