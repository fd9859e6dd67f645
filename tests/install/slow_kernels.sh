#!/usr/bin/env bash
# Slow code of a kernel fails the build: arch/compile.sh by itself, and as CMake calls it, with compilers that say what
# the real ones have said.
# usage: slow_kernels.sh <source folder> <nvcc, if it is there>
set -euo pipefail
source=$1 nvcc=${2-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A compiler that says what is in the file `says`, and makes an output with what is in `makes`. To CMake, which asks
# where the toolkit lies, it answers as the real one.
cat >"$work/nvcc" <<END
#!/bin/sh
case \$1 in
--version) echo "Cuda compilation tools, release 99.1, V99.1.2"; exit ;;
-v) exec "$nvcc" "\$@" ;;
esac
while [ "\$1" != -o ]; do shift; done
cat "$work/makes" >"\$2"
cat "$work/says" >&2
END
chmod +x "$work/nvcc"
clean="ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'some_kernel' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 16 barriers, 1040 bytes smem"

# answers <works|fails> <extended regular expression of the output> <command>...
answers() {
    local wanted=$1 text=$2 outcome=works said
    shift 2
    "$@" >"$work/log" 2>&1 || outcome=fails
    said=$(tr -s '\n ' ' ' <"$work/log")
    if [ "$outcome" != "$wanted" ] || ! [[ $said =~ $text ]]; then
        cat "$work/log" >&2
        echo "$*: $outcome; wanted: $wanted, with: $text" >&2
        exit 1
    fi
}

# compiles <works|fails> <regular expression> <slow kernels are allowed> <output> <what the compiler says>
compiles() {
    echo "$5" >"$work/says"
    answers "$1" "$2" sh "$source/arch/compile.sh" "$work/ptxas.log" "$3" "$work/$4" "$work/nvcc" -fatbin some.cu
    if [ "$1" = fails ] && [ -e "$work/$4" ]; then
        echo "$4 is there after a build that failed" >&2
        exit 1
    fi
    rm -f "$work/$4"
}

echo "an image" >"$work/makes"
compiles works "^$" 0 image.fatbin "$clean"
compiles works "^some.cu\(1\): warning .*unused" 0 image.fatbin "some.cu(1): warning #177-D: unused
$clean"
advice='arch/NVCC.md.*-DHGEMM_ALLOW_SLOW_KERNELS=ON'
for bytes in 8 100; do
    compiles fails "^CUDA 99.1.*: image.fatbin some_kernel: $bytes bytes stack frame.* 1 such lines.*$advice" 0 \
        image.fatbin "${clean/0 bytes stack/$bytes bytes stack}"
    compiles fails "some_kernel: 0 bytes stack frame, $bytes bytes spill stores" 0 image.fatbin \
        "${clean/0 bytes spill stores/$bytes bytes spill stores}"
    compiles fails "image.fatbin $bytes bytes gmem 1 such" 0 image.fatbin "${clean/0 bytes gmem/$bytes bytes gmem}"
done
serialized="ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to \
non wgmma instructions defining accumulator registers in function 'some_kernel'"
compiles fails "image.fatbin \(C7514\) Potential.*'some_kernel' 1 such" 0 image.fatbin "$serialized
$clean"
compiles works "^CUDA 99.1.*slow code.*C7514.*1 such lines" 1 image.fatbin "$serialized
$clean"
echo ".visible .entry some_kernel(.param .b64 pointer) { ld.global.b32 %r1, [%rd1]; }" >"$work/makes"
compiles works "^$" 0 kernels.ptx ""
echo ".weak .global .align 4 .b8 _ZTAXtl6ConfigLi32ELi40EEE[8] = {32, 0, 0, 0, 40};" >>"$work/makes"
compiles fails "kernels.ptx .weak .global .align 4 .b8 _ZTAX" 0 kernels.ptx ""

[ -n "$nvcc" ] || exit 0

# The same by the real one: few registers, and an object in global memory.
cat >"$work/real.cu" <<'END'
#ifdef OBJECT
__device__ int object = 1;
#else
constexpr int object = 1;
#endif
extern "C" __global__ void real_kernel(float* d)
{
    float v[32];
    for (int i = 0; i < 32; ++i)
        v[i] = d[i * 32 + threadIdx.x] * object;
    __syncthreads();
    for (int i = 0; i < 32; ++i)
        d[i * 32 + (threadIdx.x ^ i)] = v[i];
}
END
really() {
    answers "$1" "$2" sh "$source/arch/compile.sh" "$work/ptxas.log" 0 "$work/real.fatbin" "$nvcc" -O3 -Xptxas -v \
        -arch=sm_80 -fatbin "${@:3}" "$work/real.cu"
}
really works "^$"
really fails "real_kernel: .*[1-9][0-9]* bytes spill stores.*$advice" -maxrregcount=24
really fails "real.fatbin 4 bytes gmem.* 1 such" -DOBJECT
really fails "error: " -Dobject=1

# By CMake.
configure=(cmake -S "$source" -B "$work/build" -DHGEMM_TESTS=OFF -DHGEMM_BINDINGS=OFF -DHGEMM_CUDA=ON
    "-DHGEMM_ARCHS=80;90" -DCUDAToolkit_NVCC_EXECUTABLE="$work/nvcc")
build=(cmake --build "$work/build" --target hgemm_images)
echo "an image" >"$work/makes"
echo "${clean/0 bytes spill stores/100 bytes spill stores}" >"$work/says"
answers works "CUDA 99.1" "${configure[@]}"
answers fails "some_kernel: .*100 bytes spill stores.*$advice" "${build[@]}"
answers works "CUDA 99.1" "${configure[@]}" -DHGEMM_ALLOW_SLOW_KERNELS=ON
answers works "sm90_f16_persistent.fatbin some_kernel: .*100 bytes spill stores" "${build[@]}"
