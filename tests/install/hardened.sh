#!/usr/bin/env bash
# What is installed is protected (pkgconfig/shipped.cmake) and needs no newer C library than it must.
# usage: hardened.sh <is optimised: 0 or 1> <newest version of the C library's symbols> <file>...
set -euo pipefail
optimised=$1 floor=$2
shift 2

failed=0
for file in "$@"; do
    fail() { echo "$file: $*" >&2; failed=1; }
    symbols=$(nm -D --undefined-only "$file")
    segments=$(readelf -lW "$file")
    grep -qE "\(FLAGS(_1)?\).*NOW" <<<"$(readelf -dW "$file")" || fail "symbols are resolved lazily"
    grep -q "GNU_RELRO" <<<"$segments" || fail "relocations stay writable"
    grep -qE "GNU_STACK.* RW  *0x" <<<"$segments" || fail "the stack is executable"
    grep -qw "__stack_chk_fail" <<<"$symbols" || fail "no canaries on the stack"
    if [ "$optimised" -eq 1 ]; then
        grep -qE " __[a-z]+_chk(@|$)" <<<"$symbols" || fail "no checked function of the C library"
    fi
    newest=$(grep -o "GLIBC_[0-9.]*" <<<"$symbols" | sort -uV | tail -n 1)
    echo "$file: $newest"
    if [ "$(printf '%s\n' "$newest" "GLIBC_$floor" | sort -V | tail -n 1)" != "GLIBC_$floor" ]; then
        fail "needs $newest, not GLIBC_$floor at most: $(grep "$newest" <<<"$symbols" | xargs)"
    fi
done
exit "$failed"
