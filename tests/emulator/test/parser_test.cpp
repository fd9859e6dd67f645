// PTX text: what is accepted, what is refused and how it is told.
#include "test/evaluate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace emu {
namespace {

std::string refusal(const std::string& body, int cc = 90)
{
    Device device(cc);
    const std::string target = "sm_" + std::to_string(cc) + (cc >= 90 ? "a" : "");
    EXPECT_EQ(device.run(ptx_kernel(target, 1, body), shape_of(1, 1), {0}), "refused") << body;
    return device.message();
}

TEST(Parser, RefusesWithFileLineAndText)
{
    const std::pair<const char*, const char*> cases[] = {
        {"frobnicate.b32 %r2, %r3;", "unknown instruction 'frobnicate.b32'"},
        {"add.s32.fast %r2, %r3, %r4;", "unknown modifier '.fast'"},
        {"add.s32 %r2, %r3;", "wrong number of operands"},
        {"add.s32 %rd2, %r3, %r4;", "register of 64 bits where 32 are needed"},
        {"add.s32 %r2, %r3, 0f3F800000;", "a floating literal where the type is another"},
        {"add.f32 %f2, %f3, 1;", "an integer literal where a floating one is needed"},
        {"add.b32 %r2, %r3, %r4;", "no such form"},
        {"mov.b32 %r2, %r99;", "'%r99' is not declared"},
        {"bra NOWHERE;", "no label 'NOWHERE'"},
        {"setp.hi.f32 %p1, %f1;", "wrong number of operands"},
        {"cvt.s32.f32 %r1, %f1;", "integer rounding is missing"},
        {"cvt.f32.s32 %f1, %r1;", "floating rounding is missing"},
        {"ld.global.u32 %r2, %rd0;", "an address is needed"},
        {"ld.global.v4.u32 {%r2, %r3}, [%rd0];", "the vector needs 4 elements"},
        {"st.param.u32 [p0], %r1;", "this space cannot be written"},
        {"call.uni printf, (%r1);", "parameters of calls must be .param variables"},
        {"atom.global.cas.b32 %r1, [%rd0], %r2;", "wrong number of operands"},
        {"@%r1 bra X; X:", "no predicate '%r1'"},
        {"mov.b32 %r1, 0f3F80;", "a floating literal needs 8 hexadecimal digits"},
        {"add.s32 %r1 %r2, %r3;", "expected ',' or ';'"}};
    for (const auto& [text, why] : cases) {
        const std::string message = refusal(text);
        EXPECT_NE(message.find(why), std::string::npos) << message;
        EXPECT_EQ(message.find(place_of(ptx_kernel("sm_90a", 1, text), text)), 0u) << message;
    }
}

TEST(Parser, RefusesModules)
{
    const std::pair<const char*, const char*> cases[] = {
        {".version 9.0\n.target sm_80\n.address_size 32\n", "test.ptx:3: only 64-bit addresses"},
        {".version 9.0\n.target sm_80\n.visible .entry k() { mov.u32 %r0, 1;",
         "test.ptx:3: the text ends too early"},
        {".target sm_80\n.visible .entry k() { ret; }", ".version or .target is missing"},
        {".version 9.0\n.target sm_80\n.rubbish\n", "test.ptx:3: unknown directive '.rubbish'"},
        {".version 9.0\n.target sm_100a\n.visible .entry k() { ret; }",
         ".target sm_100a does not run on sm_90"},
        {".version 9.0\n.target sm_80\n.extern .global .u32 x;\n.visible .entry k() { ret; }",
         "'x' is not defined"},
        {"hello", "test.ptx:1: expected a directive"},
        {"/* never closed", "comment without an end"}};
    for (const auto& [text, why] : cases) {
        Device device(90);
        EXPECT_EQ(device.run(text, shape_of(1, 1), {}), "refused") << text;
        EXPECT_NE(device.message().find(why), std::string::npos) << device.message();
    }
}

TEST(Parser, ScopesLabelsAndGluedOperands)
{
    Device device(80);
    const uint64_t out = device.put(std::vector<uint32_t>(4));
    EXPECT_EQ(device.run(ptx_kernel("sm_80", 1, R"(
        mov.u32 %r9, 0;
        { .reg .b32 t; .reg .pred q; mov.u32 t, 3;
          AGAIN: add.s32 %r9, %r9, t; sub.s32 t, t, 1; setp.ne.s32 q, t, 0; @q bra AGAIN; }
        { .reg .b32 t; .reg .pred q; mov.u32 t, 0x2U;
          AGAIN: { .reg .b64 t; mov.u64 t, 100; cvt.u32.u64 %r3, t; } add.s32 %r9, %r9, %r3;
          sub.s32 t,t,1; setp.ne.s32 q,t,0; @q bra AGAIN; @!q bra OUT; }
        add.s32 %r9, %r9, 5000;
    OUT:
        mov.b64 %rd5,{%r9,%r9}; st.global.v2.b32[%rd0],{%r9,0b101};
        .loc 1 2 3
        .pragma "nounroll";
        st.global.f32 [%rd0+8], 0f40490FDB;  // pi
        st.global.u32 [%rd0 + 12], -017;)"),
                         shape_of(1, 1), {out}),
              "")
        << device.message();
    EXPECT_EQ(device.get<uint32_t>(out, 4),
              (std::vector<uint32_t>{206, 5, 0x40490fdb, static_cast<uint32_t>(-15)}));
}

TEST(Parser, FunctionsAreInlined)
{
    Device device(80);
    const uint64_t out = device.put(std::vector<uint32_t>(2));
    EXPECT_EQ(device.run(R"(.version 9.0
        .target sm_80
        .address_size 64
        .func (.param .b32 result) square(.param .b32 x);
        .func (.param .b32 result) square(.param .b32 x)
        {
            .reg .b32 %r<4>; .reg .pred %p<2>;
            ld.param.b32 %r1, [x];
            setp.lt.s32 %p1, %r1, 0;
            @%p1 bra NEGATIVE;
            mul.lo.s32 %r2, %r1, %r1;
            st.param.b32 [result], %r2;
            ret;
        NEGATIVE:
            st.param.b32 [result], -1;
            ret;
        }
        .visible .entry k(.param .u64 p0)
        {
            .reg .b32 %r<9>; .reg .b64 %rd<3>;
            ld.param.u64 %rd0, [p0];
            mov.u32 %r1, 12;
        AGAIN:
            { .param .b32 a; .param .b32 b;
              st.param.b32 [a], %r1;
              call.uni (b), square, (a);
              ld.param.b32 %r2, [b]; }
            st.global.u32 [%rd0], %r2;
            add.s64 %rd0, %rd0, 4;
            sub.s32 %r1, %r1, 15;
            .reg .pred q;
            setp.gt.s32 q, %r1, -10;
            @q bra AGAIN;
            ret;
        })",
                         shape_of(1, 1), {out}),
              "")
        << device.message();
    EXPECT_EQ(device.get<uint32_t>(out, 2), (std::vector<uint32_t>{144, 0xffffffff}));
}

