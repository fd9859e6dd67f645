// Type names.
#include "ptx/module.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace emu::ptx {

bool parse_type(std::string_view name, Type& type)
{
    static constexpr std::array<std::pair<std::string_view, Type>, 27> types = {{
        {"pred", {Kind::Predicate, 1, 1}}, {"b8", {Kind::Bits, 8, 1}},
        {"b16", {Kind::Bits, 16, 1}},      {"b32", {Kind::Bits, 32, 1}},
        {"b64", {Kind::Bits, 64, 1}},      {"b128", {Kind::Bits, 128, 1}},
        {"u8", {Kind::Unsigned, 8, 1}},    {"u16", {Kind::Unsigned, 16, 1}},
        {"u32", {Kind::Unsigned, 32, 1}},  {"u64", {Kind::Unsigned, 64, 1}},
        {"s8", {Kind::Signed, 8, 1}},      {"s16", {Kind::Signed, 16, 1}},
        {"s32", {Kind::Signed, 32, 1}},    {"s64", {Kind::Signed, 64, 1}},
        {"f16", {Kind::Float, 16, 1}},     {"f32", {Kind::Float, 32, 1}},
        {"f64", {Kind::Float, 64, 1}},     {"f16x2", {Kind::Float, 16, 2}},
        {"bf16", {Kind::Bfloat, 16, 1}},   {"bf16x2", {Kind::Bfloat, 16, 2}},
        {"f32x2", {Kind::Float, 32, 2}},   {"u16x2", {Kind::Unsigned, 16, 2}},
        {"s16x2", {Kind::Signed, 16, 2}},  {"u8x4", {Kind::Unsigned, 8, 4}},
        {"s8x4", {Kind::Signed, 8, 4}},    {"b16x2", {Kind::Bits, 16, 2}},
        {"b8x4", {Kind::Bits, 8, 4}},
    }};
    if (!name.empty() && name.front() == '.')
        name.remove_prefix(1);
    const auto* found =
        std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.first == name; });
    if (found == types.end())
        return false;
    type = found->second;
    return true;
}

bool Instruction::has(std::string_view modifier) const
{
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

}  // namespace emu::ptx
