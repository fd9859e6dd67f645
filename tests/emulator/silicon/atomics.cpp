// atom and red on global and shared memory: each thread on a cell of its own, where the old value is kept,
// and all threads on common cells, with operations whose order does not matter.
#include "makers.hpp"
#include "text.hpp"

#include <cstring>

namespace emu::silicon {
namespace {

constexpr uint32_t atomic_cell = 16, plane = threads * atomic_cell;

struct Atomic {
    const char* name;
    char letter;  // of random.hpp, for memory and operands
    int count;    // elements of a vector
    bool global_only, commutes, swaps;
};
const Atomic atomics[] = {
    {"add.u32", 'i', 1, false, true, false},
    {"add.s32", 'i', 1, false, true, false},
    {"add.u64", 'l', 1, false, true, false},
    {"min.u32", 'i', 1, false, true, false},
    {"min.s32", 'i', 1, false, true, false},
    {"max.u32", 'i', 1, false, true, false},
    {"max.s32", 'i', 1, false, true, false},
    {"min.u64", 'l', 1, false, true, false},
    {"min.s64", 'l', 1, false, true, false},
    {"max.u64", 'l', 1, false, true, false},
    {"max.s64", 'l', 1, false, true, false},
    {"and.b32", 'i', 1, false, true, false},
    {"or.b32", 'i', 1, false, true, false},
    {"xor.b32", 'i', 1, false, true, false},
    {"and.b64", 'l', 1, false, true, false},
    {"or.b64", 'l', 1, false, true, false},
    {"xor.b64", 'l', 1, false, true, false},
    {"inc.u32", 'i', 1, false, false, false},
    {"dec.u32", 'i', 1, false, false, false},
    {"exch.b32", 'i', 1, false, false, false},
    {"exch.b64", 'l', 1, false, false, false},
    {"cas.b32", 'k', 1, false, false, true},
    {"cas.b64", 'l', 1, false, false, true},
    {"cas.b16", 'u', 1, false, false, true},
    {"add.f32", 'F', 1, false, false, false},
    {"add.f64", 'D', 1, false, false, false},
    {"add.noftz.f16", 'H', 1, false, false, false},
    {"add.noftz.bf16", 'B', 1, false, false, false},
    {"add.noftz.f16x2", 'P', 1, false, false, false},
    {"add.noftz.bf16x2", 'Q', 1, false, false, false},
    {"add.v2.f32", 'F', 2, true, false, false},
    {"add.v4.f32", 'F', 4, true, false, false},
    {"add.noftz.v2.f16", 'H', 2, true, false, false},
    {"add.noftz.v8.f16", 'H', 8, true, false, false},
    {"min.noftz.v4.f16", 'H', 4, true, false, false},
    {"max.noftz.v4.f16x2", 'P', 4, true, false, false},
    {"add.noftz.v8.bf16", 'B', 8, true, false, false},
    {"min.noftz.v2.bf16x2", 'Q', 2, true, false, false},
    {"max.noftz.v4.bf16", 'B', 4, true, false, false},
};
constexpr uint32_t slice = 8;  // of the list, for a kernel

struct Places {
    std::string in, out, shared, common;
};

std::string register_for(Text& text, char letter)
{
    const int bytes = bytes_of(letter);
    return bytes == 2 ? text.half() : bytes == 8 ? text.wide() : text.word();
}

// Operands of a thread, loaded from the input.
std::vector<std::string> load(Text& text, const Atomic& atomic, const std::string& in, uint32_t offset)
{
    std::vector<std::string> registers;
    for (int i = 0; i < atomic.count; ++i) {
        registers.push_back(register_for(text, atomic.letter));
        text("ld.global.b{} {}, [{} + {}];", 8 * bytes_of(atomic.letter), registers.back(), in,
             offset + i * bytes_of(atomic.letter));
    }
    return registers;
}

std::string operand(const Atomic& atomic, const std::vector<std::string>& registers)
{
    return atomic.count == 1 ? registers[0] : Text::list(registers);
}

// The old value goes to the output.
void private_cell(Text& text, const Atomic& atomic, const std::string& space, const std::string& address,
                  const Places& places, uint32_t offset, uint32_t result)
{
    const std::vector<std::string> value = load(text, atomic, places.in, offset);
    std::vector<std::string> old;
    for (int i = 0; i < atomic.count; ++i)
        old.push_back(register_for(text, atomic.letter));
    std::string more;
    if (atomic.swaps)
        more = ", " + load(text, atomic, places.in, offset + 8)[0];
    text("atom.{}.{} {}, [{}], {}{};", space, atomic.name, operand(atomic, old), address,
         operand(atomic, value), more);
    for (int i = 0; i < atomic.count; ++i)
        text("st.global.b{} [{} + {}], {};", 8 * bytes_of(atomic.letter), places.out,
             result + i * bytes_of(atomic.letter), old[i]);
}

// One operation: on cells of the output and of shared memory; planes of input, memory and old values.
void apply(Text& text, const Atomic& atomic, const Places& places, uint32_t index)
{
    const uint32_t input = index * plane, before = (slice + index) * plane;
    const uint32_t cells = status_bytes + index * plane, first = (slice + 2 * index) * plane + status_bytes;
    const std::vector<std::string> words = text.words(4);
    text("ld.global.v4.b32 {}, [{} + {}];", Text::list(words), places.in, before);
    text("st.global.v4.b32 [{} + {}], {};", places.out, cells, Text::list(words));
    private_cell(text, atomic, "global", fmt::format("{} + {}", places.out, cells), places, input, first);
    if (!atomic.global_only) {
        text("st.shared.v4.b32 [{}], {};", places.shared, Text::list(words));
        private_cell(text, atomic, "shared", places.shared, places, input, first + plane);
        text("ld.shared.v4.b32 {}, [{}];", Text::list(words), places.shared);
        text("st.global.v4.b32 [{} + {}], {};", places.out,
             3 * slice * plane + index * plane + status_bytes, Text::list(words));
    }
    if (!atomic.commutes)
        return;
    const std::string value = load(text, atomic, places.in, input + 8)[0];
    text("red.shared.{} [{} + {}], {};", atomic.name, places.common, index * 8, value);
    text("red.relaxed.gpu.global.{} [%out + {}], {};", atomic.name, 32 + index * 8, value);
}

}  // namespace

Kernel make_atomics(Random& random, uint32_t seed)
{
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    const std::string own = scaled(text, "%t", atomic_cell), base = text.shared("cells", plane, 16);
    const std::string common = text.shared("common", slice * 8 + 16, 16);
    const Places places{global_address(text, "%in", own), global_address(text, "%out", own),
                        sum(text, base, own), common};
    fill_shared(text, common, slice * 8, 2 * slice * plane, threads);
    text("bar.sync 0;");
    std::vector<uint8_t> memory;
    for (uint32_t i = 0; i < slice; ++i) {
        const Atomic& atomic = atomics[(seed * slice + i) % std::size(atomics)];
        const std::vector<uint8_t> operands = draw_bytes(random, atomic.letter, plane);
        std::vector<uint8_t> cells = draw_bytes(random, atomic.letter, plane);
        // A third of the swaps succeed.
        for (uint32_t at = 0; atomic.swaps && at < plane; at += 3 * atomic_cell)
            std::copy(operands.begin() + at, operands.begin() + at + 8, cells.begin() + at);
        kernel.input.insert(kernel.input.end(), operands.begin(), operands.end());
        memory.insert(memory.end(), cells.begin(), cells.end());
        apply(text, atomic, places, i);
    }
    kernel.input.insert(kernel.input.end(), memory.begin(), memory.end());
    const std::vector<uint8_t> start = draw_bytes(random, 'l', slice * 8);
    kernel.input.insert(kernel.input.end(), start.begin(), start.end());
    text("bar.sync 0;");
    const uint32_t end = status_bytes + 4 * slice * plane;
    dump_shared(text, common, slice * 8, end, threads);
    kernel.output = untouched(end + slice * 8);
    kernel.ptx = text.finish();
    return kernel;
}

}  // namespace emu::silicon