TEST(Parser, DirectivesOfKernels)
{
    const ptx::Module module = ptx::parse(R"(.version 8.7
        .target sm_90a, debug
        .address_size 64
        .file 1 "a.cu"
        .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
        .extern .shared .align 128 .b8 dynamic[];
        .shared .align 8 .b8 fixed[12];
        .visible .entry k(.param .align 64 .b8 map[128], .param .u64 .ptr .global .align 16 p, .param .u8 c)
        .maxntid 128, 1, 1
        .minnctapersm 2
        .explicitcluster
        .reqnctapercluster 2, 1, 1
        {
            .reg .b32 %r<3>;
            .shared .align 16 .b8 own[20];
            mov.u32 %r0, dynamic;
            mov.u32 %r1, fixed;
            ret;
        }
        .section .debug_info { .b8 1, 2 })",
                                          "a.ptx");
    EXPECT_EQ(module.version, 87);
    EXPECT_EQ(module.target, "sm_90a");
    const ptx::Kernel& k = module.kernels.at(0);
    EXPECT_EQ(k.parameters[1].offset, 128);
    EXPECT_EQ(k.parameters[2].offset, 136);
    EXPECT_EQ(k.parameter_bytes, 137);
    EXPECT_EQ(k.shared_bytes, 128);  // 20, then 12 at 24, then room for the alignment of the dynamic array
    EXPECT_EQ(k.max_threads[0], 128);
    EXPECT_EQ(k.min_ctas, 2);
    EXPECT_TRUE(k.explicit_cluster);
    EXPECT_EQ(k.cluster[0], 2);
    EXPECT_EQ(k.line, 8);
}

