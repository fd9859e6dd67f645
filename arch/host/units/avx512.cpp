// The loops of the host's own kernels for AVX-512 with its extensions BW and VL.
#include "arch/host/packed/kernels.hpp"
#include "arch/host/rows/kernels.hpp"
#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#define HGEMM_UNIT [[gnu::target("avx512f,avx512bw,avx512vl,avx2,fma,f16c")]]
#include "arch/host/units/avx512.inl"

namespace hg {
namespace {

#include "arch/host/packed/loops.inl"
#include "arch/host/rows/loops.inl"

}  // namespace

extern const RowsKernels rows_avx512;
const RowsKernels rows_avx512 = {"avx512",          cpu_has_avx512,      along_k<Half>,
                                 along_k<Bfloat16>, along_columns<Half>, along_columns<Bfloat16>};

extern const PackedKernels packed_avx512;
const PackedKernels packed_avx512 = widened_kernels("avx512", cpu_has_avx512, true);

}  // namespace hg
#endif
