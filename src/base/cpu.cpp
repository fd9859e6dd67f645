#include "src/base/cpu.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

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

bool cpu_may_use_amx_bf16()
{
    constexpr unsigned amx_bf16 = 1u << 22,
                       amx_tile = 1u << 24;  // EDX of leaf 7; not all compilers name them
    constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM; the state's number
    unsigned a = 0, b = 0, c = 0, d = 0;
    return cpu_has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & amx_bf16) &&
           (d & amx_tile) && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace hg
#endif
