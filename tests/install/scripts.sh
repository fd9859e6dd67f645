#!/usr/bin/env bash
# tests/demo and tests/check on a machine without a compiler whose user is not root and has no sudo.
# usage: scripts.sh <source folder>
set -euo pipefail
tests=$1/tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/bin"
for program in bash dirname env nproc; do
    ln -s "$(command -v "$program")" "$work/bin"
done
printf '#!%s\necho 1000\n' "$(command -v bash)" >"$work/bin/id"
printf '#!%s\necho apt-get was called >&2\nexit 99\n' "$(command -v bash)" >"$work/bin/apt-get"
chmod +x "$work/bin/id" "$work/bin/apt-get"

fail() { echo "$*" >&2; cat "$work/out" "$work/err" >&2; exit 1; }
# answers <status> <extended regular expression of the output> <script> [argument...]
answers() {
    local wanted=$1 text=$2 status=0
    shift 2
    PATH=$work/bin "$tests/$1" "${@:2}" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" -eq "$wanted" ] || fail "$*: exit $status, not $wanted"
    cat "$work/out" "$work/err" | grep -Eq -- "$text" || fail "$*: no line has: $text"
    if grep -q "apt-get was called" "$work/err"; then fail "$*: calls apt-get"; fi
}

for script in demo check; do
    answers 0 "^usage: tests/$script " $script --help
    answers 0 "^Would be installed with apt-get: .*g\+\+ cmake ninja-build" $script --help
    answers 1 "^Please install: .*g\+\+ cmake ninja-build.*root or sudo" $script
    answers 1 "HGEMM_TESTS=OFF" $script
done
answers 0 "^Would be installed.* dpkg-dev .*" check --help
answers 2 "unknown argument '--no-such-option'" demo --no-such-option
answers 2 "^usage: tests/demo" demo anything
