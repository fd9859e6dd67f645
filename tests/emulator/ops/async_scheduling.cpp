// Proxy fences, dependent launches, register pools and prefetches: instructions that order or hint.
#include "check/clock.hpp"
#include "core/values.hpp"
#include "ops/async.hpp"

#include <bit>

namespace emu {

namespace {

constexpr int cta_registers = 65536;

void run_fence_proxy_async(Exec& x) { x.machine.checker.fence_proxy_async(x.warp.agent, x.lanes); }

// Publishes mbarrier initialisations and nothing else: to the async proxy, and for relaxed arrivals at the
// cluster barrier.
void run_fence_mbarrier_init(Exec& x)
{
    SyncClock inits;
    inits.fenced = x.warp.inits.seen.part_of(x.lanes);
    x.machine.checker.acquire(x.warp.agent, inits, x.lanes);
    inits.seen = inits.fenced;
    for (const Scope scope : {scope_cta, scope_cluster})
        Checker::merge(x.warp.published[scope], inits);
}

void decode_fence_proxy(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"proxy", "alias", "async", "global", "shared::cta", "shared::cluster",
                     "tensormap::generic", "async::generic", "acquire", "release", "cta", "cluster", "gpu",
                     "sys", "sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
    bool tensormap = i.has("tensormap::generic");
    expect_operands(i, program, 0, tensormap && i.has("acquire") ? 2 : 0);
    bool shared = i.has("async") && !i.has("global");
    op.run = shared || i.has("async::generic") ? run_fence_proxy_async : run_nothing;
}

void decode_fence_mbarrier_init(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program, {"mbarrier_init", "release", "cluster"});
    expect_operands(i, program, 0, 0);
    op.run = run_fence_mbarrier_init;
}

// Launches of a stream run one after another, so that there is nothing to wait for but by the rules.
void run_await_front(Exec& x) { x.machine.checker.await_front(x.warp.agent, x.lanes); }

void decode_griddepcontrol(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program, {"launch_dependents", "wait"});
    expect_operands(i, program, 0, 0);
    op.run = i.has("wait") ? run_await_front : run_nothing;
}

void decode_prefetch_tensormap(const ptx::Instruction& i, Program& program, Op& op)
{
    bool tensormap = i.has("tensormap");
    allow_modifiers(i, program, {"param", "const", "tensormap"});
    expect_operands(i, program, 1, 1);
    op.address = decode_address(i.operands[0], program);
    if (!tensormap)
        refuse(i, program, "unknown prefetch");
    op.run = run_nothing;
}

// The cache does not exist, so that any policy serves.
void run_create_policy(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        set_lane(x, x.op.args[0], std::countr_zero(rest), 0);
}

void decode_create_policy(const ptx::Instruction& i, Program& program, Op& op)
{
    expect_operands(i, program, 1, 5);
    op.args = {decode_arg(i.operands[0], program)};
    op.run = run_create_policy;
}

// ---- setmaxnreg: what the compiler gave every thread is not known here, so the most that fits is assumed.
int registers_at_launch(const Exec& x)
{
    const ptx::Kernel& kernel = *x.grid.program->kernel;
    if (kernel.max_registers > 0)
        return kernel.max_registers;
    uint64_t warps = (x.grid.launch.block.count() + warp_lanes - 1) / warp_lanes;
    uint64_t ctas = kernel.min_ctas > 0 ? kernel.min_ctas : 1;
    return static_cast<int>(std::min<uint64_t>(255, cta_registers / (warps * warp_lanes * ctas)) & ~7ull);
}

void run_setmaxnreg(Exec& x)
{
    x.require_convergence();
    int wanted = x.op.imm[0];
    bool more = x.op.imm[1];
    Warp& warp = x.warp;
    Cta* cta = &x.cta;
    if (warp.held_registers == 0)
        warp.held_registers = registers_at_launch(x);
    int change = (wanted - warp.held_registers) * warp_lanes;
    if (!x.retried && (more ? change < 0 : change > 0))
        x.hazard("setmaxnreg",
                 more ? "an increase to fewer registers than are held: " + std::to_string(wanted)
                      : "a decrease to more registers than are held: " + std::to_string(wanted));
    if (more && change > cta->free_registers) {
        x.wait([cta, change] { return change <= cta->free_registers; },
               [cta, change] {
                   return std::to_string(change) + " registers for the warp, of " +
                          std::to_string(cta->free_registers) + " that others of the CTA have given back";
               },
               true);
        return;
    }
    cta->free_registers -= change;
    warp.held_registers = wanted;
    x.machine.progress = x.machine.steps;
}

void decode_setmaxnreg(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program, {"inc", "dec", "sync", "aligned", "u32"});
    expect_operands(i, program, 1, 1);
    op.imm[0] = immediate(i, program, i.operands[0]);
    op.imm[1] = i.has("inc");
    if (op.imm[0] < 24 || op.imm[0] > 256 || op.imm[0] % 8 != 0 || i.has("inc") == i.has("dec"))
        refuse(i, program, "setmaxnreg takes .inc or .dec and a multiple of 8 from 24 to 256");
    op.run = run_setmaxnreg;
}

}  // namespace

void add_async_scheduling(DecoderTable& table)
{
    table.by_opcode["fence.proxy"] = decode_fence_proxy;
    table.by_opcode["fence.mbarrier_init"] = decode_fence_mbarrier_init;
    table.by_opcode["griddepcontrol"] = decode_griddepcontrol;
    table.by_opcode["prefetch.tensormap"] = decode_prefetch_tensormap;
    table.by_opcode["prefetch.param"] = decode_prefetch_tensormap;
    table.by_opcode["prefetch.const"] = decode_prefetch_tensormap;
    table.by_opcode["createpolicy"] = decode_create_policy;
    table.by_opcode["setmaxnreg"] = decode_setmaxnreg;
}

}  // namespace emu
