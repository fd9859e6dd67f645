#!/usr/bin/env bash
# A backend on its emulated device, in full, for which ctest has no time: one line of Markdown a step. A report
# that is not harmless fails its launch.
#   tests/emulator/whole.sh BUILD sm_100 sm100 [SEEDS]
set -uo pipefail
build=$(cd "$1" && pwd) architecture=$2 backend=$3 seeds=${4:-50}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
export LD_LIBRARY_PATH=$build/tests/emulator/lib EMU_ARCH=$architecture EMU_STRICT=1 EMU_DEPENDENT=1 EMU_REPORT=$work/hazards
status=0

# step NAME FILTER [VARIABLE=VALUE]...
step() {
    local name=$1 filter=$2 begin=$SECONDS
    shift 2
    env "$@" "$build/tests/hgemm-device-conformance" --gtest_filter="$filter" > "$work/log" 2>&1 || {
        status=1
        grep -E "Failure|FAILED" "$work/log" >&2
    }
    local cases
    cases=$(awk '/cases [0-9]+,/ { for (i = 1; i < NF; ++i) if ($i == "cases") sum += $(i + 1) } END { print sum + 0 }' \
        "$work/log")
    local passed
    passed=$(sed -n 's/.*PASSED  \] \([0-9]*\) test.*/\1/p' "$work/log")
    local failed
    failed=$(sed -n 's/^ *\([0-9]*\) FAILED TEST.*/\1/p' "$work/log")
    printf '| %s | %s | %s | %s | %s |\n' "$name" "${passed:-0}" "${failed:-0}" "$cases" "$((SECONDS - begin))"
}

all="DeviceConformance.holds/${backend}_*"
some="DeviceKernels.each_one_forced:${all%\*}long_sums:${all%\*}random_data:${all%\*}batches"
echo "| step | tests passed | failed | products | s |"
echo "| --- | --: | --: | --: | --: |"
step "the suite" "$all:-*freivalds"
step "large products, fast arithmetic" "${all}freivalds" HGEMM_TEST_THINNING=2 EMU_ARITHMETIC=fast
step "each row, one in 20 cases" DeviceKernels.each_one_forced HGEMM_TEST_THINNING=4
step "each kernel, 2 SMs" DeviceKernels.each_one_forced EMU_SM_COUNT=2 HGEMM_TEST_THINNING=16
step "each split, 8 SMs" DeviceKernels.each_split_forced EMU_SM_COUNT=8 HGEMM_TEST_THINNING=16
step "rows agree bit for bit" DeviceKernels.agree_bit_for_bit
step "numbers of tiles" DeviceKernels.numbers_of_tiles
for seed in $(seq "$seeds"); do
    step "order $seed" "$some" EMU_SEED="$seed" HGEMM_TEST_THINNING=150
done > "$work/orders"
awk -F'|' -v seeds="$seeds" '{ passed += $3; failed += $4; cases += $5; s += $6 }
    END { printf "| %d orders, each row | %d | %d | %d | %d |\n", seeds, passed, failed, cases, s }' "$work/orders"
touch "$work/hazards"
printf '\n%s lines of hazards reported.\n' "$(wc -l < "$work/hazards")"
exit $status
