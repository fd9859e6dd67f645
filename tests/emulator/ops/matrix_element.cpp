#include "ops/matrix_element.hpp"

#include <cstring>

namespace emu {

namespace {

constexpr FormatId no_format = FormatId::F32;

struct NamedElement {
    std::string_view name;
    MatrixElement element;
};
constexpr NamedElement elements[] = {
    {"f16", {ElementKind::Float, 16, 0, 16, true, FormatId::F16}},
    {"bf16", {ElementKind::Float, 16, 0, 16, true, FormatId::Bf16}},
    {"tf32", {ElementKind::Float, 32, 13, 19, true, FormatId::Tf32}},
    {"e4m3", {ElementKind::Float, 8, 0, 8, true, FormatId::E4m3}},
    {"e5m2", {ElementKind::Float, 8, 0, 8, true, FormatId::E5m2}},
    {"e3m2", {ElementKind::Float, 8, 0, 6, true, FormatId::E3m2}},
    {"e2m3", {ElementKind::Float, 8, 0, 6, true, FormatId::E2m3}},
    {"e2m1", {ElementKind::Float, 8, 2, 4, true, FormatId::E2m1}},
    {"s8", {ElementKind::Integer, 8, 0, 8, true, no_format}},
    {"u8", {ElementKind::Integer, 8, 0, 8, false, no_format}},
    {"s4", {ElementKind::Integer, 4, 0, 4, true, no_format}},
    {"u4", {ElementKind::Integer, 4, 0, 4, false, no_format}},
    {"b1", {ElementKind::Bit, 1, 0, 1, false, no_format}},
    {"f64", {ElementKind::Double, 64, 0, 64, true, FormatId::F64}},
};

}  // namespace

bool parse_matrix_element(std::string_view name, bool packed, MatrixElement& element)
{
    for (const NamedElement& known : elements)
        if (known.name == name) {
            element = known.element;
            if (packed && element.width == 4)
                element.bits = 4, element.place = 0;
            return true;
        }
    return false;
}

void unpack(const MatrixElement& element, const uint8_t* from, int count, uint32_t* to)
{
    const int step = element.dense ? element.width : element.bits;
    const int place = element.dense ? 0 : element.place;
    if (element.width == 16 && step == 16 && place == 0) {
        for (int i = 0; i < count; i++) {
            uint16_t value;
            std::memcpy(&value, from + 2 * i, sizeof value);
            to[i] = value;
        }
        return;
    }
    for (int i = 0; i < count; i++) {
        const int bit = i * step + place;
        uint32_t value = 0;
        std::memcpy(&value, from + bit / 8, (bit % 8 + element.width + 7) / 8);
        to[i] = value >> bit % 8 & element.mask();
    }
}

void multiply_accumulate(const Config& config, MatrixUnit unit, const ElementProduct& p, const uint32_t* a,
                         const uint32_t* b, uint32_t* d)
{
    if (p.a.kind == ElementKind::Float) {
        const MatrixShape shape{p.m, p.n, p.k, p.a.format, p.b.format, p.half_result};
        multiply_accumulate(tensor_core(config, unit, p.a.format), shape, a, b, d);
    } else {
        const IntegerShape shape{p.m, p.n, p.k, p.a.integer(), p.b.integer(), p.saturate, p.combine};
        multiply_accumulate(shape, a, b, d);
    }
}

void negate(const MatrixElement& element, uint32_t* codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        codes[i] ^= 1u << (element.width - 1);
}

}  // namespace emu
