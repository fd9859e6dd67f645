#!/usr/bin/env bash
# No source of the libraries reads the environment but by secure_getenv().
# usage: environment_reads.sh <source folder>
set -euo pipefail
cd "$1"
found=$(grep -rnE --exclude-dir=tools --include='*.cpp' --include='*.hpp' --include='*.c' --include='*.h' \
    '(^|[^_[:alnum:]])(getenv|environ)\b' src arch include bindings/cblas bindings/cublas || true)
echo "${found:-none}"
grep -rq secure_getenv src
test -z "$found"
