#!/usr/bin/env bash
# Does a binding declare every function of the header, and no other?
# usage: declared.sh <header> <binding> <extended regular expression with the name as its one group>
set -euo pipefail
header=$1 binding=$2 pattern=$3

in_header=$(sed -nE 's/^HGEMM_API [^;(]*[ *](\w+)\(.*/\1/p' "$header" | sort)
in_binding=$(sed -nE "s/.*$pattern.*/\1/p" "$binding" | sort)
test "$(wc -l <<<"$in_header")" -ge 42
diff <(echo "$in_header") <(echo "$in_binding")
echo "all $(wc -l <<<"$in_header") functions are declared"
