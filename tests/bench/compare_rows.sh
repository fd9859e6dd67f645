#!/usr/bin/env bash
# All kernels of some backends beside cublasGemmEx: times them with `hgemm-bench kernels`, then prints one
# line a product with cublasGemmEx's time over each kernel's: above 1 the kernel is faster.
#   tests/bench/compare_rows.sh BUILD CSV "sm120 sm80" [options of hgemm-bench kernels]
set -euo pipefail
build=$1 csv=$2 backends=$3
shift 3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

names=
for backend in $backends; do
    names+=$(sed -n "s/^[A-Z]* *( *\(${backend}_[a-z0-9_]*\) *,.*/\1,/p" "$root/arch/$backend/kernels.def" |
        grep -v _any_ | tr -d '\n')
done
"$build/tools/bench/hgemm-bench" kernels --kernel "${names%,}" --csv "$csv" "$@"

awk -F, -v names="${names%,}" '
    BEGIN { count = split(names, name); printf "%-24s %10s", "product", "cuBLAS us"
            for (i = 1; i <= count; ++i) printf " %s", name[i]; print "" }
    function flush_line() {
        if (!product) return
        printf "%-24s %10.2f", product, standard
        for (i = 1; i <= count; ++i) printf " %*s", length(name[i]), ratio[name[i]]
        print ""
    }
    /^[0-9]/ {
        key = $1 "x" $2 "x" $3 " " $4 " " $5
        if (key != product) { flush_line(); product = key; standard = $11; split("", ratio) }
        ratio[$8] = $12 == "" ? "-" : sprintf("%.3f", $12)
    }
    END { flush_line() }' "$csv"
