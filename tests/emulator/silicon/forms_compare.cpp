// Forms that compare and select, and forms that exchange values between the lanes of a warp.
#include "forms.hpp"

#include <fmt/format.h>

namespace emu::silicon {
namespace {

struct CompareType {
    const char *name, *letter;
    bool floating;
};
const CompareType types[] = {{"u16", "u", false}, {"s16", "u", false}, {"u32", "i", false},
                             {"s32", "i", false}, {"u64", "l", false}, {"s64", "l", false},
                             {"f32", "F", true},  {"f64", "D", true},  {"ftz.f32", "F", true},
                             {"f16", "H", true},  {"bf16", "B", true}};

void add_comparisons(std::vector<Form>& forms)
{
    const std::vector<const char*> whole = {"eq", "ne", "lt", "le", "gt", "ge"};
    const std::vector<const char*> real = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                           "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    int turn = 0;
    for (const CompareType& type : types)
        for (const char* comparison : type.floating ? real : whole) {
            const std::string pair = std::string(type.letter) + type.letter;
            const bool half = *type.letter == 'H' || *type.letter == 'B';
            const std::string to = half ? "p" : "pp";
            const char* boolean = turn % 3 == 0 ? "and" : turn % 3 == 1 ? "or" : "xor";
            if (++turn % 2)
                forms.push_back(plain(fmt::format("setp.{}.{}", comparison, type.name), to, pair));
            else
                forms.push_back({fmt::format("setp.{}.{}.{} {}, $a0, $a1, {}$a2;", comparison, boolean,
                                             type.name, half ? "$d0" : "$d0|$d1", turn % 4 ? "!" : ""),
                                 to, pair + "p"});
        }
    for (const char* comparison : {"lo", "ls", "hi", "hs"})
        forms.push_back(plain(fmt::format("setp.{}.u32", comparison), "p", "ii"));
    for (const char* comparison : real) {
        forms.push_back(plain(fmt::format("setp.{}.f16x2", comparison), "pp", "PP"));
        forms.push_back(plain(fmt::format("setp.{}.bf16x2", comparison), "pp", "QQ"));
    }
}

void add_sets(std::vector<Form>& forms)
{
    for (const CompareType& type : types) {
        const std::string pair = std::string(type.letter) + type.letter, name = type.name;
        const bool half = name == "f16" || name == "bf16", flush = name == "ftz.f32";
        if (flush)
            continue;
        if (!half) {
            forms.push_back(plain(fmt::format("set.lt.u32.{}", name), "i", pair));
            forms.push_back(plain(fmt::format("set.ne.s32.{}", name), "i", pair));
            forms.push_back(plain(fmt::format("set.ge.f32.{}", name), "F", pair));
            forms.push_back({fmt::format("set.eq.xor.f32.{} $d0, $a0, $a1, $a2;", name), "F", pair + "p"});
        }
    }
    forms.push_back(plain("set.ltu.f16.f16", "H", "HH"));
    forms.push_back(plain("set.ge.ftz.f16.f16", "H", "HH"));
    forms.push_back(plain("set.ne.f16x2.f16x2", "P", "PP"));
    forms.push_back(plain("set.gtu.bf16.bf16", "B", "BB"));
    forms.push_back(plain("set.le.bf16x2.bf16x2", "Q", "QQ"));
    forms.push_back(plain("set.nan.ftz.u32.f32", "i", "FF"));
    forms.push_back(plain("set.num.u32.f64", "i", "DD"));
}

void add_selections(std::vector<Form>& forms)
{
    forms.push_back(plain("selp.b16", "u", "uup"));
    forms.push_back(plain("selp.s32", "i", "iip"));
    forms.push_back(plain("selp.f64", "D", "DDp"));
    forms.push_back(plain("slct.u16.s32", "u", "uui"));
    forms.push_back(plain("slct.b32.f32", "i", "iiF"));
    forms.push_back(plain("slct.ftz.f32.f32", "F", "FFF"));
    forms.push_back(plain("slct.b64.s32", "l", "lli"));
    for (const char* property : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
        forms.push_back(plain(fmt::format("testp.{}.f32", property), "p", "F"));
        forms.push_back(plain(fmt::format("testp.{}.f64", property), "p", "D"));
    }
    for (const char* opcode : {"and", "or", "xor"})
        forms.push_back(plain(fmt::format("{}.pred", opcode), "p", "pp"));
    forms.push_back(plain("not.pred", "p", "p"));
}

// Lanes that are in a member mask, as a predicate $p0.
std::string member(uint32_t mask)
{
    return fmt::format("mov.u32 $r0, %lanemask_eq; and.b32 $r0, $r0, {:#x}; setp.ne.u32 $p0, $r0, 0; ",
                       mask);
}

void add_shuffles(std::vector<Form>& forms)
{
    for (const char* mode : {"up", "down", "bfly", "idx"})
        for (const int segment : {0, 16, 24, 28, 30, 20}) {
            const int clamp = (std::string(mode) == "up" ? 0 : 31) | segment << 8;
            forms.push_back(
                {fmt::format("shfl.sync.{}.b32 $d0|$d1, $a0, $a1, {:#x}, -1;", mode, clamp), "ip", "ik"});
        }
    for (const char* mode : {"up", "down", "bfly", "idx"}) {
        forms.push_back({fmt::format("shfl.sync.{}.b32 $d0|$d1, $a0, $a1, $a2, -1;", mode), "ip", "inn"});
        forms.push_back({fmt::format("shfl.sync.{}.b32 $d0, $a0, 3, 0x{}, -1;", mode,
                                     std::string(mode) == "up" ? "0" : "1f"),
                         "i", "i"});
    }
}

void add_votes(std::vector<Form>& forms, uint32_t mask)
{
    const std::string in = member(mask);
    const auto guarded = [&](const std::string& before, const std::string& text, const std::string& results,
                             const std::string& operands) {
        forms.push_back({before + in + "@$p0 " + fmt::format("{}, {:#x};", text, mask), results, operands});
    };
    for (const char* mode : {"all", "any", "uni"})
        guarded("setp.ne.u32 $d0, 0, 0; ", fmt::format("vote.sync.{}.pred $d0, $a0", mode), "p", "p");
    guarded("mov.u32 $d0, 77; ", "vote.sync.ballot.b32 $d0, !$a0", "i", "p");
    guarded("mov.u32 $d0, 77; ", "match.any.sync.b32 $d0, $a0", "i", "k");
    guarded("mov.u32 $d0, 77; ", "match.any.sync.b64 $d0, $a0", "i", "l");
    guarded("mov.u32 $d0, 77; setp.ne.u32 $d1, 0, 0; ", "match.all.sync.b32 $d0|$d1, $a0", "ip", "k");
    for (const char* form :
         {"add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"})
        guarded("mov.u32 $d0, 77; ", fmt::format("redux.sync.{} $d0, $a0", form), "i", "i");
    guarded("mov.u32 $d0, 77; setp.ne.u32 $d1, 0, 0; ", "elect.sync $d0|$d1", "ip", "");
}

}  // namespace

const std::vector<Form>& compare_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        add_comparisons(forms);
        add_sets(forms);
        add_selections(forms);
        return forms;
    }();
    return list;
}

const std::vector<Form>& warp_forms()
{
    static const std::vector<Form> list = [] {
        std::vector<Form> forms;
        add_shuffles(forms);
        for (const uint32_t mask : {0xffffffffu, 0x0ff0u, 0x80000001u, 0x5a5aa5a4u})
            add_votes(forms, mask);
        forms.push_back({"mov.u32 $r0, 5; match.all.sync.b32 $d0|$d1, $r0, -1;", "ip", ""});
        forms.push_back({"vote.sync.all.pred $d0, $a0, -1; vote.sync.uni.pred $d1, !$d0, -1;", "pp", "p"});
        return forms;
    }();
    return list;
}

}  // namespace emu::silicon
