// Forms of cvt.
#include "forms.hpp"

#include <fmt/format.h>

namespace emu::silicon {
namespace {

struct ConvertType {
    std::string name, letter;  // of the register
};
const ConvertType integers[] = {{"u8", "i"},  {"s8", "i"},  {"u16", "u"}, {"s16", "u"},
                                {"u32", "i"}, {"s32", "i"}, {"u64", "l"}, {"s64", "l"}};
const ConvertType floats[] = {{"f16", "H"}, {"bf16", "B"}, {"f32", "F"}, {"f64", "D"}};

Form conversion(const std::string& modifiers, const ConvertType& to, const ConvertType& from)
{
    return plain(fmt::format("cvt{}.{}.{}", modifiers, to.name, from.name), to.letter, from.letter);
}

// There is no conversion between bf16 and bytes.
bool exists(const ConvertType& number, const ConvertType& integer)
{
    return number.name != "bf16" || integer.name.size() > 2;
}

int bits_of(const ConvertType& type) { return std::stoi(type.name.substr(1)); }

// .sat is for destinations that do not hold every value of the source.
bool may_saturate(const ConvertType& to, const ConvertType& from)
{
    const bool from_signed = from.name[0] == 's', to_signed = to.name[0] == 's';
    if (from_signed != to_signed)
        return from_signed || bits_of(to) <= bits_of(from);
    return bits_of(to) < bits_of(from);
}

void add_between_integers(std::vector<Form>& forms)
{
    for (const ConvertType& from : integers)
        for (const ConvertType& to : integers) {
            forms.push_back(conversion("", to, from));
            if (may_saturate(to, from))
                forms.push_back(conversion(".sat", to, from));
        }
}

void add_to_integers(std::vector<Form>& forms)
{
    for (const ConvertType& from : floats)
        for (const ConvertType& to : integers)
            for (const char* rounding : {".rni", ".rzi", ".rmi", ".rpi"}) {
                if (exists(from, to))
                    forms.push_back(conversion(rounding, to, from));
                if (from.name == "f32")
                    forms.push_back(conversion(std::string(rounding) + ".ftz", to, from));
            }
    for (const ConvertType& to : integers)
        forms.push_back(conversion(".rni.sat", to, floats[2]));
}

void add_from_integers(std::vector<Form>& forms)
{
    for (const ConvertType& from : integers)
        for (const ConvertType& to : floats)
            for (const char* rounding : {".rn", ".rz", ".rm", ".rp"})
                if (exists(to, from))
                    forms.push_back(conversion(rounding, to, from));
}

// Between the four formats: those that lose bits take a rounding.
void add_between_floats(std::vector<Form>& forms)
{
    const ConvertType &f16 = floats[0], &bf16 = floats[1], &f32 = floats[2], &f64 = floats[3];
    for (const char* rounding : {".rn", ".rz", ".rm", ".rp"}) {
        const std::string r = rounding;
        for (const char* more : {"", ".sat", ".ftz", ".ftz.sat"})
            forms.push_back(conversion(r + more, f32, f64));
        for (const char* more : {"", ".sat", ".ftz"})
            forms.push_back(conversion(r + more, f16, f32));
        for (const char* more : {"", ".sat"})
            forms.push_back(conversion(r + more, f16, f64));
        forms.push_back(conversion(r, bf16, f64));
        forms.push_back(conversion(r, bf16, f32));
        forms.push_back(conversion(r, f16, bf16));
        forms.push_back(conversion(r, bf16, f16));
    }
    for (const char* modifiers : {".rn.relu", ".rz.relu"}) {
        forms.push_back(conversion(modifiers, f16, f32));
        forms.push_back(conversion(modifiers, bf16, f32));
    }
    for (const char* more : {"", ".sat", ".ftz", ".ftz.sat"})
        forms.push_back(conversion(more, f32, f16));
    for (const char* more : {"", ".sat"})
        forms.push_back(conversion(more, f64, f16));
    for (const char* more : {"", ".sat", ".ftz"})
        forms.push_back(conversion(more, f64, f32));
    forms.push_back(conversion("", f32, bf16));
    forms.push_back(conversion("", f64, bf16));
}

void add_to_integral(std::vector<Form>& forms)
{
    for (const char* rounding : {".rni", ".rzi", ".rmi", ".rpi"}) {
        for (const ConvertType& type : floats)
            forms.push_back(conversion(rounding, type, type));
        forms.push_back(conversion(std::string(rounding) + ".ftz", floats[2], floats[2]));
        forms.push_back(conversion(std::string(rounding) + ".sat", floats[2], floats[2]));
    }
}

void add_packed(std::vector<Form>& forms)
{
    for (const char* modifiers : {".rn", ".rz", ".rn.relu", ".rz.relu"}) {
        forms.push_back(plain(fmt::format("cvt{}.f16x2.f32", modifiers), "i", "FF"));
        forms.push_back(plain(fmt::format("cvt{}.bf16x2.f32", modifiers), "i", "FF"));
        forms.push_back(plain(fmt::format("cvt{}.tf32.f32", modifiers), "i", "F"));
    }
    forms.push_back(plain("cvt.rna.tf32.f32", "i", "F"));
    for (const char* type : {"e4m3x2", "e5m2x2"})
        for (const char* relu : {"", ".relu"}) {
            forms.push_back(plain(fmt::format("cvt.rn.satfinite{}.{}.f32", relu, type), "u", "FF"));
            forms.push_back(plain(fmt::format("cvt.rn.satfinite{}.{}.f16x2", relu, type), "u", "P"));
            forms.push_back(plain(fmt::format("cvt.rn{}.f16x2.{}", relu, type), "i", "u"));
        }
}

}  // namespace

const std::vector<Form>& integer_conversion_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        add_between_integers(forms);
        return forms;
    }();
    return list;
}

const std::vector<Form>& float_conversion_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        add_to_integers(forms);
        add_from_integers(forms);
        add_between_floats(forms);
        add_to_integral(forms);
        add_packed(forms);
        return forms;
    }();
    return list;
}

}  // namespace emu::silicon
