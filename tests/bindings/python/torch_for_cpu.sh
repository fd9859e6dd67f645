#!/usr/bin/env bash
# Installs PyTorch in a virtual environment, to be used on the CPU or on the virtual driver. PyPI's build for x86-64 is
# bound to two gigabytes of CUDA libraries, which it does not call there: they are left out, and libraries of their
# names take their places, whose functions all fail with cudaErrorNoDevice.
# usage: torch_for_cpu.sh <virtual environment> <version>          needs a C compiler and binutils
set -euo pipefail
python=$1/bin/python version=$2
pip=("$python" -m pip --quiet --disable-pip-version-check)

"${pip[@]}" install --no-deps "torch==$version"
"${pip[@]}" install filelock fsspec jinja2 networkx sympy typing_extensions

find='from importlib.util import find_spec; print(*find_spec("torch").submodule_search_locations)'
folder=$("$python" -c "$find")/lib
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/stubs.c" <<'END'
#define CHARACTERS(name) const char *name(void) { return "there is no CUDA library here"; }
CHARACTERS(cudaGetErrorString) CHARACTERS(cudaGetErrorName) CHARACTERS(cublasGetStatusString)
CHARACTERS(cudnnGetErrorString) CHARACTERS(cusparseGetErrorString) CHARACTERS(ncclGetErrorString)
CHARACTERS(ncclGetLastError) CHARACTERS(nvrtcGetErrorString)
END
nm -D --undefined-only "$folder"/*.so | awk '{ sub("@.*", "", $2); print $2 }' | sort -u |
    grep -E '^(__cuda|cu[A-Z]|cu(blas|da|dnn|fft|pti|rand|solver|sparse)|nccl|nvrtc|nvshmem)' |
    grep -vxF "$(grep -oE '\((cu|nccl|nvrtc)[A-Za-z]+' "$work/stubs.c" | tr -d '(')" |
    sed 's/.*/int &(void) { return 100; }/' >>"$work/stubs.c"
readelf -d "$folder"/*.so | sed -n 's/.*NEEDED.*\[\(lib\(cu\|nccl\|nv\)[^]]*\)\]/\1/p' | sort -u |
    while read -r name; do
        [ "$name" = libcuda.so.1 ] && continue  # the driver is not PyTorch's
        version=$name
        [[ $name = libnvshmem_* ]] && version=NVSHMEM
        echo "$version { global: *; };" >"$work/map"
        cc -shared -fPIC -w -Wl,-soname,"$name" -Wl,--version-script="$work/map" -o "$folder/$name" "$work/stubs.c"
    done
"$python" -c 'import torch; assert not torch.cuda.is_available(); torch.ones(2, 2) @ torch.ones(2, 2)'
