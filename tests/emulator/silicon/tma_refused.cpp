// Boxes that a device refuses, one a kernel, and the like of them that it does not.
#include "makers.hpp"
#include "tensor.hpp"

namespace emu::silicon {
namespace {

constexpr uint32_t refused_threads = 32, box = 128;  // bytes: 8 x 4 words

enum class Copy { Load, Store, Add, Prefetch };
struct Try {
    Copy copy;
    int x, y;
};
const Try tries[refused_boxes] = {{Copy::Load, 4, 1},     {Copy::Load, -4, -1},   {Copy::Load, 2, 0},
                                  {Copy::Load, -6, 0},    {Copy::Store, 4, 1},    {Copy::Store, 2, 0},
                                  {Copy::Store, -4, 0},   {Copy::Store, 0, -1},   {Copy::Add, 4, 1},
                                  {Copy::Add, 2, 0},      {Copy::Add, -4, 0},     {Copy::Add, 0, -1},
                                  {Copy::Prefetch, 4, 1}, {Copy::Prefetch, 2, 0}, {Copy::Prefetch, -4, -1}};

TensorMap map_of(Copy copy)
{
    TensorMap map;
    map.type = U32;
    map.rank = 2;
    map.size[0] = 16, map.size[1] = 8, map.stride[0] = 64;
    map.box[0] = 8, map.box[1] = 4;
    map.of_output = copy == Copy::Store || copy == Copy::Add;
    map.offset = map.of_output ? status_bytes + box : 0;
    return map;
}

}  // namespace

Kernel make_tma_refused(Random& random, uint32_t seed)
{
    const Try& t = tries[seed];
    Text text;
    Kernel kernel;
    kernel.block.x = refused_threads;
    kernel.maps.push_back(map_of(t.copy));
    kernel.input = draw_bytes(random, 'i', 512);
    kernel.output = untouched(status_bytes + box + 512);
    const std::string base = text.shared("memory", box, 128), barrier = text.shared("barrier", 8, 8);
    text("@{} mbarrier.init.shared::cta.b64 [{}], 1;", thread_is(text, 0), barrier);
    fill_shared(text, base, box, 0, refused_threads);
    text("fence.proxy.async.shared::cta;");
    text("bar.sync 0;");
    const std::string at = box_operand(text, 0, {t.x, t.y});
    text("@!{} bra END;", thread_is(text, 0));
    if (t.copy == Copy::Load) {
        text("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", barrier, box);
        text("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{}], {}, "
             "[{}];",
             base, at, barrier);
        wait_parity(text, barrier, "0");
    } else if (t.copy == Copy::Prefetch) {
        text("cp.async.bulk.prefetch.tensor.2d.L2.global.tile {};", at);
    } else {
        text("{}.2d.global.shared::cta{}.tile.bulk_group {}, [{}];",
             t.copy == Copy::Add ? "cp.reduce.async.bulk.tensor" : "cp.async.bulk.tensor",
             t.copy == Copy::Add ? ".add" : "", at, base);
        text("cp.async.bulk.commit_group;");
        text("cp.async.bulk.wait_group 0;");
    }
    text.lines("END:\n");
    text("bar.sync 0;");
    dump_shared(text, base, box, status_bytes, refused_threads);
    kernel.ptx = text.finish(1);
    return kernel;
}

}  // namespace emu::silicon
