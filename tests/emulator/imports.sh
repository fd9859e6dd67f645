#!/usr/bin/env bash
# imports.sh [--names LIBCUDART] BUILD FOLDER...: what shared libraries in these folders, such as unpacked wheels
# of PyTorch, JAX and CuPy, import from libcudart and libcuda, and the virtual ones in BUILD do not have. Status 1
# if anything is missing.
#
# CuPy imports nothing and looks functions up by name when it runs. With --names, the names of NVIDIA's LIBCUDART
# that the libraries contain are compared too; the status does not depend on them.
set -euo pipefail

names=
if [ "${1-}" = --names ] && [ -e "${2-}" ]; then
    names=$2
    shift 2
fi
(($# >= 2)) || { echo "usage: $0 [--names LIBCUDART] BUILD FOLDER..." >&2; exit 2; }
libraries=$1/tests/emulator/lib
shift
for library in libcuda.so.1 libcudart.so; do
    [ -e "$libraries/$library" ] || { echo "$0: there is no $libraries/$library" >&2; exit 2; }
done

# The driver's and the runtime's functions. cuFile... is a library of its own.
ours()
{
    { grep -E '^(cu[A-Z][a-z]|(__)?cuda[A-Z])[A-Za-z0-9_]*$' || true; } | { grep -v '^cuFile' || true; } | sort -u
}
symbols() { nm -D "$@" 2>/dev/null | awk '{sub(/@.*/, "", $NF); print $NF}'; }
count() { grep -c . <<<"$1" || true; }
indent() { sed 's/^/    /'; }

exported=$(symbols --defined-only "$libraries"/libcuda.so.1 "$libraries"/libcudart.so | sort -u)
[ -z "$names" ] || names=$(symbols --defined-only "$names" | ours | comm -23 - <(echo "$exported"))
status=0
for folder in "$@"; do
    [ -d "$folder" ] || { echo "$0: $folder is no folder" >&2; exit 2; }
    mapfile -d '' files < <(find "$folder" -type f -name '*.so*' -print0)
    ((${#files[@]} > 0)) || { echo "$0: no shared library in $folder" >&2; exit 2; }
    imported=$(for file in "${files[@]}"; do symbols --undefined-only "$file"; done | ours)
    own=$(for file in "${files[@]}"; do symbols --defined-only "$file"; done | sort -u)
    missing=$(comm -23 <(comm -23 <(echo "$imported") <(echo "$own")) <(echo "$exported"))
    echo "$folder: $(count "$imported") imported, $(count "$missing") missing"
    if [ -n "$missing" ]; then
        status=1
        indent <<<"$missing"
    fi
    [ -n "$names" ] || continue
    # Not where NVIDIA's static runtime is linked in: it contains all names.
    looked_up=$(for file in "${files[@]}"; do
        grep -qa cudart_static "$file" || { grep -aowFf <(echo "$names") "$file" || true; }
    done | sort -u)
    echo "  $(count "$looked_up") more that it names and that are not there"
    [ -z "$looked_up" ] || indent <<<"$looked_up"
done
exit $status
