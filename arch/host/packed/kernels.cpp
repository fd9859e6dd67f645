#include "arch/host/packed/kernels.hpp"

namespace hg {

extern const PackedKernels packed_plain;
#if defined(__x86_64__)
extern const PackedKernels packed_avx2, packed_avx512, packed_avx512_bf16, packed_amx;
#elif defined(__aarch64__)
extern const PackedKernels packed_neon;
#endif

std::span<const PackedKernels* const> packed_kernels()
{
    static constexpr const PackedKernels* all[] = {
#if defined(__x86_64__)
        &packed_avx512_bf16,
        &packed_avx512,
        &packed_avx2,
#elif defined(__aarch64__)
        &packed_neon,
#endif
        &packed_plain,
    };
    return all;
}

const PackedKernels& best_packed_kernels(Type type)
{
    for (const PackedKernels* kernels : packed_kernels())
        if (kernels->pack(type) && kernels->runs_here())
            return *kernels;
    return packed_plain;
}

const PackedKernels* amx_kernels()
{
#if defined(__x86_64__)
    return &packed_amx;
#else
    return nullptr;
#endif
}

}  // namespace hg
