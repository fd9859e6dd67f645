// TMA stores and reductions: boxes that hang over the edges of tensors in the output.
#include "makers.hpp"
#include "tensor.hpp"

#include <algorithm>
#include <cstring>

namespace emu::silicon {
namespace {

constexpr uint32_t store_slot = 8192, store_maps = 3;
constexpr uint32_t store_room = 12 * 1024, tensor_bytes = store_room - 512;

struct StoreReduction {
    uint32_t type;
    const char* operation;
};
const StoreReduction store_reductions[] = {
    {U32, "add"},  {U32, "min"},  {U32, "max"}, {U32, "inc"}, {U32, "dec"}, {U32, "and"}, {U32, "or"},
    {U32, "xor"},  {S32, "add"},  {S32, "min"}, {S32, "max"}, {S32, "and"}, {S32, "or"},  {S32, "xor"},
    {U64, "add"},  {U64, "min"},  {U64, "max"}, {U64, "and"}, {U64, "or"},  {U64, "xor"}, {S64, "add"},
    {S64, "min"},  {S64, "max"},  {S64, "and"}, {F16, "add"}, {F16, "min"}, {F16, "max"}, {Bf16, "add"},
    {Bf16, "min"}, {Bf16, "max"}, {F32, "add"}, {F64, "add"}};

// One box of each map, from its part of shared memory.
Kernel make_boxes(Random& random, const std::vector<uint32_t>& types,
                  const std::vector<std::string>& opcodes)
{
    Text text;
    Kernel kernel;
    kernel.block.x = threads;
    kernel.output = untouched(status_bytes + store_maps * store_room);
    const std::string base = text.shared("memory", store_maps * store_slot, 1024);
    fill_shared(text, base, store_maps * store_slot, 0, threads);
    text("fence.proxy.async.shared::cta;");
    text("bar.sync 0;");
    text("@!{} bra END;", thread_is(text, 0));
    for (uint32_t i = 0; i < store_maps; ++i) {
        MapLimits limits;
        limits.tensor_bytes = tensor_bytes;
        TensorMap map = draw_map(random, types[i], limits);
        map.of_output = true;
        map.offset = status_bytes + i * store_room + 256;
        kernel.maps.push_back(map);
        const std::vector<uint8_t> source = draw_bytes(random, letter_of(map.type), store_slot);
        kernel.input.insert(kernel.input.end(), source.begin(), source.end());
        text("{}.{}d.global.shared::cta{} {}, [{} + {}];", opcodes[i].substr(0, opcodes[i].find('/')),
             map.rank, opcodes[i].substr(opcodes[i].find('/') + 1),
             box_operand(text, i, draw_coordinates(random, map, true)), base, i * store_slot);
    }
    text("cp.async.bulk.commit_group;");
    text("cp.async.bulk.wait_group 0;");
    text.lines("END:\n");
    kernel.ptx = text.finish(store_maps);
    return kernel;
}

}  // namespace

Kernel make_tma_store(Random& random, uint32_t seed)
{
    std::vector<uint32_t> types;
    for (uint32_t i = 0; i < store_maps; ++i)
        types.push_back((seed * store_maps + i) % 13);
    return make_boxes(random, types,
                      std::vector<std::string>(store_maps, "cp.async.bulk.tensor/.tile.bulk_group"));
}

Kernel make_tma_reduce(Random& random, uint32_t seed)
{
    std::vector<uint32_t> types;
    std::vector<std::string> opcodes;
    for (uint32_t i = 0; i < store_maps; ++i) {
        const StoreReduction& reduction =
            store_reductions[(seed * store_maps + i) % std::size(store_reductions)];
        types.push_back(reduction.type);
        opcodes.push_back(
            fmt::format("cp.reduce.async.bulk.tensor/.{}.tile.bulk_group", reduction.operation));
    }
    Kernel kernel = make_boxes(random, types, opcodes);
    for (uint32_t i = 0; i < store_maps; ++i) {
        const std::vector<uint8_t> before = draw_bytes(random, letter_of(types[i]), store_room);
        std::copy(before.begin(), before.end(), kernel.output.begin() + status_bytes + i * store_room);
    }
    return kernel;
}

}  // namespace emu::silicon
