// Bulk copies and reductions without tensor maps.
#include "numerics/reduction.hpp"

#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

TEST(Bulk, CopiesThereAroundAndBack)
{
    // Global -> rank 0 -> rank 1 (shared to shared) -> global; then a reduction on top.
    std::string body = R"(
.shared .align 128 .b8 smem[512];
.shared .align 8 .b64 bar;
mov.u32 %r2, smem;
mov.u32 %r3, bar;
mov.u32 %r4, %cluster_ctarank;
setp.eq.u32 %p0, %r0, 0;
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r3], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
fence.mbarrier_init.release.cluster;
READY: barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@!%p0 bra END;
setp.eq.u32 %p1, %r4, 1;
@%p1 bra SECOND;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 512, [%r3];
W0: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra W0;
mapa.shared::cluster.u32 %r5, %r2, 1;
mapa.shared::cluster.u32 %r6, %r3, 1;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], [%r2], 512, [%r6];
bra END;
SECOND: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra SECOND;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END: barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)";
    for (uint64_t seed = 1; seed <= 8; seed++) {
        Device device(90, seed);
        std::vector<uint32_t> values(128);
        for (uint32_t i = 0; i < 128; i++)
            values[i] = 1000 + i;
        uint64_t in = device.put(values), out = device.put(std::vector<uint32_t>(128));
        EXPECT_EQ(device.run(ptx_kernel("sm_90", 2, body), shape_of(2, 32, 2), {in, out}), "")
            << device.message();
        auto got = device.get<uint32_t>(out, 128);
        for (uint32_t i = 0; i < 128; i++)
            ASSERT_EQ(got[i], (1000 + i) * (i < 64 ? 2 : 1));
    }
}

TEST(Bulk, StoresAreWaitedForBeforeTheEnd)
{
    const std::string store = R"(
.shared .align 128 .b8 smem[64];
mov.u32 %r2, smem;
setp.eq.u32 %p0, %r0, 0;
@!%p0 bra END;
st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 16;
cp.async.bulk.commit_group;
)";
    for (const auto& [wait, expected] : {std::pair("", "unwaited-bulk-store"),
                                         {"cp.async.bulk.wait_group.read 1;", "unwaited-bulk-store"},
                                         {"cp.async.bulk.wait_group.read 0;", ""},
                                         {"cp.async.bulk.wait_group 0;", ""}}) {
        Device device(90);
        const uint64_t out = device.put(std::vector<uint32_t>(4));
        EXPECT_EQ(device.run(ptx_kernel("sm_90", 1, store + wait + "\nEND:"), shape_of(1, 64), {out}),
                  expected)
            << wait << device.message();
    }
}

TEST(Bulk, ReducesEveryType)
{
    auto check = [](Reduction reduction, Element element, auto old, auto value, auto expected) {
        reduce(reduction, element, &old, &value, 1);
        EXPECT_EQ(old, expected);
    };
    check(Reduction::Inc, Element::U32, 3u, 3u, 0u);
    check(Reduction::Inc, Element::U32, 2u, 3u, 3u);
    check(Reduction::Dec, Element::U32, 0u, 3u, 3u);
    check(Reduction::Dec, Element::U32, 9u, 3u, 3u);
    check(Reduction::Dec, Element::U32, 2u, 3u, 1u);
    check(Reduction::Min, Element::S32, -2, 1, -2);
    check(Reduction::Max, Element::U32, 0xfffffffeu, 1u, 0xfffffffeu);
    check(Reduction::Add, Element::U64, ~uint64_t{0}, uint64_t{2}, uint64_t{1});
    check(Reduction::Xor, Element::B32, 12u, 10u, 6u);
    check(Reduction::Add, Element::F32, 1.5f, 2.0f, 3.5f);
    check(Reduction::Add, Element::F64, 1.5, 2.0, 3.5);
    check(Reduction::Add, Element::F16, uint16_t{0x3c00}, uint16_t{0x1000},
          uint16_t{0x3c00});  // 1 + 2^-11: a tie
    check(Reduction::Add, Element::F16, uint16_t{0x3c01}, uint16_t{0x1000}, uint16_t{0x3c02});
    check(Reduction::Add, Element::Bf16, uint16_t{0x3f80}, uint16_t{0x3b80},
          uint16_t{0x3f80});  // 1 + 2^-8: a tie
    check(Reduction::Max, Element::Bf16, uint16_t{0x7fc0}, uint16_t{0x3f80}, uint16_t{0x3f80});
    check(Reduction::Min, Element::F16, uint16_t{0x8000}, uint16_t{0x0000}, uint16_t{0x8000});
}

}  // namespace
}  // namespace emu
