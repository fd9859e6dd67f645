#include "ops/shared_matrix.hpp"

namespace emu {

namespace {

constexpr uint32_t address_mask = (1 << 18) - 1;

// The offset of a chunk from the start, before swizzling.
uint32_t chunk_offset(const SharedMatrix& matrix, uint32_t row, uint32_t k)
{
    if (!matrix.mn_major && matrix.span == 0)
        return row % 8 * 16 + row / 8 * matrix.stride + k / 8 * matrix.leading;
    if (!matrix.mn_major)
        return row % 8 * matrix.span + row / 8 * matrix.stride + k * 2;
    if (matrix.span == 0)
        return k % 8 * 16 + k / 8 * matrix.leading + row / 8 * matrix.stride;
    const uint32_t elements = matrix.span / 2;
    return k % 8 * matrix.span + k / 8 * matrix.stride + row / elements * matrix.leading +
           row % elements * 2;
}

}  // namespace

SharedMatrix tcgen05_matrix(uint64_t descriptor, bool mn_major, std::string& error)
{
    const auto field = [descriptor](int from, int bits) {
        return static_cast<uint32_t>(descriptor >> from & ((uint64_t{1} << bits) - 1));
    };
    SharedMatrix matrix;
    matrix.start = field(0, 14) << 4;
    matrix.leading = field(16, 14) << 4;
    matrix.stride = field(32, 14) << 4;
    matrix.base_offset = field(49, 3);
    matrix.mn_major = mn_major;
    if (field(46, 3) != 1)
        error = "bits 46-48 must be 0b001";
    else if (field(52, 1) != 0)
        error = "bit 52: absolute leading addresses are for K of 48 bytes alone";
    else if (field(53, 8) != 0)
        error = "bits 53-60 must be zero";
    switch (field(61, 3)) {
    case 0: matrix.span = 0; break;
    case 2: matrix.span = 128; break;
    case 4: matrix.span = 64; break;
    case 6: matrix.span = 32; break;
    case 1: error = "swizzle mode 1 (128 bytes, 32-byte atoms) is not for 16-bit elements"; break;
    default: error = "bits 61-63: no such swizzle mode";
    }
    return matrix;
}

uint32_t chunk_address(const SharedMatrix& matrix, uint32_t row, uint32_t k)
{
    uint32_t address = (matrix.start + chunk_offset(matrix, row, k)) & address_mask;
    if (matrix.span) {
        const uint32_t phase = ((address >> 7) - matrix.base_offset) & (matrix.span / 16 - 1);
        address ^= phase << 4;
    }
    return address;
}

void fetch(Exec& x, Cta& cta, const SharedMatrix& matrix, int rows, int k, const Actor& actor,
           uint16_t* out)
{
    const int row_step = matrix.mn_major ? 8 : 1, k_step = matrix.mn_major ? 1 : 8;
    for (int row = 0; row < rows; row += row_step)
        for (int column = 0; column < k; column += k_step) {
            const uint32_t address = chunk_address(matrix, row, column);
            if (address < shared_base || address - shared_base + 16 > cta.shared.size())
                x.fault("out-of-bounds", "a matrix descriptor leads to shared address " +
                                             std::to_string(address) + ", row " + std::to_string(row) +
                                             ", k " + std::to_string(column));
            const uint32_t offset = address - shared_base;
            x.machine.checker.access(&x, cta, offset, 16, Access::Read, actor);
            uint16_t elements[8];
            std::memcpy(elements, cta.shared.data() + offset, sizeof elements);
            for (int i = 0; i < 8; ++i)
                out[matrix.mn_major ? (row + i) * k + column : row * k + column + i] = elements[i];
        }
}

}  // namespace emu
