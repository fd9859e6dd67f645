// Any bytes may be given as PTX: they end in a list of refusals, soon.
#include "emulator.hpp"

#include <gtest/gtest.h>

#include <random>

namespace emu {
namespace {

const std::string head = ".version 9.0\n.target sm_90a\n.address_size 64\n";

std::string kernel_of(const std::string& body)
{
    return head + ".visible .entry k(.param .u64 p0)\n{\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n" + body +
           "\nret;\n}\n";
}

std::string repeated(const std::string& text, int count)
{
    std::string all;
    for (int i = 0; i < count; ++i)
        all += text;
    return all;
}

// Functions, each of which calls the next so often.
std::string chain_of_calls(int length, int calls)
{
    std::string text = head + ".func f" + std::to_string(length) + "() { ret; }\n";
    for (int i = 0; i < length; ++i)
        text += ".func f" + std::to_string(i) + "() { " +
                repeated("call f" + std::to_string(i + 1) + "; ", calls) + "ret; }\n";
    return text;
}

TEST(ParserLimits, WhatAsksForTooMuchIsRefused)
{
    std::string targets = "l: .branchtargets E";
    targets += repeated(", E", 20000) + ";\n" + repeated("brx.idx %r1, l;\n", 20000) + "E:";
    const std::pair<std::string, const char*> cases[] = {
        {head + ".global .b32 x[] = " + repeated("{", 200000) + ";", "nested too deeply"},
        {kernel_of("mov.b64 %rd1, " + repeated("{", 100000) + repeated("}", 100000) + ";"),
         "nested too deeply"},
        {kernel_of("ld.global.u32 %r1, " + repeated("[", 200000) + ";"), "nested too deeply"},
        {kernel_of(repeated("{", 1000) + repeated("}", 1000)), "nested too deeply"},
        {chain_of_calls(300, 1), "nested too deeply"},
        {chain_of_calls(40, 2), "too many instructions"},
        {kernel_of(repeated("{ .reg .b32 r<1000000>; }\n", 300)), "too many registers"},
        {kernel_of(targets), "too many branch targets"},
        {kernel_of(".shared .align 4294967296 .b8 x[4];"), "alignment must be a power of two"},
        {kernel_of(".shared .b128 x[1099511627776];"), "bad array size"},
        {head + ".visible .entry k(.param .u64 .ptr .pred p0)\n.maxntid 4294967297 { ret; }",
         "a dimension"},
        {".version 99999999999.0\n.target sm_90a\n", "bad version"}};
    for (const auto& [text, why] : cases) {
        bool found = false;
        for (const std::string& refusal : list_refused(text, "test.ptx"))
            found = found || refusal.find(why) != std::string::npos;
        EXPECT_TRUE(found) << why << " in " << text.substr(0, 300);
    }
}

TEST(ParserLimits, WideInitialValuesAreWhole)
{
    const ptx::Module module = ptx::parse(head + ".global .b128 x[2] = {-5, 7};", "test.ptx");
    std::vector<uint8_t> expected(32, 0);
    std::fill_n(expected.begin(), 16, uint8_t{0xff});
    expected[0] = 0xfb, expected[16] = 7;
    EXPECT_EQ(module.globals.at(0).initial, expected);
}

// One of all that a text may have.
const char* const sample = R"(.version 8.7
.target sm_90a, debug
.address_size 64
.file 1 "a.cu"
.global .align 8 .b64 table[2] = {generic(other)+4, other};
.const .align 4 .f32 pi = 0f40490FDB;
.global .v4 .f32 q[3] = {{1.0, 2.0, 3.0, 4.0}, {5, 6, 7, 8}};
.global .align 4 .u32 other = 5;
.shared .align 8 .b8 fixed[12];
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func (.param .b32 result) square(.param .b32 x)
{ .reg .b32 %r<4>; ld.param.b32 %r1, [x]; mul.lo.s32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret; }
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 .ptr .global .align 16 p, .param .u8 c)
.maxntid 128, 1, 1
.minnctapersm 2
.reqnctapercluster 2, 1, 1
{
.reg .b32 %r<9>; .reg .v2 .f32 v<3>; .reg .pred q; .reg .b64 %rd<3>;
.shared .align 16 .b8 own[20];
mov.u32 %r0, fixed;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), square, (a); ld.param.b32 %r2, [b]; }
{ .reg .b32 t; AGAIN: sub.s32 t, t, 1; setp.ne.s32 q, t, 0; @q bra AGAIN; @!q bra OUT; }
list: .branchtargets OUT, END;
brx.idx %r1, list;
.loc 1 2 3
.pragma "used_bytes_mask 0xff";
ld .global .v2 .f32 v1, [%rd1+-8];
mov.b64 %rd2, {v1.x, v2.y};
mbarrier.init.shared::cta.b64 [%r1], 1;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
wgmma.wait_group.sync.aligned 0;
OUT: mov.v2.f32 v1, v2; // comment
END: ret;
}
.section .debug_info { .b8 1, 2 }
)";

TEST(ParserLimits, MutatedTextsEnd)
{
    EXPECT_TRUE(list_refused(sample, "test.ptx").empty()) << list_refused(sample, "test.ptx").at(0);
    const char* const pieces[] = {
        "{",   "}",  "(",     ")",          "[",          "]",       ";",     ",",   ".",
        "::",  "@",  "!",     "-",          "<",          ">",       "\"",    "/*",  "0x",
        "0f",  ".x", ".b128", ".v4",        ".pred",      ".align",  ".reg",  "1e9", "_",
        "bra", ":",  ".func", "4294967296", "0fffffffff", "%tid",    "call ", "\\",  "//",
        "%",   "+",  "=",     ".shared",    "<1000000>",  "WARP_SZ", ".ptr",  "-1",  "*"};
    std::mt19937_64 random(1);
    size_t refusals = 0;
    for (int i = 0; i < 3000; ++i) {
        std::string text = sample;
        for (uint64_t changes = 1 + random() % 5; changes > 0; --changes) {
            const size_t at = random() % text.size();
            switch (random() % 4) {
            case 0: text.erase(at, 1 + random() % 8); break;
            case 1: text[at] = static_cast<char>(random()); break;
            case 2: text.insert(at, pieces[random() % std::size(pieces)]); break;
            default: text.insert(at, text.substr(random() % text.size(), random() % 100));
            }
        }
        refusals += list_refused(text, "test.ptx").size();
    }
    EXPECT_GT(refusals, 3000u);
}

}  // namespace
}  // namespace emu