TEST(Parser, BodiesWait)
{
    Machine machine(Config{});
    const std::string head =
        ".version 8.7\n.target sm_90a\n.address_size 64\n.extern .shared .b8 dynamic[];\n";
    const std::string body = R"(.visible .entry first()
        { // }
            .pragma "}";
            /* } */ { .reg .b32 %r<2>; mov.b32 %r1, dynamic; }
            ret;
        }
        .visible .entry second() { .local .b8 own[12]; nonsense here }
        .visible .entry third() { ret; }
    )";
    LoadedModule waits(machine, head + body, "a.ptx");
    ASSERT_EQ(waits.module().kernels.size(), 3u);
    EXPECT_FALSE(waits.module().kernels[0].is_read);
    EXPECT_EQ(waits.kernel("first")->instructions.size(), 3u);  // the last is added at the end
    EXPECT_EQ(waits.kernel("third")->line, 12);
    EXPECT_FALSE(waits.module().kernels[1].is_read);
    EXPECT_THROW(waits.kernel("second"), ptx::Error);
    EXPECT_THROW(waits.kernel("second"), ptx::Error);
    EXPECT_EQ(waits.kernel("fourth"), nullptr);

    // What a kernel takes of shared memory is known at once.
    const std::string declares = ".visible .entry fourth() {.shared .b8 own[20]; ret; }";
    LoadedModule known(machine, head + declares, "b.ptx");
    EXPECT_EQ(known.module().kernels[0].shared_bytes, 20);
    LoadedModule fixed(
        machine, head + ".shared .b8 fixed[20];" + body.substr(0, body.find(".visible .entry s")), "c.ptx");
    EXPECT_TRUE(fixed.module().kernels[0].is_read);
    EXPECT_THROW(LoadedModule(machine, head + body + declares, "d.ptx"), ptx::Error);
}

TEST(Launch, ImpossibleOnesAreRefused)
{
    Device device(90);
    const std::string kernel = ptx_kernel("sm_90a", 1, "");
    const uint64_t p = 0;
    EXPECT_EQ(device.run(kernel, shape_of(1, 1025), {p}), "invalid-launch");
    EXPECT_EQ(device.run(kernel, shape_of(0, 32), {p}), "invalid-launch");
    EXPECT_EQ(device.run(kernel, shape_of(3, 32, 2), {p}), "invalid-launch");
    EXPECT_EQ(device.run(kernel, shape_of(1, 32, 1, 1 << 20), {p}), "invalid-launch");
    EXPECT_EQ(device.run(kernel, shape_of(1, 32), {}), "invalid-launch");
    Device ampere(80);
    EXPECT_EQ(ampere.run(ptx_kernel("sm_80", 1, ""), shape_of(2, 32, 2), {p}), "invalid-launch");
}

// What one block writes and then reads shares a place with what comes later; what it reads first, or
// another block does, has its own.
TEST(Registers, OfOneBlockSharePlaces)
{
    Config config;
    Machine machine(config);
    const LoadedModule module(machine, ptx_kernel("sm_90", 0, R"(
add.u32 %r10, %r0, 1;
add.u32 %r11, %r10, %r20;
add.u32 %r12, %r11, 1;
add.u32 %r13, %r12, 1;
setp.eq.u32 %p1, %r13, 0;
@%p1 bra END;
add.u32 %r14, %r13, 1;
@%p2 mov.u32 %r15, 1;
add.u32 %r16, %r15, %r14;
END:
)"),
                              "test.ptx");
    const Program& program = *module.find("k");
    const auto place = [&](const std::string& name) {
        const auto& registers = program.kernel->registers;
        const auto found = std::find_if(registers.begin(), registers.end(),
                                        [&](const ptx::Register& r) { return r.name == name; });
        return program.register_offset[found - registers.begin()];
    };
    EXPECT_EQ(place("%r12"), place("%r10"));
    EXPECT_NE(place("%r11"), place("%r10"));
    for (const char* own : {"%r13", "%r15", "%r20"})
        for (const char* other : {"%r0", "%r10", "%r11", "%r12", "%r14", "%r16"})
            EXPECT_NE(place(own), place(other)) << own << " " << other;
}

}  // namespace
}  // namespace emu
