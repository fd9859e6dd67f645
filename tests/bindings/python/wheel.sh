#!/usr/bin/env bash
# Builds the package for the host backend alone: an editable install of the checkout, then the source distribution and
# from it the wheel, which it installs in a new virtual environment, where the tests run.
# usage: wheel.sh <python> <folder of the project> <folder to work in> <environment of peers.sh>
set -euo pipefail
python=$1 source=$2 work=$3 peers=$4
skip() { printf 'wheel: Skipped\n%s\n' "$1"; exit 77; }

"$python" -c 'import ensurepip, venv' 2>/dev/null || skip "$python has no venv with pip (Debian: python3-venv)"
rm -rf "$work/venv" "$work/dist"
# With PyTorch and JAX of peers.sh, or those that the system may have.
"$python" -m venv --system-site-packages "$work/venv"
site() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
if [ -e "$peers/installed" ]; then
    site "$peers" >"$(site "$work/venv")/peers.pth"
fi
pip=("$work/venv/bin/python" -m pip --quiet --disable-pip-version-check)
pinned=$source/tests/bindings/python/requirements.txt
if ! "${pip[@]}" install -c "$pinned" scikit-build-core numpy ml_dtypes; then
    "${pip[@]}" download --no-deps -d "$work/reached" scikit-build-core >/dev/null 2>&1 ||
        skip "PyPI cannot be reached, which has scikit-build-core"
    exit 1
fi
# Torch's samples of its operators import it; without it their test is skipped.
"${pip[@]}" install -c "$pinned" --no-deps expecttest || echo "expecttest: not installed"

# Compiled fast rather than for speed: settings <folder to build in> <optimisation>
settings() {
    options=(--no-deps --no-build-isolation --config-settings=build-dir="$1"
        --config-settings=cmake.define.CMAKE_UNITY_BUILD=ON --config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE="$2")
}

settings "$work/build/editable" -O0
HGEMM_CUDA=OFF HGEMM_TOOLS=OFF "${pip[@]}" install "${options[@]}" -e "$source/bindings/python"
(cd / && "$work/venv/bin/python" - "$source" <<'END')
import os, sys
import hgemm, numpy
assert hgemm.__file__.startswith(sys.argv[1]), hgemm.__file__
assert hgemm.library_path.startswith(sys.prefix), hgemm.library_path
assert os.path.isfile(f"{hgemm.include_path}/hgemm.h"), hgemm.include_path
assert hgemm.matmul(numpy.ones((2, 3), "float16"), numpy.ones((3, 2), "float16")).tolist() == [[3, 3], [3, 3]]
END

# With the files' times, so that what has not changed is not compiled again.
(cd "$source/bindings/python" && "$work/venv/bin/python" - "$work/dist" <<'END')
import sys
from scikit_build_core.build import build_sdist
build_sdist(sys.argv[1], {"sdist.reproducible": "false"})
END
rm -rf "$work/sdist"
mkdir -p "$work/sdist"
tar -xzf "$work"/dist/libhgemm-*.tar.gz -C "$work/sdist" --strip-components=1
rm "$work"/dist/libhgemm-*.tar.gz

settings "$work/build/wheel" -O1
HGEMM_CUDA=OFF HGEMM_TOOLS=${HGEMM_TOOLS:-ON} "${pip[@]}" wheel "${options[@]}" -w "$work/dist" "$work/sdist"
wheel=("$work"/dist/*)
"${pip[@]}" install --no-deps --force-reinstall "${wheel[@]}"

name=$(basename "${wheel[0]}")
[[ ${#wheel[@]} = 1 && $name = libhgemm-*-py3-none-linux_*.whl ]] || { echo "built: ${wheel[*]}"; exit 1; }
size=$(stat -c %s "${wheel[0]}")
[ "$size" -le $((12 << 20)) ] || { echo "$name has $size bytes, at most 12 MB are allowed"; exit 1; }
files=$("$python" -m zipfile -l "${wheel[0]}")
for file in hgemm/lib/libhgemm{.so.1,_logger.so,_torch.so,_xla.so} hgemm/include/hgemm.h hgemm/py.typed dist-info/licenses/LICENSE; do
    [[ $files = *"$file "* ]] || { echo "$name lacks $file"; exit 1; }
done
if grep -E '\.(so|so\.1\..*|pyc) ' <<<"$files" | grep -v -E '^hgemm/lib/libhgemm_(logger|torch|xla)\.so '; then
    echo "$name has what it should not have"
    exit 1
fi
if [ "${HGEMM_TOOLS:-ON}" = ON ]; then
    for file in hgemm/bin/hgemm-bench dist-info/licenses/NOTICES; do
        [[ $files = *"$file "* ]] || { echo "$name lacks $file"; exit 1; }
    done
    (cd / && "$work/venv/bin/python" -m hgemm bench --version)
fi
echo "$name: $size bytes"
