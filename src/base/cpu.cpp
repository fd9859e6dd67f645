#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#include <cpuid.h>

namespace hg {
namespace {

// Not every compiler's __builtin_cpu_supports() knows F16C. AVX2 tells that the system keeps the registers.
bool look_for_avx2_fma_f16c()
{
    __builtin_cpu_init();
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

}  // namespace

bool cpu_has_avx2_fma_f16c()
{
    // Asked once: in a virtual machine each time takes a microsecond.
    static const bool found = look_for_avx2_fma_f16c();
    return found;
}

bool cpu_has_avx512()
{
    return cpu_has_avx2_fma_f16c() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

bool cpu_has_avx512_bf16() { return cpu_has_avx512() && __builtin_cpu_supports("avx512bf16"); }

}  // namespace hg
#endif
