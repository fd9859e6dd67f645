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
const PackedKernels packed_avx512 = {.name = "avx512",
                                     .runs_here = cpu_has_avx512,
                                     .leads = true,
                                     .per_word = 1,
                                     .tile_rows = tile_rows,
                                     .tile_columns = tile_vectors * lanes,
                                     .row_ld = row_ld,
                                     .pack_f16 = pack<Widened<Half>>,
                                     .pack_bf16 = pack<Widened<Bfloat16>>,
                                     .tiles = tiles_of<MultiplyAdd>.data(),
                                     .exact_tiles = tiles_of<MultiplyAdd>.data(),
                                     .least_exponents = 0};

}  // namespace hg
#endif
