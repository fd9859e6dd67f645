// Forms on single, double and half precision.
#include "forms.hpp"

#include <fmt/format.h>

namespace emu::silicon {
namespace {

const char* const roundings[] = {".rn", ".rz", ".rm", ".rp"};

void add_single_arithmetic(std::vector<Form>& forms)
{
    for (const char* rounding : roundings)
        for (const char* more : {"", ".ftz", ".sat", ".ftz.sat"}) {
            for (const char* opcode : {"add", "sub", "mul"})
                forms.push_back(plain(fmt::format("{}{}{}.f32", opcode, rounding, more), "F", "FF"));
            forms.push_back(plain(fmt::format("fma{}{}.f32", rounding, more), "F", "FFF"));
        }
    for (const char* rounding : roundings)
        for (const char* more : {"", ".ftz"}) {
            forms.push_back(plain(fmt::format("div{}{}.f32", rounding, more), "F", "FF"));
            forms.push_back(plain(fmt::format("sqrt{}{}.f32", rounding, more), "F", "F"));
            forms.push_back(plain(fmt::format("rcp{}{}.f32", rounding, more), "F", "F"));
        }
}

void add_double_arithmetic(std::vector<Form>& forms)
{
    for (const char* rounding : roundings) {
        for (const char* opcode : {"add", "sub", "mul", "div"})
            forms.push_back(plain(fmt::format("{}{}.f64", opcode, rounding), "D", "DD"));
        forms.push_back(plain(fmt::format("fma{}.f64", rounding), "D", "DDD"));
        for (const char* opcode : {"sqrt", "rcp"})
            forms.push_back(plain(fmt::format("{}{}.f64", opcode, rounding), "D", "D"));
    }
    for (const char* opcode : {"min", "max", "copysign"})
        forms.push_back(plain(fmt::format("{}.f64", opcode), "D", "DD"));
    for (const char* opcode : {"abs", "neg"})
        forms.push_back(plain(fmt::format("{}.f64", opcode), "D", "D"));
}

// Minimum and maximum with everything that they may carry; the type has its own modifiers.
void add_extrema(std::vector<Form>& forms, const std::string& type, const std::string& letter, bool ftz)
{
    for (const char* opcode : {"min", "max"})
        for (const char* flush : {"", ".ftz"})
            for (const char* more : {"", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"})
                if (ftz || *flush == 0)
                    forms.push_back(plain(fmt::format("{}{}{}.{}", opcode, flush, more, type), letter,
                                          letter + letter));
}

void add_signs(std::vector<Form>& forms, const std::string& type, const std::string& letter, bool ftz)
{
    for (const char* opcode : {"abs", "neg"})
        for (const char* flush : {"", ".ftz"})
            if (ftz || *flush == 0)
                forms.push_back(plain(fmt::format("{}{}.{}", opcode, flush, type), letter, letter));
}

void add_f16(std::vector<Form>& forms, const std::string& type, const std::string& l)
{
    for (const char* rounding : {"", ".rn"})
        for (const char* more : {"", ".ftz", ".sat", ".ftz.sat"})
            for (const char* opcode : {"add", "sub", "mul"})
                forms.push_back(plain(fmt::format("{}{}{}.{}", opcode, rounding, more, type), l, l + l));
    for (const char* more : {"", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"})
        forms.push_back(plain(fmt::format("fma.rn{}.{}", more, type), l, l + l + l));
    add_extrema(forms, type, l, true);
    add_signs(forms, type, l, true);
}

void add_bf16(std::vector<Form>& forms, const std::string& type, const std::string& l)
{
    for (const char* opcode : {"add", "sub", "mul", "add.rn", "sub.rn", "mul.rn"})
        forms.push_back(plain(fmt::format("{}.{}", opcode, type), l, l + l));
    for (const char* more : {"", ".relu"})
        forms.push_back(plain(fmt::format("fma.rn{}.{}", more, type), l, l + l + l));
    add_extrema(forms, type, l, false);
    add_signs(forms, type, l, false);
}

}  // namespace

const std::vector<Form>& single_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        add_single_arithmetic(forms);
        add_extrema(forms, "f32", "F", true);
        add_signs(forms, "f32", "F", true);
        forms.push_back(plain("copysign.f32", "F", "FF"));
        return forms;
    }();
    return list;
}

const std::vector<Form>& double_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        add_double_arithmetic(forms);
        return forms;
    }();
    return list;
}

const std::vector<Form>& half_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        add_f16(forms, "f16", "H");
        add_f16(forms, "f16x2", "P");
        add_bf16(forms, "bf16", "B");
        add_bf16(forms, "bf16x2", "Q");
        return forms;
    }();
    return list;
}

}  // namespace emu::silicon
