// What tcgen05 kernels must not do: a working kernel with one thing wrong.
#include "test/tcgen05_product.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

std::string run_changed(std::vector<std::pair<std::string, std::string>> changes, int group = 1)
{
    IntegerProduct product({group, 128, 32});
    product.probe.changes = std::move(changes);
    return product.probe.run();
}

bool has(const std::string& kinds, const std::string& kind)
{
    return (" " + kinds + " ").find(" " + kind + " ") != std::string::npos;
}

const std::string tid_fence = "fence.proxy.async.shared::cta;";
const std::string wait_loop = R"(    mbarrier.try_wait.parity.shared::cta.b64 %p, [done], 0;
    @!%p bra issued;
)";
const std::string after_wait = R"(bra issued;
    tcgen05.fence::after_thread_sync;)";

TEST(Tcgen05Rules, missing_order_is_reported)
{
    for (const int group : {1, 2}) {
        EXPECT_EQ(run_changed({}, group), "");
        EXPECT_EQ(run_changed({{tid_fence, ""}}, group), "missing-proxy-fence");
        const std::string no_wait = run_changed({{wait_loop, ""}}, group);
        EXPECT_TRUE(has(no_wait, "race") || has(no_wait, "tmem-use-after-free")) << no_wait;
        EXPECT_EQ(run_changed({{after_wait, "bra issued;"}}, group), "missing-tcgen05-fence");
        EXPECT_TRUE(has(run_changed({{"tcgen05.wait::st.sync.aligned;", ""}}, group), "race"));
        EXPECT_EQ(run_changed({{"tcgen05.wait::ld.sync.aligned;", ""}}, group), "race")
            << "freed under the loads; their registers may be used";
    }
}

TEST(Tcgen05Rules, fences_around_barriers_are_needed)
{
    EXPECT_EQ(run_changed({{"    tcgen05.fence::before_thread_sync;\n    barrier", "    barrier"}}),
              "missing-tcgen05-fence");
    EXPECT_EQ(run_changed({{"bra issued;\n    tcgen05.fence::after_thread_sync;\n    cvt",
                            "bra issued;\n    cvt"}}),
              "missing-tcgen05-fence");
    const std::string meet = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    setp";
    for (const int group : {1, 2})
        EXPECT_EQ(run_changed({{"tcgen05.fence::before_thread_sync;\n    " + meet, meet}}, group),
                  "missing-tcgen05-fence")
            << "freed behind a barrier alone";
}

TEST(Tcgen05Rules, a_missing_commit_is_a_deadlock)
{
    EXPECT_EQ(run_changed({{"tcgen05.commit", "// tcgen05.commit"}}), "deadlock");
    EXPECT_EQ(run_changed({{"MASK;\n", "1;\n"}}, 2), "deadlock") << "the other CTA is not told";
}

TEST(Tcgen05Rules, a_commit_without_a_space_takes_a_generic_address)
{
    const std::string line = "tcgen05.commit.cta_group::GROUP.mbarrier::arrive::one.shared::cluster."
                             "multicast::cluster.b64 [done], %mask;";
    const std::string short_line = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%wide];";
    EXPECT_EQ(run_changed({{line, "cvta.shared.u64 %wide, done; " + short_line}}), "");
    EXPECT_EQ(run_changed({{line, "mov.u64 %wide, done; " + short_line}}), "not-generic");
}

TEST(Tcgen05Rules, allocation)
{
    const std::string free = "tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %tmem, COLUMNS;";
    const std::string allocate = "[slot], COLUMNS;";
    const std::string relinquish = "tcgen05.relinquish_alloc_permit.cta_group::GROUP.sync.aligned;";
    const std::string second = "tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32";
    const std::string again = second + " [slot], ";
    for (const int group : {1, 2}) {
        EXPECT_EQ(run_changed({{free, ""}}, group), "tmem-leak");
        EXPECT_EQ(run_changed({{free, free + free}}, group), "tmem-free") << "freed twice";
        EXPECT_EQ(
            run_changed({{free, "tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %tmem, 64;"}}, group),
            "tmem-free");
        EXPECT_EQ(run_changed({{allocate, "[slot], 48;"}}, group), "tmem-columns");
        EXPECT_EQ(run_changed({{allocate, "[slot], 16;"}}, group), "tmem-columns");
        EXPECT_EQ(run_changed({{relinquish, relinquish + again + "32;"}}, group), "tmem-alloc");
        EXPECT_TRUE(has(run_changed({{relinquish, second + " [smem], 64;"}}, group), "tmem-growth"));
        EXPECT_EQ(run_changed({{allocate, "[slot], 512;"}, {relinquish, again + "32;"}}, group),
                  "deadlock");
    }
}

TEST(Tcgen05Rules, addresses_in_tensor_memory)
{
    const std::string load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x];";
    EXPECT_EQ(run_changed({{load, "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x + 32];"}}),
              "tmem-unallocated");
    EXPECT_EQ(run_changed({{load, "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x + 65536];"}}),
              "tmem-lane-alignment");
    EXPECT_EQ(run_changed({{load, "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x + 2097152];"}}),
              "tmem-lane-window");
    EXPECT_EQ(run_changed({{mma_line, "add.u32 %tmem, %tmem, 8;" + std::string(mma_line)}}),
              "tmem-unallocated");
}

TEST(Tcgen05Rules, mixed_groups_and_missing_pairs)
{
    IntegerProduct product({1, 128, 32});
    product.probe.work = "tcgen05.mma.cta_group::2.kind::f16 [%tmem], %a, %b, %idesc, %enable;";
    EXPECT_EQ(product.probe.run(), "tcgen05-no-pair");
    IntegerProduct pair({2, 256, 32});
    pair.probe.changes = {{"tcgen05.commit.cta_group::GROUP", "tcgen05.commit.cta_group::1"}};
    EXPECT_TRUE(has(pair.probe.run(), "tcgen05-mixed-groups"));
}

TEST(Tcgen05Rules, uninitialised_tensor_memory)
{
    EXPECT_EQ(run_changed({{"tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {%v0};", ""}}),
              "uninitialised-read");
}

TEST(Tcgen05Rules, refused_forms)
{
    for (const char* line :
         {"tcgen05.mma.cta_group::1.kind::i8 [%tmem], %a, %b, %idesc, %enable, 1;",
          "tcgen05.mma.cta_group::1.kind::mxf8f6f4 [%tmem], %a, %b, %idesc, %enable;",
          "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X [%tmem], %a, %b, %idesc, [%tmem], "
          "[%tmem], %enable;",
          "tcgen05.mma.kind::f16 [%tmem], %a, %b, %idesc, %enable;",
          "tcgen05.mma.cta_group::1.kind::f16 [%tmem], %a, %b, %idesc;",
          "tcgen05.mma.cta_group::1.kind::f16 [%tmem], %a, %b, %idesc, %enable, 16;",
          "tcgen05.mma.cta_group::1.kind::f16.ashift [%tmem], %a, %b, %idesc, %enable;",
          "tcgen05.mma.sp.cta_group::1.kind::f16 [%tmem], %a, %b, %idesc, %enable;",
          "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0}, [%tmem];",
          "tcgen05.ld.sync.aligned.32x32b.x3.b32 {%v0, %v1, %v2}, [%tmem];",
          "tcgen05.cp.cta_group::1.64x128b [%tmem], %a;", "tcgen05.shift.cta_group::1.down [%tmem];"}) {
        IntegerProduct product({1, 128, 32});
        product.probe.work = line;
        EXPECT_EQ(product.probe.run(), "refused") << line;
    }
}

}  // namespace
}  // namespace emu
