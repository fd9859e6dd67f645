// tcgen05: tensor memory, fences and waits.
#include "ops/tcgen05.hpp"

#include "core/values.hpp"

#include <algorithm>
#include <bit>

namespace emu {

namespace {

void run_fence_before(Exec& x) { x.machine.checker.fence_tensor_before(x.warp.agent); }

void run_fence_after(Exec& x) { x.machine.checker.fence_tensor_after(x.warp.agent); }

void run_wait_load(Exec& x)
{
    x.require_convergence();
    TensorWarp& warp = tensor_warp(x.warp);
    x.machine.checker.join_tensor(x.warp.agent, warp.loads);
    warp.loads.clear();
}

void run_wait_store(Exec& x)
{
    x.require_convergence();
    TensorWarp& warp = tensor_warp(x.warp);
    const TensorOperations stores = warp.stores;
    const auto unfinished = [stores] {
        return std::count_if(stores.begin(), stores.end(), [](const auto& store) { return !store->done; });
    };
    if (unfinished()) {
        x.wait([unfinished] { return unfinished() == 0; },
               [unfinished] { return std::to_string(unfinished()) + " stores to tensor memory"; }, true);
        return;
    }
    for (const auto& store : stores)
        x.machine.checker.join_tensor(x.warp.agent, store->clock);
    warp.stores.clear();
}

// What is still allocated when its CTA ends is a leak.
void check_freed(Exec& x)
{
    if (x.cta.tmem && !tensor_memory(x.cta).allocations.empty())
        x.hazard("tmem-leak", "tensor memory columns are not freed: " + tensor_memory(x.cta).describe());
}

void decode_tcgen05(const ptx::Instruction& instruction, Program& program, Op& op)
{
    static const std::map<std::string, Decoder, std::less<>> parts = {
        {"alloc", decode_tensor_allocation},
        {"dealloc", decode_tensor_allocation},
        {"relinquish_alloc_permit", decode_tensor_allocation},
        {"fence::before_thread_sync", decode_tensor_fence},
        {"fence::after_thread_sync", decode_tensor_fence},
        {"wait::ld", decode_tensor_fence},
        {"wait::st", decode_tensor_fence},
        {"ld", decode_tensor_access},
        {"st", decode_tensor_access},
        {"mma", decode_tensor_product},
        {"cp", decode_tensor_copy},
        {"commit", decode_tensor_commit},
    };
    for (const auto& [word, decoder] : parts)
        if (instruction.has(word))
            return decoder(instruction, program, op);
    refuse(instruction, program, "unknown tcgen05 instruction");
}

}  // namespace

bool TensorMemory::allocated(uint32_t column, uint32_t columns) const
{
    auto block = allocations.upper_bound(column);
    if (block == allocations.begin())
        return false;
    --block;
    // Neighbouring allocations may be used as one.
    uint32_t end = block->first + block->second;
    while (end < column + columns && ++block != allocations.end() && block->first == end)
        end += block->second;
    return column + columns <= end;
}

int TensorMemory::find_free(uint32_t columns) const
{
    uint32_t first = 0;
    for (const auto& [begin, count] : allocations) {
        if (begin - first >= columns)
            return static_cast<int>(first);
        first = begin + count;
    }
    return tmem_columns - first >= columns ? static_cast<int>(first) : -1;
}

std::string TensorMemory::describe() const
{
    std::string text;
    for (const auto& [first, columns] : allocations)
        text += " " + std::to_string(first) + ".." + std::to_string(first + columns - 1);
    return text.empty() ? "none" : text.substr(1);
}

TensorMemory& tensor_memory(Cta& cta)
{
    if (!cta.tmem)
        cta.tmem = std::make_shared<TensorMemory>();
    return *static_cast<TensorMemory*>(cta.tmem.get());
}

TensorWarp& tensor_warp(Warp& warp)
{
    std::shared_ptr<void>& slot = warp.extension[ext_tcgen05];
    if (!slot)
        slot = std::make_shared<TensorWarp>();
    return *static_cast<TensorWarp*>(slot.get());
}

uint32_t uniform_value(Exec& x, const Arg& arg, const char* what)
{
    const int first = std::countr_zero(x.lanes);
    const auto value = static_cast<uint32_t>(lane_value(x, arg, first));
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        if (static_cast<uint32_t>(lane_value(x, arg, std::countr_zero(rest))) != value)
            x.hazard("not-uniform", std::string(what) + " differs between the lanes of the warp",
                     rest & -rest);
    return value;
}

std::vector<Cta*> group_ctas(Exec& x, int group)
{
    TensorMemory& memory = tensor_memory(x.cta);
    if (memory.group && memory.group != group)
        x.hazard("tcgen05-mixed-groups",
                 "the kernel has used .cta_group::" + std::to_string(memory.group) + " before");
    memory.group = group;
    if (group == 1)
        return {&x.cta};
    const auto& ctas = x.cta.cluster->ctas;
    const uint32_t even = x.cta.rank & ~1u;
    if (even + 1 >= ctas.size())
        x.fault("tcgen05-no-pair",
                ".cta_group::2 in a cluster without a CTA of rank " + std::to_string(even + 1));
    // It may have left an alloc or dealloc of both before this warp.
    if (const Cta& peer = *ctas[x.cta.rank ^ 1]; peer.done() && !tensor_warp(x.warp).calling)
        x.hazard("tcgen05-peer-exited", "the other CTA of the pair has exited");
    return {ctas[even].get(), ctas[even + 1].get()};
}

void require_allocated(Exec& x, Cta& cta, uint32_t column, uint32_t columns, const char* what)
{
    const TensorMemory& memory = tensor_memory(cta);
    if (!memory.allocated(column, columns))
        x.fault("tmem-unallocated", std::string(what) + ": columns " + std::to_string(column) + ".." +
                                        std::to_string(column + columns - 1) +
                                        " are not allocated; allocated: " + memory.describe());
}

void check_still_allocated(Exec& x, Cta& cta, uint32_t column, uint32_t columns)
{
    if (!tensor_memory(cta).allocated(column, columns))
        x.hazard("tmem-use-after-free", "columns " + std::to_string(column) + ".." +
                                            std::to_string(column + columns - 1) +
                                            " were freed while the operation was under way");
}

void track(Exec& x, int lane, const std::shared_ptr<TensorOperation>& operation, int agent)
{
    operation->clock = x.machine.checker.tensor_clock(agent);
    TensorWarp::Thread& thread = tensor_warp(x.warp).threads[lane];
    std::erase_if(thread.operations, [](const auto& old) { return old->done; });
    thread.operations.push_back(operation);
    x.machine.checker.merge(thread.issued, operation->clock);
}

int cta_group_of(const ptx::Instruction& instruction, const Program& program)
{
    const bool one = instruction.has("cta_group::1"), two = instruction.has("cta_group::2");
    if (one == two)
        refuse(instruction, program, "needs either .cta_group::1 or .cta_group::2");
    return one ? 1 : 2;
}

void decode_tensor_fence(const ptx::Instruction& instruction, Program& program, Op& op)
{
    expect_operands(instruction, program, 0, 0);
    if (instruction.has("wait::ld") || instruction.has("wait::st")) {
        allow_modifiers(instruction, program, {"wait::ld", "wait::st", "sync", "aligned"});
        if (!instruction.has("sync") || !instruction.has("aligned"))
            refuse(instruction, program, "needs .sync.aligned");
        op.run = instruction.has("wait::ld") ? run_wait_load : run_wait_store;
        return;
    }
    allow_modifiers(instruction, program, {"fence::before_thread_sync", "fence::after_thread_sync"});
    op.run = instruction.has("fence::before_thread_sync") ? run_fence_before : run_fence_after;
}

void add_tcgen05(DecoderTable& table)
{
    table.by_opcode["tcgen05"] = decode_tcgen05;
    table.at_cta_exit.push_back(check_freed);
    add_cluster_launch(table);
}

}  // namespace emu
