// mma.sync, ldmatrix, stmatrix and movmatrix.
#include "makers.hpp"
#include "text.hpp"

#include <cstring>

namespace emu::silicon {
namespace {

// ---- mma.sync: fragments of random values -----------------------------------------------------------
struct MmaForm {
    const char *shape, *types;
    char operand, accumulator;  // letters of random.hpp
    int a, b, c;                // registers
};
const MmaForm mma_forms_list[] = {
    {"m16n8k16", "f32.f16.f16.f32", 'H', 'F', 4, 2, 4},
    {"m16n8k16", "f16.f16.f16.f16", 'H', 'H', 4, 2, 2},
    {"m16n8k16", "f32.bf16.bf16.f32", 'B', 'F', 4, 2, 4},
    {"m16n8k8", "f32.f16.f16.f32", 'H', 'F', 2, 1, 4},
    {"m16n8k8", "f16.f16.f16.f16", 'H', 'H', 2, 1, 2},
    {"m16n8k8", "f32.bf16.bf16.f32", 'B', 'F', 2, 1, 4},
};
constexpr int tiles = 8;
constexpr uint32_t row = threads * 4;  // bytes of one register of all threads

std::vector<std::string> load_registers(Text& text, int count, const std::string& from, uint32_t& plane)
{
    std::vector<std::string> registers = text.words(count);
    for (const std::string& name : registers)
        text("ld.global.b32 {}, [{} + {}];", name, from, plane++ * row);
    return registers;
}

// ---- ldmatrix and stmatrix: rows of a small shared memory in random order ---------------------------
constexpr uint32_t matrix_bytes = 8192, steps = 8;

std::string row_address(Text& text, const std::string& base, const std::string& table, uint32_t step)
{
    const std::string place = text.word();
    text("ld.global.b32 {}, [{} + {}];", place, table, matrix_bytes + step * row);
    return sum(text, base, place);
}

void matrix_step(Text& text, Random& random, const std::string& base, const std::string& table,
                 const std::string& out, uint32_t step, bool loads)
{
    const int count = 1 << (step % 3);
    const char* transposed = random.chance(50) ? ".trans" : "";
    const std::string address = row_address(text, base, table, step);
    const std::vector<std::string> registers = text.words(count);
    if (!loads)
        for (int i = 0; i < count; ++i)
            text("ld.global.b32 {}, [{} + {}];", registers[i], table,
                 matrix_bytes + (steps + step * 4 + i) * row);
    const std::string list = Text::list(registers);
    if (!loads)
        return text("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [{}], {};", count, transposed, address,
                    list);
    text("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [{}];", count, transposed, list, address);
    for (int i = 0; i < count; ++i)
        text("st.global.b32 [{} + {}], {};", out, status_bytes + (step * 4 + i) * row, registers[i]);
}

// Offsets of rows: any for loads; for stores a permutation of each step's part of the memory.
std::vector<uint32_t> row_table(Random& random, bool loads)
{
    constexpr uint32_t rows = matrix_bytes / 16;
    std::vector<uint32_t> table(steps * threads);
    for (uint32_t step = 0; step < steps; ++step)
        for (uint32_t thread = 0; thread < threads; ++thread) {
            table[step * threads + thread] = loads ? random.below(rows) * 16 : 0;
            if (loads)
                continue;
            const uint32_t other = random.below(thread + 1);
            table[step * threads + thread] = table[step * threads + other];
            table[step * threads + other] = ((step % 4) * threads + thread) * 16;
        }
    return table;
}

}  // namespace

Kernel make_mma(Random& random, uint32_t seed)
{
    const MmaForm& form = mma_forms_list[seed % std::size(mma_forms_list)];
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    const std::string offset = scaled(text, "%t", 4);
    const std::string in = global_address(text, "%in", offset), out = global_address(text, "%out", offset);
    uint32_t plane = 0, result = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        const auto range = static_cast<Range>((tile + seed) % ranges);
        const auto a = load_registers(text, form.a, in, plane), b = load_registers(text, form.b, in, plane);
        const auto c = load_registers(text, form.c, in, plane), d = text.words(form.c);
        text("mma.sync.aligned.{}.row.col.{} {}, {}, {}, {};", form.shape, form.types, Text::list(d),
             Text::list(a), Text::list(b), Text::list(c));
        for (const std::string& name : d)
            text("st.global.b32 [{} + {}], {};", out, status_bytes + result++ * row, name);
        append(kernel.input, draw_range(random, form.operand, range, (form.a + form.b) * row));
        append(kernel.input, draw_range(random, form.accumulator, range, form.c * row));
    }
    kernel.output = untouched(status_bytes + result * row);
    kernel.ptx = text.finish();
    return kernel;
}

Kernel make_matrix(Random& random, uint32_t seed)
{
    const bool loads = seed % 2 == 0;
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.input = draw_bytes(random, 'i', matrix_bytes + (steps + steps * 4) * row);
    const std::vector<uint32_t> table = row_table(random, loads);
    std::memcpy(kernel.input.data() + matrix_bytes, table.data(), table.size() * 4);
    const std::string base = text.shared("memory", matrix_bytes, 128);
    const std::string offset = scaled(text, "%t", 4);
    const std::string in = global_address(text, "%in", offset), out = global_address(text, "%out", offset);
    fill_shared(text, base, matrix_bytes, 0, threads);
    text("bar.sync 0;");
    for (uint32_t step = 0; step < steps; ++step) {
        matrix_step(text, random, base, in, out, step, loads);
        text("bar.sync 0;");
    }
    if (!loads)
        dump_shared(text, base, matrix_bytes, status_bytes, threads);
    const auto words = text.words(2);
    text("ld.global.b32 {}, [{} + {}];", words[0], in, matrix_bytes);
    text("movmatrix.sync.aligned.m8n8.trans.b16 {}, {};", words[1], words[0]);
    text("st.global.b32 [{} + {}], {};", out, status_bytes + steps * 4 * row, words[1]);
    kernel.output = untouched(status_bytes + (steps * 4 + 1) * row);
    kernel.ptx = text.finish();
    return kernel;
}

}  // namespace emu::silicon
