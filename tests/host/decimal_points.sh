#!/usr/bin/env bash
# No source of the libraries formats a number with a fraction as the locale has it: decimal.hpp does without.
# usage: decimal_points.sh <source folder>
set -euo pipefail
cd "$1"
grep -q "std::to_chars" src/base/decimal.hpp
if grep -rnE --exclude-dir=tools --include='*.cpp' --include='*.hpp' '"[^"]*%[-+#0-9.*]*l?[aefgAEFG]|stringstream|std::strto[df]|std::sto[df]' \
    src arch bindings/cblas bindings/cublas bindings/python; then
    exit 1
fi
