// cp.async: sizes, zero fill, ignored sources, groups and arrivals at an mbarrier.
#include "makers.hpp"
#include "text.hpp"

#include <cstring>

namespace emu::silicon {
namespace {

constexpr uint32_t copies = 8, room = 16;  // bytes that a thread's copy may write
constexpr uint32_t bytes = threads * copies * room;

void copy(Text& text, Random& random, const std::string& to, const std::string& from,
          const std::string& table, uint32_t index)
{
    const uint32_t size = random.pick<uint32_t>({4, 8, 16, 16});
    const char* cache = size == 16 && random.chance(50) ? "cg" : "ca";
    const uint32_t place = index * room + (size < 16 ? size * random.below(16 / size) : 0);
    const uint32_t source = index * room + (size < 16 ? size * random.below(16 / size) : 0);
    std::string more;
    const std::string word = text.word();
    text("ld.global.b32 {}, [{} + {}];", word, table, index * threads * 4);
    if (random.chance(40)) {
        const std::string limited = text.word();
        text("rem.u32 {}, {}, {};", limited, word, size + 1);
        more = ", " + limited;
    } else if (random.chance(40)) {
        const std::string ignored = text.predicate();
        text("setp.lt.s32 {}, {}, 0;", ignored, word);
        more = ", " + ignored;
    }
    text("cp.async.{}.shared.global [{} + {}], [{} + {}], {}{};", cache, to, place, from, source, size,
         more);
}

}  // namespace

Kernel make_cp_async(Random& random, uint32_t seed)
{
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.input = draw_bytes(random, 'i', bytes);
    const std::vector<uint8_t> table = draw_bytes(random, 'i', copies * threads * 4);
    kernel.input.insert(kernel.input.end(), table.begin(), table.end());
    const auto prefill_at = static_cast<uint32_t>(kernel.input.size());
    const std::vector<uint8_t> prefill = untouched(bytes);
    kernel.input.insert(kernel.input.end(), prefill.begin(), prefill.end());
    const std::string base = text.shared("memory", bytes, 128), barrier = text.shared("barrier", 8, 8);
    const bool at_barrier = seed % 3 == 2;
    text("@{} mbarrier.init.shared::cta.b64 [{}], {};", thread_is(text, 0), barrier,
         seed % 2 ? threads : 2 * threads);
    fill_shared(text, base, bytes, prefill_at, threads);
    text("bar.sync 0;");
    const std::string own = scaled(text, "%t", copies * room), to = sum(text, base, own);
    const std::string from = global_address(text, "%in", own);
    const std::string numbers = global_address(text, "%in", scaled(text, "%t", 4, bytes));
    for (uint32_t i = 0; i < copies; ++i) {
        copy(text, random, to, from, numbers, i);
        if (seed % 3 == 1 && i % 2)
            text("cp.async.commit_group;");
    }
    if (at_barrier) {
        // Without .noinc the arrival is counted besides those expected: the ordinary one must come too.
        const bool increments = seed % 2 == 0 && seed % 4 == 0;
        text("cp.async.mbarrier.arrive{}.shared::cta.b64 [{}];", increments ? "" : ".noinc", barrier);
        if (seed % 2 == 0)
            text("mbarrier.arrive.shared::cta.b64 _, [{}];", barrier);
        if (increments)
            text("mbarrier.arrive.shared::cta.b64 _, [{}];", barrier);
        wait_parity(text, barrier, "0");
    } else if (seed % 3 == 1) {
        text("cp.async.wait_group 2;");
        text("cp.async.wait_group 0;");
    } else {
        text("cp.async.wait_all;");
    }
    text("bar.sync 0;");
    dump_shared(text, base, bytes, status_bytes, threads);
    kernel.output = untouched(status_bytes + bytes);
    kernel.ptx = text.finish();
    return kernel;
}

}  // namespace emu::silicon
