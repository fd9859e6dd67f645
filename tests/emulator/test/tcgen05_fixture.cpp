#include "test/tcgen05_fixture.hpp"

#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {

namespace {

constexpr int image_bytes = 65536, threads = 128;

// The kernel: its parameters; the image and tensor memory; the work; what tensor memory holds then.
const char head_text[] = R"(.version 9.0
.target sm_100a
.address_size 64

.visible .entry k(
    .param .u64 p_image, .param .u64 p_before, .param .u64 p_after, .param .u64 p_bytes,
    .param .u64 p_a, .param .u64 p_b, .param .u64 p_idesc, .param .u64 p_enable)
{
    .reg .pred %p, %first, %enable, %leader;
    .reg .b16 %mask;
    .reg .b32 %t, %off, %bytes, %tmem, %idesc, %word, %column, %rank, %here, %x, %y, %warp, %lane;
    .reg .b32 %v<128>;
    .reg .b64 %image, %before, %after, %a, %b, %at, %wide;
    .shared .align 1024 .b8 smem[65536];
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 slot;

    ld.param.u64 %image, [p_image];
    ld.param.u64 %before, [p_before];
    ld.param.u64 %after, [p_after];
    ld.param.u32 %bytes, [p_bytes];
    ld.param.u64 %a, [p_a];
    ld.param.u64 %b, [p_b];
    ld.param.u32 %idesc, [p_idesc];
    ld.param.u32 %word, [p_enable];
    setp.ne.u32 %enable, %word, 0;
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %leader, %rank, 0;
    and.pred %leader, %leader, %first;
    shr.u32 %warp, %t, 5;
    shl.b32 %lane, %warp, 21;
    mov.u32 %here, smem;
)";

const char start_text[] = R"(
    mul.wide.u32 %wide, %rank, 65536;
    add.u64 %image, %image, %wide;
    shl.b32 %off, %t, 4;
copy:
    setp.ge.u32 %p, %off, %bytes;
    @%p bra copied;
    cvt.u64.u32 %at, %off;
    add.u64 %at, %at, %image;
    ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%at];
    add.u32 %x, %here, %off;
    st.shared.v4.u32 [%x], {%v0, %v1, %v2, %v3};
    add.u32 %off, %off, 2048;
    bra copy;
copied:
    setp.ne.u32 %p, %warp, 0;
    @%p bra allocated;
    tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [slot], COLUMNS;
    tcgen05.relinquish_alloc_permit.cta_group::GROUP.sync.aligned;
allocated:
    @%first mbarrier.init.shared::cta.b64 [done], 1;
    fence.proxy.async.shared::cta;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ld.shared.u32 %tmem, [slot];
)";

const char work_text[] = R"(
    mul.lo.u32 %x, %t, COLUMNS;
    mad.lo.u32 %x, %rank, ALL_CELLS, %x;
    mul.wide.u32 %wide, %x, 4;
    add.u64 %before, %before, %wide;
    add.u64 %after, %after, %wide;
    FILL
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;

    @!%leader bra issued;
    tcgen05.fence::after_thread_sync;
    cvt.u64.u32 %wide, %here;
    shr.u64 %wide, %wide, 4;
    add.u64 %a, %a, %wide;
    add.u64 %b, %b, %wide;
    WORK
    mov.u16 %mask, MASK;
    tcgen05.commit.cta_group::GROUP.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %mask;
issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [done], 0;
    @!%p bra issued;
    tcgen05.fence::after_thread_sync;
)";

const char end_text[] = R"(
    SHOW
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    setp.ne.u32 %p, %warp, 0;
    @%p bra end;
    tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %tmem, COLUMNS;
end:
    ret;
}
)";

const char fill_text[] = R"(mov.u32 %column, 0;
fill:
    mul.wide.u32 %wide, %column, 4;
    add.u64 %at, %before, %wide;
    ld.global.u32 %v0, [%at];
    add.u32 %x, %tmem, %column;
    add.u32 %x, %x, %lane;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {%v0};
    add.u32 %column, %column, 1;
    setp.lt.u32 %p, %column, COLUMNS;
    @%p bra fill;)";

const char show_text[] = R"(mov.u32 %column, 0;
show:
    add.u32 %x, %tmem, %column;
    add.u32 %x, %x, %lane;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x];
    tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %wide, %column, 4;
    add.u64 %at, %after, %wide;
    st.global.u32 [%at], %v0;
    add.u32 %column, %column, 1;
    setp.lt.u32 %p, %column, COLUMNS;
    @%p bra show;)";

void replace_all(std::string& text, const std::string& from, const std::string& to)
{
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

}  // namespace

Probe::Probe(int ctas_of_cluster, int shown) : ctas(ctas_of_cluster), columns(shown), group(ctas_of_cluster)
{
    images.assign(ctas, std::vector<uint8_t>(image_bytes));
    before.assign(ctas, std::vector<uint32_t>(threads * columns));
    after = before;
}

std::string Probe::text() const
{
    std::string text = std::string(head_text) + start_text + work_text + end_text;
    replace_all(text, "WORK", work);
    replace_all(text, "FILL", fill.empty() ? fill_text : fill);
    replace_all(text, "SHOW", show.empty() ? show_text : show);
    for (const auto& [from, to] : changes) {
        const size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        if (at != std::string::npos)
            text.replace(at, from.size(), to);
    }
    replace_all(text, "GROUP", std::to_string(group));
    replace_all(text, "ALL_CELLS", std::to_string(threads * columns));
    replace_all(text, "COLUMNS", std::to_string(columns));
    replace_all(text, "MASK", std::to_string((1 << ctas) - 1));
    return text;
}

std::string Probe::run()
{
    Device device(100, seed);
    std::vector<uint8_t> image;
    std::vector<uint32_t> in;
    for (int cta = 0; cta < ctas; ++cta) {
        image.insert(image.end(), images[cta].begin(), images[cta].end());
        in.insert(in.end(), before[cta].begin(), before[cta].end());
    }
    const uint64_t out = device.put(std::vector<uint32_t>(in.size()));
    const std::string reports =
        device.run(text(), shape_of(ctas, threads, ctas),
                   {device.put(image), device.put(in), out, image_bytes, a, b, descriptor, enable});
    message = device.message();
    const std::vector<uint32_t> shown = device.get<uint32_t>(out, in.size());
    for (int cta = 0; cta < ctas; ++cta)
        after[cta].assign(shown.begin() + cta * threads * columns,
                          shown.begin() + (cta + 1) * threads * columns);
    return reports;
}

}  // namespace emu
