#!/usr/bin/env bash
# Does the loader look in fixed places alone for what the built libraries and programs need? An empty element
# of a RUNPATH, and one that does not begin with / or $ORIGIN, means the current directory of whoever runs them.
# usage: runpath.sh <build folder> <file that must be among them>...
set -euo pipefail
build=$1
shift

# A build folder in this one is another build's, and what a virtual environment holds was built elsewhere.
mapfile -t files < <(find "$build" -mindepth 1 \( -name CMakeFiles -o -type d \( -exec test -e '{}/CMakeCache.txt' \; \
    -o -exec test -e '{}/pyvenv.cfg' \; \) \) -prune -o -type f \( -perm -u+x -o -name '*.so*' \) -print)
checked=() wrong=0
for file in "${files[@]}"; do
    dynamic=$(readelf --dynamic --wide "$file" 2>/dev/null) || continue
    checked+=("$file")
    path=$(sed -nE 's/.*\((RUNPATH|RPATH)\).*\[(.*)\]$/\2/p' <<<"$dynamic")
    # A line an element; the colon at the end makes a last empty one visible.
    while [ -n "$path" ] && IFS= read -r -d : element; do
        case $element in
        /* | '$ORIGIN' | '$ORIGIN/'*) ;;
        *)
            echo "$file: '$element' in RUNPATH $path"
            wrong=1
            ;;
        esac
    done <<<"$path:"
done
list=$(printf '%s\n' "${checked[@]}")
for wanted in "$@"; do
    # Not from a pipe: grep ends at the first line that it finds, and whoever still writes then fails.
    grep -qxF "$(realpath "$wanted")" <<<"$list" || { echo "$wanted was not found"; wrong=1; }
done
echo "${#checked[@]} files"
exit $wrong
