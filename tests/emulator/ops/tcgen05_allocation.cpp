// tcgen05.alloc, dealloc and relinquish_alloc_permit, of one CTA or of both of a pair together.
#include "core/values.hpp"
#include "ops/tcgen05.hpp"

#include <bit>

namespace emu {

namespace {

void check_columns(Exec& x, uint32_t columns)
{
    if (columns < tmem_unit || columns > tmem_columns || !std::has_single_bit(columns))
        x.fault("tmem-columns", std::to_string(columns) + " columns: not a power of two from 32 to 512");
}

// Places in both CTAs of a group; empty: not yet.
bool find_room(const std::vector<Cta*>& ctas, const uint32_t* columns, uint32_t* address)
{
    for (size_t i = 0; i < ctas.size(); ++i) {
        const int first = tensor_memory(*ctas[i]).find_free(columns[i]);
        if (first < 0)
            return false;
        address[i] = first;
    }
    return true;
}

void take(Exec& x, Cta& cta, uint32_t first, uint32_t columns)
{
    TensorMemory& memory = tensor_memory(cta);
    if (columns > memory.last_columns)
        x.hazard("tmem-growth", "allocates " + std::to_string(columns) + " columns after " +
                                    std::to_string(memory.last_columns) + ": allocations must not grow");
    memory.last_columns = columns;
    memory.allocations[first] = columns;
}

void release(Exec& x, Cta& cta, uint32_t address, uint32_t columns)
{
    TensorMemory& memory = tensor_memory(cta);
    const auto found = memory.allocations.find(address);
    if (found == memory.allocations.end() || found->second != columns)
        x.fault("tmem-free", "no allocation of " + std::to_string(columns) + " columns starts at column " +
                                 std::to_string(address));
    memory.allocations.erase(found);
    x.machine.checker.free_tmem(cta, address, columns, generic_actor(x, -1));
}

void store_address(Exec& x, uint32_t address)
{
    const int lane = std::countr_zero(x.lanes);
    const auto space = static_cast<ptx::Space>(x.op.imm[2]);
    const Location place = shared_location(x, space, address_of(x, x.op.address, lane), 4, 4, lane);
    if (place.cta != &x.cta)
        x.fault("wrong-space", "the address does not lie in the CTA's own shared memory");
    x.machine.checker.access(&x, *place.cta, place.offset, 4, Access::Write, generic_actor(x, -1));
    std::memcpy(place.bytes, &address, sizeof address);
}

// One CTA on its own. False: it waits.
bool allocate_alone(Exec& x, uint32_t columns, uint32_t& address)
{
    Cta* cta = &x.cta;
    if (!find_room({cta}, &columns, &address)) {
        x.wait([cta, columns] { return tensor_memory(*cta).find_free(columns) >= 0; },
               [cta, columns] {
                   return "tcgen05.alloc of " + std::to_string(columns) +
                          " columns; allocated: " + tensor_memory(*cta).describe();
               },
               true);
        return false;
    }
    take(x, *cta, address, columns);
    return true;
}

// The second of the pair's warps acts for both as soon as there is room.
void perform_for_pair(Exec& x, const std::vector<Cta*>& ctas, PairCall& pair)
{
    x.machine.checker.acquire_execution(x.warp.agent, pair.clock);
    pair.clock.clear();
    for (int i = 0; i < 2; ++i)
        if (pair.allocate)
            take(x, *ctas[i], pair.address[i], pair.columns[i]);
        else
            release(x, *ctas[i], pair.address[i], pair.columns[i]);
    pair.arrived = 0;
    ++pair.generation;
}

// False: it waits for the other warp, or for room.
bool call_as_pair(Exec& x, bool allocate, uint32_t columns, uint32_t& address)
{
    const std::vector<Cta*> ctas = group_ctas(x, 2);
    PairCall& pair = tensor_memory(*ctas[0]).pair;
    TensorWarp& warp = tensor_warp(x.warp);
    const uint32_t self = x.cta.rank & 1;
    if (!warp.calling) {
        if (pair.arrived && pair.allocate != allocate)
            x.fault("tmem-pair", "one CTA of the pair allocates while the other frees");
        if (pair.arrived & 1u << self)
            x.fault("tmem-pair", "two warps of one CTA take part");
        pair.allocate = allocate;
        pair.columns[self] = columns;
        pair.address[self] = address;
        pair.arrived |= 1u << self;
        x.machine.checker.release_execution(x.warp.agent, pair.clock);
        if (pair.arrived == 3 && allocate && pair.columns[0] != pair.columns[1])
            x.fault("tmem-pair", "the CTAs of the pair ask for different numbers of columns");
        warp.calling = true;
        warp.call = pair.generation;
    }
    const auto possible = [ctas, allocate, &pair] {
        return pair.arrived == 3 && (!allocate || find_room(ctas, pair.columns, pair.address));
    };
    if (pair.generation == warp.call && possible())
        perform_for_pair(x, ctas, pair);
    if (pair.generation == warp.call) {
        const uint64_t call = warp.call;
        x.wait([possible, call, &pair] { return pair.generation != call || possible(); },
               [allocate, &pair] {
                   const std::string what = allocate ? "tcgen05.alloc" : "tcgen05.dealloc";
                   return what + (pair.arrived == 3 ? " for room" : " for the other CTA of the pair");
               },
               true);
        return false;
    }
    warp.calling = false;
    address = pair.address[self];
    return true;
}

void run_allocate(Exec& x)
{
    x.require_convergence();
    const int group = x.op.imm[0];
    group_ctas(x, group);
    const uint32_t columns = uniform_value(x, x.op.args[0], "the number of columns");
    check_columns(x, columns);
    if (tensor_memory(x.cta).relinquished)
        x.fault("tmem-alloc", "the CTA has given up the permit to allocate");
    uint32_t address = 0;
    if (group == 1 ? allocate_alone(x, columns, address) : call_as_pair(x, true, columns, address))
        store_address(x, address);
}

void run_free(Exec& x)
{
    x.require_convergence();
    const int group = x.op.imm[0];
    group_ctas(x, group);
    uint32_t address = uniform_value(x, x.op.args[0], "the address");
    const uint32_t columns = uniform_value(x, x.op.args[1], "the number of columns");
    check_columns(x, columns);
    if (group == 1)
        release(x, x.cta, address, columns);
    else
        call_as_pair(x, false, columns, address);
}

void run_relinquish(Exec& x)
{
    x.require_convergence();
    group_ctas(x, x.op.imm[0]);
    tensor_memory(x.cta).relinquished = true;
}

}  // namespace

void decode_tensor_allocation(const ptx::Instruction& instruction, Program& program, Op& op)
{
    op.imm[0] = cta_group_of(instruction, program);
    if (!instruction.has("sync") || !instruction.has("aligned"))
        refuse(instruction, program, "needs .sync.aligned");
    if (instruction.has("relinquish_alloc_permit")) {
        allow_modifiers(instruction, program,
                        {"relinquish_alloc_permit", "cta_group::1", "cta_group::2", "sync", "aligned"});
        expect_operands(instruction, program, 0, 0);
        op.run = run_relinquish;
        return;
    }
    const bool allocate = instruction.has("alloc");
    allow_modifiers(instruction, program,
                    {allocate ? "alloc" : "dealloc", "cta_group::1", "cta_group::2", "sync", "aligned",
                     "b32", allocate ? "shared::cta" : "b32"});
    expect_operands(instruction, program, 2, 2);
    if (allocate) {
        op.address = decode_address(instruction.operands[0], program);
        op.args = {decode_arg(instruction.operands[1], program)};
        op.imm[2] = static_cast<int>(space_of(instruction));
        op.run = run_allocate;
    } else {
        op.args = {decode_arg(instruction.operands[0], program),
                   decode_arg(instruction.operands[1], program)};
        op.run = run_free;
    }
}

}  // namespace emu
