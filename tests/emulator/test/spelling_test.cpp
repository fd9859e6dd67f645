// What ptxas takes is taken, and what it refuses is refused: blanks within instructions, vector registers.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

namespace emu {
namespace {

const char* const vectors = R"(
.reg .v2 .f32 a, b; .reg .v4 .f32 q; .reg .v2 .b16 h; .reg .v2 .b64 d; .reg .v2 .b32 wb; .reg .v4 .b32 w;
.reg .v4 .u32 u; .reg .v2 .b32 v<4>;
)";

std::string module_of(const std::string& text)
{
    return ptx_kernel("sm_90a", 1,
                      vectors + (".shared .align 128 .b8 sh[1024];\nmov.u32 %r1, sh;\n" + text));
}

bool taken_by_ptxas(const std::string& text)
{
    const std::string file = testing::TempDir() + "spelling.ptx";
    std::ofstream(file) << module_of(text);
    const std::string command = EMU_PTXAS " -arch=sm_90a -o /dev/null " + file + " >/dev/null 2>&1";
    return std::system(command.c_str()) == 0;
}

bool taken_here(const std::string& text)
{
    Machine machine(Config{});
    try {
        return LoadedModule(machine, module_of(text), "test.ptx").find("k") != nullptr;
    } catch (const ptx::Error&) {
        return false;
    }
}

TEST(Spelling, TakenAsByPtxas)
{
    for (const char* text :
         {"ld .global .u32 %r2, [%rd0];", "ld\n.global // why\n.u32 %r2, [%rd0];",
          "ld /* a */ .global\t.u32 %r2, [%rd0];", "ld\f.global\r.u32 %r2, [%rd0];",
          "@%p1 ld .global .u32 %r2, [%rd0];", "@! %p1 ld.global .u32 %r2, [%rd0];",
          "mbarrier.init .shared::cta.b64 [%r1], 1;", "fence.proxy.async .shared::cta;",
          "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group .L2::cache_hint "
          "[%rd0, {%r2, %r3}], [%r1], %rd2;",
          "add .s32%r2,%r3 ,%r4 ;", "setp .lt .s32 %p1 | %p2, %r2, %r3;", "mov .u32 %r2, %tid .x;",
          "mov.f32 a .x, q .w;", "L1 : bra L1;",
          // Vector registers
          ".reg.v2.b32 e; mov.b32 e.x, 0;", ".reg .align 8 .v4 .b8 e;",
          "max.f32 a.x, a.y, q.r; min.f32 q.g, q.b, q.a;", "mov.b32 v1.x, v3.y;", "mov.v2.f32 a, b;",
          "mov.v2.f32 a, {%f1, %f2};", "mov.v2.f32 {%f1, %f2}, a;", "mov.v2.f32 {%f1, %f2}, {%f3, %f4};",
          "mov.v2.b32 wb, {1, 2};", "mov.v2.f32 a, 0f00000000;", "mov.v4.u32 u, %tid;",
          "mov.v4.u32 {%r2, %r3, %r4, %r5}, %ntid;", "mov.b64 %rd2, a;", "mov.b64 a, %rd2;",
          "mov.b32 %r2, h;", "mov.b64 {a.x, a.y}, %rd2;", "ld.global.v2.f32 a, [%rd0];",
          "ld.global.v4.f32 q, [%rd0];", "ld.global.v2.b64 d, [%rd0];",
          "ld.global.v2.f32 {a.x, %f1}, [%rd0];", "st.global.v4.b32 [%rd0], w;",
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 w, [%r1];",
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 q, wb, {%r1}, q;"}) {
        EXPECT_TRUE(taken_by_ptxas(text)) << text;
        EXPECT_TRUE(taken_here(text)) << text;
    }
}

TEST(Spelling, RefusedAsByPtxas)
{
    for (const char* text :
         {"ld. global.u32 %r2, [%rd0];", "ld.global . u32 %r2, [%rd0];", "add . s32 %r2, %r3, %r4;",
          "mbarrier.init.shared ::cta.b64 [%r1], 1;", "mbarrier.init.shared:: cta.b64 [%r1], 1;",
          "mov.u32 %r2, %tid. x;", "mov.u32 %r2, % tid.x;", "mov.f32 %f2, 0f 3F800000;",
          // Vector registers
          ".reg .v2 .pred e;", ".reg .v4 .b64 e;", ".reg .v8 .b32 e;", ".reg .b32 .v2 e;",
          "add.f32 a, a, b;", "mov.f32 a, b;", "mov.b64 a, b;", "mov.v4.f32 a, b;", "mov.v4.f32 q, {a, b};",
          "mov.v2.u32 %r2, %r3;", "mov.u32 %r2, %tid;", "mov.v2.f32 a, {%f1, _};",
          "ld.global.v2.f32 q, [%rd0];", "ld.global.v2.f32 a.x, [%rd0];",
          "ld.global.v4.f32 {a, b}, [%rd0];", "ld.global.b64 a, [%rd0];"}) {
        EXPECT_FALSE(taken_by_ptxas(text)) << text;
        EXPECT_FALSE(taken_here(text)) << text;
    }
}

TEST(Spelling, VectorRegistersHoldTheirComponents)
{
    Device device(90);
    std::vector<uint32_t> words(4);
    std::iota(words.begin(), words.end(), 10);
    const uint64_t in = device.put(words), out = device.put(std::vector<uint32_t>(12));
    const std::string text = std::string(vectors) + R"(
        ld .global .v4 .b32 w, [%rd0];
        mov.v4.b32 w, {w.y, w.x, w.a, w.b};
        st.global.v4.b32 [%rd1], w;
        { .reg .v2 .b32 w; mov.v2.b32 w, 7; mov.b32 w.g, w .x; st.global.v2.b32 [%rd1+16], w; }
        mov.v2.b32 v1, {1, 2};
        mov.b64 %rd5, v1;
        mov.b64 v2, %rd5;
        add.u32 v2.x, v2.x, v1.y;
        st.global.v2.b32 [%rd1 + 24], v2;
        mov.v4.u32 u, %ntid;
        st.global.v4.u32 [%rd1 + 32], u;)";
    EXPECT_EQ(device.run(ptx_kernel("sm_90a", 2, text), shape_of(1, 1), {in, out}), "") << device.message();
    EXPECT_EQ(device.get<uint32_t>(out, 12),
              (std::vector<uint32_t>{11, 10, 13, 12, 7, 7, 3, 2, 1, 1, 1, 0}));
}

}  // namespace
}  // namespace emu
