// Warpgroup-level MMA: PTX ISA 9.7.15.
#pragma once

#include "arch/common/types.hpp"

#include <cstdint>

namespace hg::ptx {

// wgmma.fence.sync.aligned;   sm_90a
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// wgmma.commit_group.sync.aligned;   sm_90a
__device__ inline void wgmma_commit_group()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group.sync.aligned n;   sm_90a
template <int N>
__device__ inline void wgmma_wait_group()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// No instruction: keeps the compiler from using a sum before the wait that precedes this.
__device__ inline void wgmma_settle(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }

// Where an operand lies in shared memory, with 128-byte swizzle (PTX ISA 9.7.15.5.1). Offsets in bytes:
// K-major:  8 rows of 128 bytes form an atom; `stride` leads to the next 8 rows, `leading` is unused.
// MN-major: 8 K's of 64 rows form an atom; `stride` leads to the next 8 K's, `leading` to the next 64 rows.
__device__ inline uint64_t wgmma_descriptor(uint32_t address, uint32_t leading, uint32_t stride)
{
    constexpr uint64_t swizzle_128 = 1;
    return (uint64_t{address} & 0x3ffff) >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
           swizzle_128 << 62;
}

// The accumulators of the first 4, 8, 16, ... columns' worth of registers: as operand text and as operands.
#define HG_TEXT_4   "%0, %1, %2, %3"
#define HG_REGS_4   "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define HG_TEXT_8   HG_TEXT_4 ", %4, %5, %6, %7"
#define HG_REGS_8   HG_REGS_4, "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define HG_TEXT_12  HG_TEXT_8 ", %8, %9, %10, %11"
#define HG_REGS_12  HG_REGS_8, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define HG_TEXT_16  HG_TEXT_12 ", %12, %13, %14, %15"
#define HG_REGS_16  HG_REGS_12, "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define HG_TEXT_20  HG_TEXT_16 ", %16, %17, %18, %19"
#define HG_REGS_20  HG_REGS_16, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define HG_TEXT_24  HG_TEXT_20 ", %20, %21, %22, %23"
#define HG_REGS_24  HG_REGS_20, "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define HG_TEXT_28  HG_TEXT_24 ", %24, %25, %26, %27"
#define HG_REGS_28  HG_REGS_24, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
#define HG_TEXT_32  HG_TEXT_28 ", %28, %29, %30, %31"
#define HG_REGS_32  HG_REGS_28, "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define HG_TEXT_36  HG_TEXT_32 ", %32, %33, %34, %35"
#define HG_REGS_36  HG_REGS_32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define HG_TEXT_40  HG_TEXT_36 ", %36, %37, %38, %39"
#define HG_REGS_40  HG_REGS_36, "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define HG_TEXT_44  HG_TEXT_40 ", %40, %41, %42, %43"
#define HG_REGS_44  HG_REGS_40, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define HG_TEXT_48  HG_TEXT_44 ", %44, %45, %46, %47"
#define HG_REGS_48  HG_REGS_44, "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define HG_TEXT_52  HG_TEXT_48 ", %48, %49, %50, %51"
#define HG_REGS_52  HG_REGS_48, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51])
#define HG_TEXT_56  HG_TEXT_52 ", %52, %53, %54, %55"
#define HG_REGS_56  HG_REGS_52, "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define HG_TEXT_60  HG_TEXT_56 ", %56, %57, %58, %59"
#define HG_REGS_60  HG_REGS_56, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59])
#define HG_TEXT_64  HG_TEXT_60 ", %60, %61, %62, %63"
#define HG_REGS_64  HG_REGS_60, "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define HG_TEXT_68  HG_TEXT_64 ", %64, %65, %66, %67"
#define HG_REGS_68  HG_REGS_64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define HG_TEXT_72  HG_TEXT_68 ", %68, %69, %70, %71"
#define HG_REGS_72  HG_REGS_68, "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define HG_TEXT_76  HG_TEXT_72 ", %72, %73, %74, %75"
#define HG_REGS_76  HG_REGS_72, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75])
#define HG_TEXT_80  HG_TEXT_76 ", %76, %77, %78, %79"
#define HG_REGS_80  HG_REGS_76, "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define HG_TEXT_84  HG_TEXT_80 ", %80, %81, %82, %83"
#define HG_REGS_84  HG_REGS_80, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define HG_TEXT_88  HG_TEXT_84 ", %84, %85, %86, %87"
#define HG_REGS_88  HG_REGS_84, "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define HG_TEXT_92  HG_TEXT_88 ", %88, %89, %90, %91"
#define HG_REGS_92  HG_REGS_88, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
#define HG_TEXT_96  HG_TEXT_92 ", %92, %93, %94, %95"
#define HG_REGS_96  HG_REGS_92, "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define HG_TEXT_100 HG_TEXT_96 ", %96, %97, %98, %99"
#define HG_REGS_100 HG_REGS_96, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99])
#define HG_TEXT_104 HG_TEXT_100 ", %100, %101, %102, %103"
#define HG_REGS_104 HG_REGS_100, "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define HG_TEXT_108 HG_TEXT_104 ", %104, %105, %106, %107"
#define HG_REGS_108 HG_REGS_104, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107])
#define HG_TEXT_112 HG_TEXT_108 ", %108, %109, %110, %111"
#define HG_REGS_112 HG_REGS_108, "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define HG_TEXT_116 HG_TEXT_112 ", %112, %113, %114, %115"
#define HG_REGS_116 HG_REGS_112, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define HG_TEXT_120 HG_TEXT_116 ", %116, %117, %118, %119"
#define HG_REGS_120 HG_REGS_116, "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define HG_TEXT_124 HG_TEXT_120 ", %120, %121, %122, %123"
#define HG_REGS_124 HG_REGS_120, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123])
#define HG_TEXT_128 HG_TEXT_124 ", %124, %125, %126, %127"
#define HG_REGS_128 HG_REGS_124, "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

// One width: its operands %A and %B are the descriptors, %P the accumulate flag, %X and %Y the majors.
#define HG_WGMMA(WIDTH, COUNT, A, B, P, X, Y, TYPES)                                                       \
    asm volatile("{\n"                                                                                     \
                 ".reg .pred p;\n"                                                                         \
                 "setp.ne.b32 p, %" #P ", 0;\n"                                                            \
                 "wgmma.mma_async.sync.aligned.m64n" #WIDTH "k16.f32." TYPES " {" HG_TEXT_##COUNT          \
                 "}, %" #A ", %" #B ", p, 1, 1, %" #X ", %" #Y ";\n"                                       \
                 "}"                                                                                       \
                 : HG_REGS_##COUNT                                                                         \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(static_cast<int>(MA)), "n"(static_cast<int>(MB)))

// wgmma.mma_async.sync.aligned.m64n<2 * COUNT>k16.f32.{f16.f16|bf16.bf16} d, a, b, p, 1, 1, MA, MB; sm_90a
#define HG_WGMMA_WIDTH(WIDTH, COUNT, A, B, P, X, Y)                                                        \
    template <Type T, Major MA, Major MB>                                                                  \
    __device__ inline void wgmma_m64k16(float(&d)[COUNT], uint64_t a, uint64_t b, int accumulate)          \
    {                                                                                                      \
        if constexpr (T == Type::F16)                                                                      \
            HG_WGMMA(WIDTH, COUNT, A, B, P, X, Y, "f16.f16");                                              \
        else                                                                                               \
            HG_WGMMA(WIDTH, COUNT, A, B, P, X, Y, "bf16.bf16");                                            \
    }

HG_WGMMA_WIDTH(8, 4, 4, 5, 6, 7, 8)
HG_WGMMA_WIDTH(16, 8, 8, 9, 10, 11, 12)
HG_WGMMA_WIDTH(24, 12, 12, 13, 14, 15, 16)
HG_WGMMA_WIDTH(32, 16, 16, 17, 18, 19, 20)
HG_WGMMA_WIDTH(48, 24, 24, 25, 26, 27, 28)
HG_WGMMA_WIDTH(64, 32, 32, 33, 34, 35, 36)
HG_WGMMA_WIDTH(80, 40, 40, 41, 42, 43, 44)
HG_WGMMA_WIDTH(96, 48, 48, 49, 50, 51, 52)
HG_WGMMA_WIDTH(112, 56, 56, 57, 58, 59, 60)
HG_WGMMA_WIDTH(128, 64, 64, 65, 66, 67, 68)
HG_WGMMA_WIDTH(144, 72, 72, 73, 74, 75, 76)
HG_WGMMA_WIDTH(160, 80, 80, 81, 82, 83, 84)
HG_WGMMA_WIDTH(168, 84, 84, 85, 86, 87, 88)
HG_WGMMA_WIDTH(176, 88, 88, 89, 90, 91, 92)
HG_WGMMA_WIDTH(192, 96, 96, 97, 98, 99, 100)
HG_WGMMA_WIDTH(208, 104, 104, 105, 106, 107, 108)
HG_WGMMA_WIDTH(224, 112, 112, 113, 114, 115, 116)
HG_WGMMA_WIDTH(240, 120, 120, 121, 122, 123, 124)
HG_WGMMA_WIDTH(256, 128, 128, 129, 130, 131, 132)

}  // namespace hg::ptx
