// Elements of A and B of the matrix instructions.
#pragma once

#include "numerics/tensor_core.hpp"

#include <string_view>

namespace emu {

// In registers and in shared memory: an element takes `bits`, of which `width` from `place` on are its own.
struct MatrixElement {
    enum class Kind : uint8_t { Float, Integer, Bit, Double } kind = Kind::Float;
    uint8_t bits = 16, place = 0, width = 16;
    bool is_signed = false;
    FormatId format = FormatId::F16;
    bool dense = false;  // sixteen at the start of each 16 bytes, without gaps (tcgen05's fp4 and fp6)

    uint32_t mask() const { return width >= 32 ? ~0u : (1u << width) - 1; }
    IntegerType integer() const { return {width, is_signed}; }
};
using ElementKind = MatrixElement::Kind;
// "bf16", "s8", ...; fp4 stands in bytes unless packed.
bool parse_matrix_element(std::string_view name, bool packed, MatrixElement& element);

// The elements of a register, each moved into the low bits.
inline void unpack_register(const MatrixElement& element, uint32_t word, uint32_t* to)
{
    if (element.width == 16) {
        to[0] = word & 0xffff;
        to[1] = word >> 16;
        return;
    }
    for (int bit = element.place; bit < 32; bit += element.bits)
        *to++ = word >> bit & element.mask();
}
// The same for `count` elements that follow one another from `from` on.
void unpack(const MatrixElement& element, const uint8_t* from, int count, uint32_t* to);

// d = a b + d for elements of the two kinds that tensor cores multiply, as codes.
struct ElementProduct {
    int m = 0, n = 0, k = 0;
    MatrixElement a, b;
    bool half_result = false, saturate = false;
    IntegerShape::Combine combine = IntegerShape::Multiply;
};
void multiply_accumulate(const Config& config, MatrixUnit unit, const ElementProduct& product,
                         const uint32_t* a, const uint32_t* b, uint32_t* d);
// Changes the sign of floats.
void negate(const MatrixElement& element, uint32_t* codes, size_t count);

}  // namespace emu
