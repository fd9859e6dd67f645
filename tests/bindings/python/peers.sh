#!/usr/bin/env bash
# Installs what requirements.txt names (PyTorch, JAX, ...) in a virtual environment, which later runs use again.
# HGEMM_TEST_PEERS=off does not; without it the tests use what the system has, and where this fails too. With
# HGEMM_TEST_PEERS=required, and where CI=true, a failure is an error.
# usage: peers.sh <python> <folder of the environment>
set -euo pipefail
python=$1 venv=$2
here=$(dirname "${BASH_SOURCE[0]}")
[ "${CI-}" = true ] && wanted=required || wanted=auto
wanted=${HGEMM_TEST_PEERS:-$wanted}
case $wanted in
    off) printf 'peers: Skipped\nHGEMM_TEST_PEERS=off: PyTorch and JAX are those of the system, if it has them\n'; exit 77 ;;
    auto | required) ;;
    *) echo "HGEMM_TEST_PEERS is '$wanted', must be auto, off or required"; exit 1 ;;
esac
# An environment that is there but incomplete is none.
skip() {
    rm -rf "$venv"
    [ "$wanted" = auto ] || { echo "$1; HGEMM_TEST_PEERS=$wanted"; exit 1; }
    printf 'peers: Skipped\n%s: PyTorch and JAX are not installed\n' "$1"
    exit 77
}

state=$("$python" -VV; cat "$here/requirements.txt" "$here/cuda_stand_ins.py")
if [ "$state" = "$(cat "$venv/installed" 2>/dev/null)" ]; then
    echo "used again: $venv"
    exit 0
fi
"$python" -c 'import ensurepip, venv' 2>/dev/null || skip "$python has no venv with pip (Debian: python3-venv)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "requirements.txt needs Python 3.11"
rm -rf "$venv"
"$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check --no-input)
# Of 12,000 modules the tests import a third, each of which Python compiles when it is first imported.
unset PYTHONDONTWRITEBYTECODE
if ! "${pip[@]}" install --no-deps --no-compile --only-binary :all: --progress-bar off -r "$here/requirements.txt"; then
    # Reached but lacking what is named there is no reason to skip.
    "${pip[@]}" download --no-deps -d "$venv/reached" expecttest >/dev/null 2>&1 || skip "PyPI cannot be reached"
    exit 1
fi
"$venv/bin/python" "$here/cuda_stand_ins.py" "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
"$venv/bin/python" -c 'import jax, numpy, torch, transformers, triton'
echo "$state" >"$venv/installed"
du -sm "$venv" | sed 's/\t.*/ MB installed/'
