#!/usr/bin/env bash
# tests/demo and tests/check on a machine without a compiler whose user is not root and has no sudo; what they build
# with one.
# usage: scripts.sh <source folder>
set -euo pipefail
tests=$1/tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/bin"
for program in bash dirname env nproc; do
    ln -s "$(command -v "$program")" "$work/bin"
done
# program <name> <command>...: on that machine.
program() {
    local name=$1
    shift
    printf '%s\n' "#!$(command -v bash)" "$@" >"$work/bin/$name"
    chmod +x "$work/bin/$name"
}
program id "echo 1000"
program apt-get "echo apt-get was called >&2" "exit 99"

fail() { echo "$*" >&2; cat "$work/out" "$work/err" >&2; exit 1; }
# answers <status> <extended regular expression of the output> <script> [argument...]
answers() {
    local wanted=$1 text=$2 status=0
    shift 2
    PATH=$work/bin "$tests/$1" "${@:2}" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" -eq "$wanted" ] || fail "$*: exit $status, not $wanted"
    grep -Eq -- "$text" "$work/out" "$work/err" || fail "$*: no line has: $text"
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

# With all that it needs, it builds for the GPUs that there are, in a folder of its own.
for name in g++ ninja pkg-config gfortran cargo abidiff dpkg-shlibdeps file python3; do
    program $name
done
program cmake 'echo "cmake $*"' "exit 98"
answers 0 "^Would be built: the host backend alone: nvidia-smi finds no GPU" demo --help
answers 98 "^cmake .*build/demo .*-DHGEMM_CUDA=OFF" demo
program nvidia-smi "echo 7.5"
answers 98 "^cmake .*build/demo .*-DHGEMM_CUDA=OFF" demo
program nvidia-smi "echo 7.5" "echo 9.0"
answers 0 "^Would be built: its kernels for the GPUs of this machine" demo --help
answers 98 "^cmake .*build/demo .*-DHGEMM_CUDA=AUTO -DHGEMM_ARCHS=native" demo
if grep -q EMBED_PTX "$work/out"; then fail "the demo builds with PTX"; fi
answers 98 "^cmake .*build (-G Ninja )?-D.*-DHGEMM_EMBED_PTX=ON" check

# grep -q stops reading at the first line that it finds. Whoever still writes is killed, and pipefail makes a failure of it.
mapfile -t scripts < <(grep -rlI --exclude-dir=.git --exclude-dir="build*" "^set .*pipefail" "$1")
[ ${#scripts[@]} -gt 20 ] || fail "found ${#scripts[@]} scripts with pipefail"
if grep -nE '[^|]\| *(head\b|[ef]?grep +(-[A-Za-z]* +)*-[A-Za-z]*[qm])' "${scripts[@]}"; then fail "a pipe into what stops reading early"; fi

answers 2 "unknown 'gcc', known" configurations gcc

# What CI leaves out of the long tests is an expression that ctest takes, on each day. Else it would leave out none.
source <(sed -n "/^long=(/,/')$/p" "$1/.ci/run")
[ ${#long[@]} -ge 3 ] || fail "no long tests in .ci/run"
for day in "${!long[@]}"; do
    left_out=("${long[@]}")
    unset "left_out[$day]"
    pairs=$(IFS="|" && tr -cd "(" <<<"(${left_out[*]}")
    [ ${#pairs} -le 9 ] || fail "day $day: ${#pairs} pairs of parentheses, which ctest refuses"
done
