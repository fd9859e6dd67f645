#!/usr/bin/env bash
# What peers.sh says and answers where PyPI cannot be reached.
# usage: peers_offline.sh <python>
set -euo pipefail
python=$1
peers=$(dirname "${BASH_SOURCE[0]}")/peers.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_INDEX_URL=http://127.0.0.1:9 PIP_RETRIES=0 PIP_NO_CACHE_DIR=1 PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS=

# answers <status> <its only lines, as an extended regular expression> <variable=value>...
answers() {
    local status=0
    env -u CI -u HGEMM_TEST_PEERS "${@:3}" "$peers" "$python" "$work/venv" >"$work/out" 2>"$work/err" || status=$?
    if [ "$status" -ne "$1" ] || ! grep -qE "^$2$" "$work/out"; then
        echo "${*:3}: exit $status, not $1, or no line '$2'"
        cat "$work/out" "$work/err"
        exit 1
    fi
    [ ! -e "$work/venv" ] || { echo "${*:3}: leaves an environment that is not complete"; exit 1; }
}

answers 77 "PyPI cannot be reached: PyTorch and JAX are not installed" HGEMM_TEST_PEERS=auto
grep -q ': Skipped$' "$work/out"  # by which tests/check finds the reason
answers 1 "PyPI cannot be reached; HGEMM_TEST_PEERS=required" CI=true
answers 77 "HGEMM_TEST_PEERS=off: .*" HGEMM_TEST_PEERS=off CI=true
answers 1 "HGEMM_TEST_PEERS is 'maybe', must be auto, off or required" HGEMM_TEST_PEERS=maybe
