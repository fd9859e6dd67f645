#!/usr/bin/env bash
# Compares the binary interface of a library that has debug information with the baseline, by libabigail.
# usage: check.sh compare|notices|update <library> <folder of the public headers> <baseline>
#   compare  fails on any difference but new functions
#   update   writes the baseline
#   notices  fails unless `compare` would fail on each of three changes
set -euo pipefail
mode=$1 library=$2 headers=$3 baseline=$4

# compare_with <baseline>: a symbol, type, member, enumerator or parameter that was there must be the same.
compare_with() {
    abidiff --no-added-syms --no-show-locs --no-corpus-path "$1" "$library"
}

case $mode in
compare)
    compare_with "$baseline" || {
        echo "The ABI differs from $(basename "$baseline"). If that is meant, build the target abi-update"
        exit 1
    }
    ;;
update)
    abidw --exported-interfaces-only --no-elf-needed --no-corpus-path --no-comp-dir-path --no-show-locs \
        --drop-private-types --headers-dir "$headers" --out-file "$baseline" "$library"
    sed -i "s|path='[^']*/src/|path='src/|" "$baseline"  # wherever this checkout lies
    ;;
notices)
    changed=$(mktemp)
    trap 'rm -f "$changed"' EXIT
    for change in \
        "s/name='HGEMM_ROW_MAJOR' value='101'/name='HGEMM_ROW_MAJOR' value='102'/" \
        "s/elf-symbol name='hgemv_t'/elf-symbol name='hgemv_u'/" \
        "s/layout-offset-in-bits='640'/layout-offset-in-bits='704'/"; do
        sed "$change" "$baseline" >"$changed"
        if cmp -s "$changed" "$baseline"; then echo "nothing was changed by $change"; exit 1; fi
        answer=0
        compare_with "$changed" || answer=$?
        # 4: changed, 12: incompatibly so; any other number: abidiff itself failed.
        if ((answer != 4 && answer != 12)); then echo "answer $answer to $change"; exit 1; fi
    done
    ;;
*)
    echo "unknown mode $mode" >&2
    exit 2
    ;;
esac
