// What the processor can do beyond what the library is compiled for.
#pragma once

namespace hg {

#if defined(__x86_64__)
bool cpu_has_avx2_fma_f16c();
bool cpu_has_avx512();  // F, BW and VL
bool cpu_has_avx512_bf16();
// Asks the system, which then keeps eight more kilobytes for each thread that uses them, and wants signal
// stacks that have room for these.
bool cpu_may_use_amx_bf16();
#endif

}  // namespace hg
