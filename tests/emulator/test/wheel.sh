#!/usr/bin/env bash
# Builds the Python package, installs it in a new virtual environment, and runs package_test.py there.
#   wheel.sh <python> <folder of the emulator> <folder to work in> <nvcc or nothing>
set -euo pipefail
python=$1 source=$2 work=$3 nvcc=${4-}
skip() { printf 'wheel: Skipped\n%s\n' "$1"; exit 77; }

"$python" -c 'import ensurepip, venv' 2>/dev/null || skip "$python has no venv with pip (Debian: python3-venv)"
rm -rf "$work/venv" "$work/dist"
"$python" -m venv "$work/venv"
pip=("$work/venv/bin/python" -m pip --quiet --disable-pip-version-check)
mapfile -t requirements < <("$work/venv/bin/python" - "$source/pyproject.toml" <<'END'
import re, sys
print("\n".join(re.findall(r'"((?:scikit-build-core|nvidia-)[^"]*)"', open(sys.argv[1]).read())))
END
)
[ ${#requirements[@]} -ge 4 ] || { echo "pyproject.toml requires ${requirements[*]}"; exit 1; }
if ! "${pip[@]}" install pytest "${requirements[@]}"; then
    "${pip[@]}" download --no-deps -d "$work/reached" scikit-build-core >/dev/null 2>&1 ||
        skip "PyPI cannot be reached, which has scikit-build-core"
    exit 1
fi

# Compiled fast rather than for speed, in a folder that is kept: what has not changed is not compiled again.
"${pip[@]}" wheel --no-deps --no-build-isolation --config-settings=build-dir="$work/build" \
    --config-settings=cmake.build-type=Debug --config-settings=cmake.define.CMAKE_UNITY_BUILD=ON -w "$work/dist" "$source"
wheel=("$work"/dist/*)
name=$(basename "${wheel[0]}")
[[ ${#wheel[@]} = 1 && $name = ptxrace-*-py3-none-linux_*.whl ]] || { echo "built: ${wheel[*]}"; exit 1; }
files=$("$python" -m zipfile -l "${wheel[0]}")
for file in ptxrace/bin/{ptxrace,ptxrun} ptxrace/lib/ptxrace/{libcuda.so.1,libcudart.so.12,libcudart.so.13} ptxrace/plugin.py \
    ptxrace/share/doc/ptxrace/{LICENSE,NOTICES,README.md,REFERENCE.md,examples/race.cu}; do
    [[ $files = *"$file "* ]] || { echo "$name lacks $file"; printf '%s\n' "$files"; exit 1; }
done
"${pip[@]}" install --no-deps "${wheel[@]}"

cd "$work"
[[ $("$work/venv/bin/ptxrace" --version) =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
[[ $("$work/venv/bin/ptxrun" --help) = *OFFSET=ITEM* ]]
[[ $("$work/venv/bin/python" -m ptxrace devices) = *sm_100* ]]
PTXRACE_EXAMPLES=$source/examples PTXRACE_NVCC=$nvcc "$work/venv/bin/python" -m pytest -q -p no:cacheprovider \
    "$source/test/package_test.py"
