#!/usr/bin/env bash
# Makes the Debian packages and checks what is in them, what they need, and that they work when unpacked.
# usage: packages.sh <build folder> <library folder, relative to the prefix>
set -euo pipefail
build=$1 libdir=usr/$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

(cd "$build" && cpack -G DEB -B "$work" >"$work/log" 2>&1) || { cat "$work/log"; exit 1; }

fail() { echo "$*" >&2; exit 1; }
field() { dpkg-deb -f "$work/$1"_*.deb "$2"; }
files() { dpkg-deb -c "$work/$1"_*.deb | awk '$1 !~ /^d/ {sub("^[.]/", "", $6); print $6}'; }
# has <package> <field> <extended regular expression>
has() { field "$1" "$2" | grep -Eq -- "$3" || fail "$1: $2 is '$(field "$1" "$2")', not $3"; }
# contains <package> <file>...
contains() {
    local package=$1 file
    shift
    for file in "$@"; do
        files "$package" | grep -qx -- "$file" || fail "$package has no $file"
    done
}
# nothing_but <package> <extended regular expression>
nothing_but() { ! files "$1" | grep -Ev -- "^($2|usr/share/doc/$1/(copyright|changelog.gz))$"; }

version=$(field libhgemm1 Version)
for package in libhgemm1 libhgemm-dev hgemm-tools; do
    echo "== $package $version"
    files "$package"
    has "$package" Version "^[0-9]+\.[0-9]+\.[0-9]+$"
    has "$package" Maintainer ".+ <.+@.+>"
    contains "$package" "usr/share/doc/$package/copyright"
done

contains libhgemm1 "$libdir/libhgemm.so.1" "$libdir/libhgemm.so.$version" \
    "$libdir/libhgemm_cblas.so.1" "$libdir/libhgemm_cblas.so.$version"
nothing_but libhgemm1 "$libdir/lib[a-z_]+\.so\.[0-9.]+"
contains libhgemm-dev usr/include/hgemm.h usr/include/hgemm.hpp usr/include/hgemm.f90 \
    usr/include/hgemm_cblas.h usr/include/hgemm_shim.h "$libdir/libhgemm.so" "$libdir/libhgemm_cblas.so" \
    "$libdir/pkgconfig/hgemm.pc" "$libdir/cmake/hgemm/hgemmConfig.cmake"
nothing_but libhgemm-dev "usr/include/.*|$libdir/(lib[a-z_]+\.so|pkgconfig/.*|cmake/hgemm/.*)"
contains hgemm-tools usr/bin/hgemm-bench "$libdir/libhgemm_cublas.so"
nothing_but hgemm-tools "usr/bin/.*|$libdir/libhgemm_cublas.so"

has libhgemm1 Depends "^libc6 \(>= [0-9.]+\)$"
has libhgemm1 Recommends "^libopenblas0$"
has libhgemm-dev Depends "^libhgemm1 \(= $version\)$"
has hgemm-tools Depends "^libhgemm1 \(= $version\), libc6 "
dpkg-deb -I "$work"/libhgemm1_*.deb shlibs | grep -qx "libhgemm 1 libhgemm1 (>= $version)" ||
    fail "libhgemm1 says nothing of its libraries to dpkg-shlibdeps"

for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
for file in "$work/root/$libdir"/*.so.*.* "$work/root/$libdir/libhgemm_cublas.so" "$work/root/usr/bin"/*; do
    if readelf -d "$file" | grep -E 'RPATH|RUNPATH'; then fail "$file has an rpath"; fi
done
LD_LIBRARY_PATH="$work/root/$libdir" "$work/root/usr/bin/hgemm-bench" --help >/dev/null
LD_LIBRARY_PATH="$work/root/$libdir" ldd "$work/root/usr/bin/hgemm-bench" |
    grep "libhgemm.so.1 => $work/root/$libdir"
