// A matrix in shared memory as the descriptors of wgmma and tcgen05 give it: rows along M or N, columns
// along K.
#pragma once

#include "core/state.hpp"
#include "ops/matrix_element.hpp"

#include <span>
#include <string>

namespace emu {

struct SharedMatrix {
    uint32_t start = 0;                // address of the first element, 18 bits
    uint32_t leading = 0, stride = 0;  // bytes
    uint32_t span = 0;                 // of the swizzle in bytes: 0 (none), 32, 64 or 128
    uint32_t base_offset = 0;          // how far the swizzle's pattern is off its alignment, in 128 bytes
    uint32_t atom = 16;                // bytes that the swizzle keeps together: 16 or 32
    bool mn_major = false;             // rows are contiguous, not columns
};

// Descriptor of tcgen05; `error` says what is wrong with it. For copies and for K-major and MN-major
// operands.
SharedMatrix tcgen05_matrix(uint64_t descriptor, bool mn_major, std::string& error);

// Read `rows` x `k` elements (multiples of what 16 bytes hold) through the async proxy, row by row. All
// readers are noted at each 16 bytes in turn: what the checker knows of these is then in the cache.
void fetch(Exec& x, Cta& cta, const SharedMatrix& matrix, const MatrixElement& element, int rows, int k,
           std::span<const Actor> readers, uint32_t* out);
// The same for rows of bytes, K-major.
void fetch_bytes(Exec& x, Cta& cta, const SharedMatrix& matrix, int rows, int bytes, const Actor& actor,
                 uint8_t* out);

}  // namespace emu
