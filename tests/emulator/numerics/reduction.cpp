#include "numerics/reduction.hpp"

#include "numerics/tensor_core.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

namespace emu {

namespace {

constexpr std::string_view reduction_names[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
constexpr std::string_view element_names[] = {"b32", "u32", "s32",  "b64", "u64",
                                              "s64", "f16", "bf16", "f32", "f64"};

template <typename T>
T reduce_integer(Reduction reduction, T old, T value)
{
    using U = std::make_unsigned_t<T>;
    switch (reduction) {
    case Reduction::Add: return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
    case Reduction::Min: return old < value ? old : value;
    case Reduction::Max: return old > value ? old : value;
    case Reduction::Inc: return static_cast<U>(old) >= static_cast<U>(value) ? 0 : old + 1;
    case Reduction::Dec: return old == 0 || static_cast<U>(old) > static_cast<U>(value) ? value : old - 1;
    case Reduction::And: return old & value;
    case Reduction::Or: return old | value;
    case Reduction::Xor: return old ^ value;
    case Reduction::None: break;
    }
    return value;
}

// Minimum and maximum ignore a NaN if they can, and know that -0 is below +0.
template <typename T>
T reduce_float(Reduction reduction, T old, T value)
{
    if (reduction == Reduction::Add)
        return old + value;
    if (std::isnan(old) || std::isnan(value))
        return std::isnan(old) ? value : old;
    bool below = old < value || (old == value && std::signbit(old));
    return below == (reduction == Reduction::Min) ? old : value;
}

uint16_t float_to_bf16(float value)
{
    auto bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value))
        return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Units at memory make the one NaN of their format for f32, and hand that of an operand on as it is for
// f64.
float add_at_memory(float old, float value)
{
    const float sum = old + value;
    return std::isnan(sum) ? std::bit_cast<float>(0x7fffffffu) : sum;
}

double add_at_memory(double old, double value)
{
    if (std::isnan(old) || std::isnan(value))
        return std::isnan(old) ? old : value;
    return old + value;
}

// The sum of two in fp32 is exact enough for a second rounding to do no harm.
uint16_t reduce_half(Reduction reduction, FormatId type, uint16_t old, uint16_t value)
{
    float result = reduce_float(reduction, half_to_float(old, type), half_to_float(value, type));
    return type == FormatId::F16 ? double_to_f16(result) : float_to_bf16(result);
}

template <typename T, typename Apply>
void each(void* to, const void* from, size_t count, Apply apply)
{
    for (size_t i = 0; i < count; i++) {
        T old, value;
        auto* place = static_cast<uint8_t*>(to) + i * sizeof(T);
        std::memcpy(&old, place, sizeof(T));
        std::memcpy(&value, static_cast<const uint8_t*>(from) + i * sizeof(T), sizeof(T));
        old = apply(old, value);
        std::memcpy(place, &old, sizeof(T));
    }
}

template <typename T>
bool find_name(const auto& names, std::string_view name, T& found)
{
    for (size_t i = 0; i < std::size(names); i++) {
        if (names[i] == name && !name.empty()) {
            found = static_cast<T>(i);
            return true;
        }
    }
    return false;
}

}  // namespace

bool parse_reduction(std::string_view name, Reduction& reduction)
{
    return find_name(reduction_names, name, reduction);
}

bool parse_element(std::string_view name, Element& element)
{
    return find_name(element_names, name, element);
}

size_t bytes_of(Element element)
{
    constexpr uint8_t bytes[] = {4, 4, 4, 8, 8, 8, 2, 2, 4, 8};
    return bytes[static_cast<size_t>(element)];
}

bool may_reduce(Reduction reduction, Element element)
{
    switch (element) {
    case Element::B32:
    case Element::B64: return reduction >= Reduction::And;
    case Element::U32: return reduction >= Reduction::Add && reduction <= Reduction::Dec;
    case Element::S64: return reduction == Reduction::Min || reduction == Reduction::Max;
    case Element::S32:
    case Element::U64:
    case Element::F16:
    case Element::Bf16: return reduction >= Reduction::Add && reduction <= Reduction::Max;
    case Element::F32:
    case Element::F64: return reduction == Reduction::Add;
    }
    return false;
}

void reduce(Reduction reduction, Element element, void* to, const void* from, size_t count)
{
    auto integer = [reduction](auto old, auto value) { return reduce_integer(reduction, old, value); };
    auto sum = [](auto old, auto value) { return add_at_memory(old, value); };
    auto f16 = [reduction](uint16_t old, uint16_t value) {
        return reduce_half(reduction, FormatId::F16, old, value);
    };
    auto bf16 = [reduction](uint16_t old, uint16_t value) {
        return reduce_half(reduction, FormatId::Bf16, old, value);
    };
    switch (element) {
    case Element::B32:
    case Element::U32: each<uint32_t>(to, from, count, integer); break;
    case Element::S32: each<int32_t>(to, from, count, integer); break;
    case Element::B64:
    case Element::U64: each<uint64_t>(to, from, count, integer); break;
    case Element::S64: each<int64_t>(to, from, count, integer); break;
    case Element::F16: each<uint16_t>(to, from, count, f16); break;
    case Element::Bf16: each<uint16_t>(to, from, count, bf16); break;
    case Element::F32: each<float>(to, from, count, sum); break;
    case Element::F64: each<double>(to, from, count, sum); break;
    }
}

}  // namespace emu
