#include "arch/host/rows/kernels.hpp"

namespace hg {

extern const RowsKernels rows_plain;
#if defined(__x86_64__)
extern const RowsKernels rows_avx2, rows_avx512;
#elif defined(__aarch64__)
extern const RowsKernels rows_neon;
#endif

std::span<const RowsKernels* const> rows_kernels()
{
    static constexpr const RowsKernels* all[] = {
#if defined(__x86_64__)
        &rows_avx512,
        &rows_avx2,
#elif defined(__aarch64__)
        &rows_neon,
#endif
        &rows_plain,
    };
    return all;
}

const RowsKernels& best_rows_kernels()
{
    for (const RowsKernels* kernels : rows_kernels())
        if (kernels->runs_here())
            return *kernels;
    return rows_plain;
}

}  // namespace hg
