// Clusters: barrier.cluster, and addresses of shared memory in other CTAs.
#include "check/clock.hpp"
#include "core/values.hpp"
#include "ops/async.hpp"

#include <bit>

namespace emu {

namespace {

enum Semantics { ordered, relaxed_order };

// The phase ends when all threads of the cluster that have not exited have arrived; an exit may end it, so
// everybody who waits asks.
void complete_if_due(Cluster& cluster)
{
    bool any = false;
    for (auto& cta : cluster.ctas) {
        for (Warp& warp : cta->warps) {
            if (~warp.exited & ~warp.cluster_arrived)
                return;
            any |= warp.cluster_arrived != 0;
        }
    }
    if (!any)
        return;
    for (auto& cta : cluster.ctas)
        for (Warp& warp : cta->warps)
            warp.cluster_arrived = 0;
    ++cluster.barrier.generation;
    cluster.barrier.arrived = 0;
    cluster.barrier.completed = cluster.barrier.clock;
}

std::string describe(const Cluster& cluster)
{
    std::string text =
        "cluster barrier, phase " + std::to_string(cluster.barrier.generation) + "; missing:";
    for (const auto& cta : cluster.ctas)
        for (const Warp& warp : cta->warps)
            if (Mask missing = ~warp.exited & ~warp.cluster_arrived)
                text += " rank " + std::to_string(cta->rank) + " warp " + std::to_string(warp.index) +
                        " (" + std::to_string(std::popcount(missing)) + " lanes)";
    return text;
}

void run_cluster_arrive(Exec& x)
{
    if (x.op.imm[1])
        x.require_convergence();
    ClusterBarrier& barrier = x.cta.cluster->barrier;
    if (Mask again = x.warp.cluster_unwaited & x.lanes)
        x.hazard("cluster-barrier", "a thread arrives again without having waited", again);
    if (x.op.imm[0] == ordered) {
        x.machine.checker.release(x.warp.agent, barrier.clock, x.lanes);
    } else {
        const SyncClock& published = x.warp.published[scope_cluster];
        barrier.clock.seen.merge(published.seen);
        barrier.clock.fenced.merge(published.fenced);
        x.machine.checker.release_execution(x.warp.agent, barrier.clock);
    }
    x.warp.cluster_arrived |= x.lanes;
    x.warp.cluster_unwaited |= x.lanes;
    barrier.arrived += std::popcount(x.lanes);
    complete_if_due(*x.cta.cluster);
    x.machine.progress = x.machine.steps;
}

void run_cluster_wait(Exec& x)
{
    if (x.op.imm[1] && (!x.retried || x.fragment.forced))
        x.require_convergence();
    Warp* warp = &x.warp;
    Cluster* cluster = x.cta.cluster;
    Mask lanes = x.lanes;
    if (Mask early = lanes & ~warp->cluster_unwaited)
        x.fault("cluster-barrier", "lanes " + std::to_string(early) + " wait without having arrived");
    auto ready = [warp, cluster, lanes] {
        complete_if_due(*cluster);
        return (warp->cluster_arrived & lanes) == 0;
    };
    if (!ready()) {
        x.wait(
            ready, [cluster] { return describe(*cluster); }, true);
        return;
    }
    warp->cluster_unwaited &= ~lanes;
    x.machine.checker.acquire(warp->agent, cluster->barrier.completed, lanes);
}

void decode_barrier_cluster(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program, {"cluster", "arrive", "wait", "release", "relaxed", "acquire", "aligned"});
    expect_operands(i, program, 0, 0);
    bool arrive = i.has("arrive");
    if (arrive == i.has("wait") || (i.has("acquire") && arrive) ||
        ((i.has("release") || i.has("relaxed")) && !arrive))
        refuse(i, program, "barrier.cluster takes .arrive{.release, .relaxed} or .wait{.acquire}");
    op.imm[0] = i.has("relaxed") ? relaxed_order : ordered;
    op.imm[1] = i.has("aligned");
    op.run = arrive ? run_cluster_arrive : run_cluster_wait;
}

// The CTA that a shared address belongs to, after bounds.
uint32_t shared_address(Exec& x, uint64_t address, bool generic)
{
    if (generic && address >> 32 != shared_window >> 32)
        x.fault("wrong-space", "the generic address does not lie in shared memory");
    return static_cast<uint32_t>(address);
}

void check_rank(Exec& x, uint32_t rank)
{
    if (rank >= x.cta.cluster->ctas.size())
        x.fault("cluster-rank", "the cluster has no CTA of rank " + std::to_string(rank));
}

void run_mapa(Exec& x)
{
    bool generic = x.op.imm[0];
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        int lane = std::countr_zero(rest);
        uint64_t address = lane_value(x, x.op.args[1], lane);
        auto rank = static_cast<uint32_t>(lane_value(x, x.op.args[2], lane));
        check_rank(x, rank);
        uint32_t offset = shared_address(x, address, generic) & ((1u << rank_shift) - 1);
        uint64_t mapped = rank << rank_shift | offset;
        set_lane(x, x.op.args[0], lane, generic ? shared_window | mapped : mapped);
    }
}

void run_getctarank(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        int lane = std::countr_zero(rest);
        uint64_t address = lane_value(x, x.op.args[1], lane);
        uint32_t rank = shared_address(x, address, x.op.imm[0]) >> rank_shift;
        check_rank(x, rank);
        set_lane(x, x.op.args[0], lane, rank);
    }
}

void decode_rank_operation(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program, {"shared::cluster", "u32", "u64"});
    bool mapa = i.opcode == "mapa";
    expect_operands(i, program, mapa ? 3 : 2, mapa ? 3 : 2);
    op.imm[0] = !i.has("shared::cluster");
    op.args = {decode_arg(i.operands[0], program), decode_arg(i.operands[1], program)};
    if (mapa)
        op.args.push_back(decode_arg(i.operands[2], program));
    op.run = mapa ? run_mapa : run_getctarank;
}

}  // namespace

void add_cluster(DecoderTable& table)
{
    table.by_opcode["barrier.cluster"] = decode_barrier_cluster;
    table.by_opcode["mapa"] = decode_rank_operation;
    table.by_opcode["getctarank"] = decode_rank_operation;
}

}  // namespace emu
