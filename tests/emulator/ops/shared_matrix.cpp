#include "ops/shared_matrix.hpp"

#include <algorithm>
#include <cstring>

namespace emu {

namespace {

constexpr uint32_t address_mask = (1 << 18) - 1;

// The offset of 16 bytes from the start, before swizzling. K-major: row, and byte along k.
uint32_t row_offset(const SharedMatrix& matrix, uint32_t row, uint32_t byte)
{
    if (matrix.span == 0)
        return row % 8 * 16 + row / 8 * matrix.stride + byte / 16 * matrix.leading;
    return row % 8 * matrix.span + row / 8 * matrix.stride + byte;
}

// MN-major: byte along the rows, and k.
uint32_t column_offset(const SharedMatrix& matrix, uint32_t byte, uint32_t k)
{
    if (matrix.span == 0)
        return k % 8 * 16 + k / 8 * matrix.leading + byte / 16 * matrix.stride;
    const uint32_t together = matrix.atom == 32 ? 4 : 8;  // along k
    return k % together * matrix.span + k / together * matrix.stride + byte / matrix.span * matrix.leading +
           byte % matrix.span;
}

uint32_t swizzled_offset(const SharedMatrix& matrix, uint32_t offset)
{
    const uint32_t address = (matrix.start + offset) & address_mask;
    if (!matrix.span)
        return address;
    const uint32_t phase = ((address >> 7) - matrix.base_offset) & (matrix.span / matrix.atom - 1);
    return address ^ phase * matrix.atom;
}

const uint8_t* read_chunk(Exec& x, Cta& cta, uint32_t address, std::span<const Actor> readers)
{
    if (address < shared_base || address - shared_base + 16 > cta.shared.size())
        x.fault("out-of-bounds", "a matrix descriptor leads to shared address " + std::to_string(address));
    const uint32_t offset = address - shared_base;
    for (const Actor& reader : readers)
        x.machine.checker.access(&x, cta, offset, 16, Access::Read, reader);
    return cta.shared.data() + offset;
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
    case 1: matrix.span = 128, matrix.atom = 32; break;
    default: error = "bits 61-63: no such swizzle mode";
    }
    return matrix;
}

void fetch(Exec& x, Cta& cta, const SharedMatrix& matrix, const MatrixElement& element, int rows, int k,
           std::span<const Actor> readers, uint32_t* out)
{
    const int chunk = 128 / element.bits;
    if (!matrix.mn_major) {
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < k; column += chunk) {
                const uint32_t offset = row_offset(matrix, row, column / chunk * 16);
                unpack(element, read_chunk(x, cta, swizzled_offset(matrix, offset), readers), chunk,
                       out + row * k + column);
            }
        return;
    }
    uint32_t codes[128];
    for (int row = 0; row < rows; row += chunk)
        for (int column = 0; column < k; column++) {
            const uint32_t offset = column_offset(matrix, row / chunk * 16, column);
            unpack(element, read_chunk(x, cta, swizzled_offset(matrix, offset), readers), chunk, codes);
            for (int i = 0; i < std::min(chunk, rows - row); i++)
                out[(row + i) * k + column] = codes[i];
        }
}

void fetch_bytes(Exec& x, Cta& cta, const SharedMatrix& matrix, int rows, int bytes, const Actor& actor,
                 uint8_t* out)
{
    for (int row = 0; row < rows; row++)
        for (int byte = 0; byte < bytes; byte += 16)
            std::memcpy(
                out + row * bytes + byte,
                read_chunk(x, cta, swizzled_offset(matrix, row_offset(matrix, row, byte)), {&actor, 1}),
                16);
}

}  // namespace emu
