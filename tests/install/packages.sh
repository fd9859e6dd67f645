#!/usr/bin/env bash
# Makes the Debian packages and checks what is in them, what they need, and that they work when unpacked.
# With LINTIAN in the environment also that lintian has nothing to say of them.
# usage: packages.sh <build folder> <library folder, relative to the prefix> <architecture, as Debian names it>
#        <is the cuBLAS shim built: 0 or 1> [program that runs the architecture's programs and its arguments...]
set -euo pipefail
# A filter here reads all of its input: dpkg-deb fails at a pipe that was closed (head, grep -q).
build=$1 libdir=usr/$2 architecture=$3 shim=$4
emulator=("${@:5}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

(cd "$build" && cpack -G DEB -B "$work" >"$work/log" 2>&1) || { cat "$work/log"; exit 1; }

fail() { echo "$*" >&2; exit 1; }
field() { dpkg-deb -f "$work/$1"_*.deb "$2"; }
files() { cat "$work/$1.files"; }
# has <package> <field> <extended regular expression>
has() { field "$1" "$2" | grep -E -- "$3" >/dev/null || fail "$1: $2 is '$(field "$1" "$2")', not $3"; }
# contains <package> <file>...
contains() {
    local package=$1 file
    shift
    for file in "$@"; do
        files "$package" | grep -x -- "$file" >/dev/null || fail "$package has no $file"
    done
}
# nothing_but <package> <extended regular expression>
nothing_but() {
    if files "$1" | grep -Ev -- "^($2|usr/share/doc/$1/(copyright|changelog.gz))$"; then fail "$1 has that as well"; fi
}

version=$(field libhgemm1 Version)
for package in libhgemm1 libhgemm-dev hgemm-tools; do
    echo "== $package $version"
    dpkg-deb -c "$work/$package"_*.deb | awk '$1 !~ /^d/ {sub("^[.]/", "", $6); print $6}' >"$work/$package.files"
    files "$package"
    has "$package" Version "^[0-9]+\.[0-9]+\.[0-9]+$"
    has "$package" Maintainer ".+ <.+@.+>"
    has "$package" Architecture "^$architecture$"
    if field "$package" Maintainer | grep localhost; then fail "$package: nobody is reached at localhost"; fi
    field "$package" Description | sed -n 1p >>"$work/synopses"
    contains "$package" "usr/share/doc/$package/copyright"
done
# The programs have code of others.
copyright=$(dpkg-deb --fsys-tarfile "$work"/hgemm-tools_*.deb | tar -xO ./usr/share/doc/hgemm-tools/copyright)
for holder in "University of Cincinnati" "Victor Zverovich" "Niels Lohmann" "The libhgemm authors"; do
    [[ $copyright = *"$holder"* ]] || fail "hgemm-tools: the copyright file lacks $holder"
done

[ "$(sort -u "$work/synopses" | wc -l)" -eq 3 ] || fail "packages are described by the same words"

contains libhgemm1 "$libdir/libhgemm.so.1" "$libdir/libhgemm.so.$version" \
    "$libdir/libhgemm_cblas.so.1" "$libdir/libhgemm_cblas.so.$version"
nothing_but libhgemm1 "$libdir/(lib[a-z_]+\.so\.[0-9.]+|libhgemm_cublas(_audit)?.so)|usr/share/lintian/overrides/libhgemm1"
contains libhgemm-dev usr/include/hgemm.h usr/include/hgemm.hpp usr/include/hgemm.f90 \
    usr/include/hgemm_cblas.h "$libdir/libhgemm.so" "$libdir/libhgemm_cblas.so" \
    "$libdir/pkgconfig/hgemm.pc" "$libdir/cmake/hgemm/hgemmConfig.cmake" usr/share/man/man7/hgemm.7.gz \
    usr/share/doc/libhgemm-dev/README.md usr/share/doc/libhgemm-dev/examples/example.c \
    usr/share/doc/libhgemm-dev/examples/example.cpp usr/share/doc/libhgemm-dev/examples/example.f90 \
    usr/share/doc/libhgemm-dev/examples/linear.rs usr/share/hgemm/rust/Cargo.toml \
    usr/share/hgemm/rust/hgemm/Cargo.toml usr/share/hgemm/rust/hgemm/src/lib.rs \
    usr/share/hgemm/rust/hgemm-sys/build.rs usr/share/hgemm/rust/hgemm-sys/src/lib.rs
nothing_but libhgemm-dev "usr/include/.*|$libdir/(lib[a-z_]+\.so|pkgconfig/.*|cmake/hgemm/.*)|\
usr/share/(doc/libhgemm-dev/(README.md|examples/.*)|hgemm/rust/.*|man/man7/hgemm.7.gz)"
if [ "$shim" -eq 1 ]; then
    contains libhgemm1 "$libdir/libhgemm_cublas.so" "$libdir/libhgemm_cublas_audit.so"
    contains libhgemm-dev usr/include/hgemm_shim.h
fi
contains hgemm-tools usr/bin/hgemm-{bench,tune} usr/share/man/man1/hgemm-{bench,tune}.1.gz
nothing_but hgemm-tools "usr/bin/.*|usr/share/man/man1/hgemm-(bench|tune).1.gz"

has libhgemm1 Depends "^libc6 \(>= [0-9.]+\)$"
has libhgemm1 Recommends "^libopenblas0$"
has libhgemm-dev Depends "^libhgemm1 \(= $version\)$"
has hgemm-tools Depends "libhgemm1 \(= $version\)"
has hgemm-tools Depends "libc6 \(>= [0-9.]+\)"
dpkg-deb -I "$work"/libhgemm1_*.deb shlibs | grep -x "libhgemm 1 libhgemm1 (>= $version)" >/dev/null ||
    fail "libhgemm1 says nothing of its libraries to dpkg-shlibdeps"

for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
while read -r file; do
    if readelf -d "$file" | grep -E 'RPATH|RUNPATH'; then fail "$file has an rpath"; fi
done < <(find "$work/root/$libdir" "$work/root/usr/bin" -maxdepth 1 -type f)

# bench <argument>...: the installed program, with the installed library.
bench() { LD_LIBRARY_PATH=$work/root/$libdir "${emulator[@]}" "$work/root/usr/bin/hgemm-bench" "$@"; }
bench --help >/dev/null
if [ ${#emulator[@]} -eq 0 ]; then
    LD_LIBRARY_PATH="$work/root/$libdir" ldd "$work/root/usr/bin/hgemm-bench" |
        grep "libhgemm.so.1 => $work/root/$libdir"
fi
# Each option has its line in the manual page.
page=$(gzip -dc "$work/root/usr/share/man/man1/hgemm-bench.1.gz" | sed 's/\\-/-/g')
for subcommand in compare kernels candidates report; do
    for option in $(bench "$subcommand" --help | grep -o "^  --[a-z-]*"); do
        grep -q "^\.B $option" <<<"$page" || fail "hgemm-bench(1) has no $option of $subcommand"
    done
done

tune=("${emulator[@]}" "$work/root/usr/bin/hgemm-tune")
page=$(gzip -dc "$work/root/usr/share/man/man1/hgemm-tune.1.gz" | sed 's/\\-/-/g')
for option in $("${tune[@]}" --help | grep -o "^  --[a-z-]*"); do
    grep -q "^\.B $option" <<<"$page" || fail "hgemm-tune(1) has no $option"
done

if [ -n "${LINTIAN-}" ]; then
    # CMake's library folder is a multiarch one only in a build that is configured for /usr, as the preset deb is.
    "$LINTIAN" --fail-on error,warning --suppress-tags pkg-config-unavailable-for-cross-compilation "$work"/*.deb
fi
