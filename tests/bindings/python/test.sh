#!/usr/bin/env bash
# Runs a test by the Python of the environment that wheel.sh has made.
# usage: test.sh <folder to work in> <test> [<its arguments>...]
set -euo pipefail
python=$1/venv/bin/python
if ! { [ -x "$python" ] && "$python" -c 'import hgemm' 2>/dev/null; }; then
    printf 'python: Skipped\nThere is no wheel to test; the test python.wheel says why\n'
    [ "${HGEMM_TEST_PEERS-}" = required ] && exit 1  # as where all that this needs is to be there
    exit 77
fi
unset PYTHONDONTWRITEBYTECODE  # peers.sh leaves it to the first import to compile a module
exec "$python" "${@:2}"
