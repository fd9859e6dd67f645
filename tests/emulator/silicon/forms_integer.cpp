// Forms on integers: arithmetic, carry chains, logic, fields and bytes.
#include "forms.hpp"

#include <fmt/format.h>

namespace emu::silicon {
namespace {

struct Width {
    int bits;
    std::string letter, divisor, wide;
};
const Width widths[] = {{16, "u", "U", "i"}, {32, "i", "I", "l"}, {64, "l", "L", ""}};

void add_arithmetic(std::vector<Form>& forms, const Width& w, char sign)
{
    const std::string& l = w.letter;
    const std::string type = fmt::format("{}{}", sign, w.bits);
    for (const char* opcode : {"add", "sub", "mul.lo", "mul.hi", "min", "max"})
        forms.push_back(plain(fmt::format("{}.{}", opcode, type), l, l + l));
    for (const char* opcode : {"mad.lo", "mad.hi", "sad"})
        forms.push_back(plain(fmt::format("{}.{}", opcode, type), l, l + l + l));
    for (const char* opcode : {"div", "rem"})
        forms.push_back(plain(fmt::format("{}.{}", opcode, type), l, l + w.divisor));
    if (!w.wide.empty()) {
        forms.push_back(plain("mul.wide." + type, w.wide, l + l));
        forms.push_back(plain("mad.wide." + type, w.wide, l + l + w.wide));
    }
    for (const char* opcode : {"abs", "neg"})
        if (sign == 's')
            forms.push_back(plain(fmt::format("{}.{}", opcode, type), l, l));
    forms.push_back(plain("shr." + type, l, l + "n"));
}

void add_logic(std::vector<Form>& forms, const Width& w)
{
    const std::string& l = w.letter;
    for (const char* opcode : {"and", "or", "xor"})
        forms.push_back(plain(fmt::format("{}.b{}", opcode, w.bits), l, l + l));
    for (const char* opcode : {"not", "cnot"})
        forms.push_back(plain(fmt::format("{}.b{}", opcode, w.bits), l, l));
    forms.push_back(plain(fmt::format("shl.b{}", w.bits), l, l + "n"));
    forms.push_back(plain(fmt::format("shr.b{}", w.bits), l, l + "n"));
}

void add_chains(std::vector<Form>& forms, const Width& w)
{
    const std::string &l = w.letter, l2 = l + l, l4 = l2 + l2;
    const auto chain = [&](const char* text, const std::string& results, const std::string& operands) {
        forms.push_back({fmt::format(fmt::runtime(text), fmt::arg("b", w.bits)), results, operands});
    };
    chain("add.cc.u{b} $d0, $a0, $a1; addc.cc.s{b} $d1, $a2, $a3; addc.u{b} $d2, 0, 0;", l + l2, l4);
    chain("sub.cc.u{b} $d0, $a0, $a1; subc.cc.u{b} $d1, $a2, $a3; subc.s{b} $d2, 0, 0;", l + l2, l4);
    chain("sub.cc.s{b} $d0, $a0, $a1; addc.cc.u{b} $d1, $a2, $a3; addc.u{b} $d2, 0, 0;", l + l2, l4);
    chain("mad.lo.cc.u{b} $d0, $a0, $a1, $a2; madc.hi.u{b} $d1, $a0, $a1, $a3;", l2, l4);
    chain("mad.hi.cc.u{b} $d0, $a0, $a1, $a2; madc.lo.cc.u{b} $d1, $a2, $a3, $a1; addc.u{b} $d2, 0, 0;",
          l + l2, l4);
    chain("mad.hi.cc.s{b} $d0, $a0, $a1, $a2; madc.hi.cc.s{b} $d1, $a2, $a3, $a1; addc.u{b} $d2, 0, 0;",
          l + l2, l4);
}

void add_small_products(std::vector<Form>& forms)
{
    for (const char* type : {"u32", "s32"})
        for (const char* part : {"lo", "hi"}) {
            forms.push_back(plain(fmt::format("mul24.{}.{}", part, type), "i", "ii"));
            forms.push_back(plain(fmt::format("mad24.{}.{}", part, type), "i", "iii"));
        }
    for (const char* opcode : {"add.sat.s32", "sub.sat.s32"})
        forms.push_back(plain(opcode, "i", "ii"));
    for (const char* opcode : {"mad.hi.sat.s32", "mad24.hi.sat.s32"})
        forms.push_back(plain(opcode, "i", "iii"));
    for (const char* a : {"u32", "s32"})
        for (const char* b : {"u32", "s32"}) {
            forms.push_back(plain(fmt::format("dp4a.{}.{}", a, b), "i", "iii"));
            forms.push_back(plain(fmt::format("dp2a.lo.{}.{}", a, b), "i", "iii"));
            forms.push_back(plain(fmt::format("dp2a.hi.{}.{}", a, b), "i", "iii"));
        }
    for (const char* opcode : {"add.u16x2", "add.s16x2", "min.u16x2", "min.s16x2", "max.u16x2", "max.s16x2",
                               "min.relu.s16x2", "max.relu.s16x2", "min.relu.s32", "max.relu.s32"})
        forms.push_back(plain(opcode, "i", "ii"));
}

void add_fields(std::vector<Form>& forms)
{
    for (const char* type : {"u32", "s32"}) {
        forms.push_back(plain(fmt::format("bfe.{}", type), "i", "inn"));
        forms.push_back(plain(fmt::format("szext.clamp.{}", type), "i", "in"));
        forms.push_back(plain(fmt::format("szext.wrap.{}", type), "i", "in"));
    }
    for (const char* type : {"u64", "s64"})
        forms.push_back(plain(fmt::format("bfe.{}", type), "l", "lnn"));
    forms.push_back(plain("bfi.b32", "i", "iinn"));
    forms.push_back(plain("bfi.b64", "l", "llnn"));
    forms.push_back(plain("bmsk.clamp.b32", "i", "nn"));
    forms.push_back(plain("bmsk.wrap.b32", "i", "nn"));
    for (const char* mode : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"})
        forms.push_back(plain(fmt::format("prmt.b32{}", mode), "i", "iii"));
    for (const char* mode : {"l.clamp", "l.wrap", "r.clamp", "r.wrap"})
        forms.push_back(plain(fmt::format("shf.{}.b32", mode), "i", "iin"));
}

void add_counts(std::vector<Form>& forms)
{
    for (const char* opcode : {"popc", "clz"}) {
        forms.push_back(plain(fmt::format("{}.b32", opcode), "i", "i"));
        forms.push_back(plain(fmt::format("{}.b64", opcode), "i", "l"));
    }
    forms.push_back(plain("brev.b32", "i", "i"));
    forms.push_back(plain("brev.b64", "l", "l"));
    for (const char* opcode : {"bfind", "bfind.shiftamt"})
        for (const char* type : {"u32", "s32", "u64", "s64"})
            forms.push_back(plain(fmt::format("{}.{}", opcode, type), "i", type[1] == '3' ? "i" : "l"));
    forms.push_back(plain("fns.b32", "i", "iko"));
}

}  // namespace

const std::vector<Form>& integer_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        for (const Width& w : widths)
            for (const char sign : {'u', 's'})
                add_arithmetic(forms, w, sign);
        add_small_products(forms);
        return forms;
    }();
    return list;
}

const std::vector<Form>& bit_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        for (const Width& w : widths)
            add_logic(forms, w);
        add_chains(forms, widths[1]);
        add_chains(forms, widths[2]);
        add_fields(forms);
        add_counts(forms);
        for (const int table : {0x96, 0xe8, 0xca, 0x01, 0x7f, 0x5c, 0x3d, 0xa6})
            forms.push_back(plain("lop3.b32", "i", "iii", fmt::format(", {:#x}", table)));
        forms.push_back({"lop3.or.b32 $d0|$d1, $a0, $a1, $a2, 0x80, $a3;", "ip", "iiip"});
        forms.push_back({"lop3.and.b32 $d0|$d1, $a0, $a1, $a2, 0x2d, $a3;", "ip", "iiip"});
        forms.push_back({"mov.b64 {$d0, $r0}, $a0; mov.b64 $d1, {$r0, $d0};", "il", "l"});
        forms.push_back({"mov.b32 {$h0, $h1}, $a0; mov.b32 $d0, {$h1, $h0};", "i", "i"});
        return forms;
    }();
    return list;
}

}  // namespace emu::silicon
