// Exchanges between streams and GPUs: configuration and parameters. Host and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/types.hpp"

#include <cstdint>

namespace hg {

constexpr int exchange_threads = 512;
// Pointers of each kind: parts of a sum, places that it is stored to, flags.
constexpr int max_exchanged = 64;
constexpr int log2_max_exchanged = 6;

// hgemm_flag_t. `arrived` and `stored` count the CTAs of a kernel that have seen all flags, and that have
// stored their sums. They are 0 between kernels.
struct Flag {
    uint32_t raised, taken, arrived, stored;
};

// Element (i, j) of part r lies at parts[r] + i * ld_part + j, in elements, and is stored to (i, j) of each
// of d.
struct ExchangeParams {
    const void* parts[max_exchanged];
    const void* bias;  // of the columns; null: none
    void* d[max_exchanged];
    Flag* raise[max_exchanged];        // before all else
    Flag* wait[max_exchanged];         // before the parts are read
    Flag* raise_after[max_exchanged];  // when all sums are stored
    Flag* counters;     // where CTAs are counted; null: nothing is waited for or raised after
    uint32_t* error;    // not 0: nothing is stored or raised any more. Null: there is no limit
    uint64_t limit_ns;  // how long a wait lasts at most; 0: for ever
    int64_t ld_part, ldd;
    Divisor units_of_row;
    int32_t units;
    int32_t width;  // elements of a unit: 4 or 8, the 16 bytes of a part, or 1
    int32_t part_count, d_count, raise_count, wait_count, raise_after_count;
    uint32_t error_code;
    Type type_part, type_d, type_bias;
    bool pairwise;  // parts are added as a tree's are, else one after the other
};

}  // namespace hg
