// clusterlaunchcontrol: taking over the work of a cluster that has not started yet.
#include "core/values.hpp"
#include "ops/mbarrier.hpp"
#include "ops/tcgen05.hpp"

#include <bit>

namespace emu {

namespace {

// The opaque response: coordinates of the first CTA and one of these words.
constexpr uint32_t canceled = 0xc1c00001, refused = 0xc1c00000;
constexpr int response_bytes = 16;

// One request in so many is refused although clusters are left, which a GPU may do at any time.
constexpr int refusal_rate = 16;

struct Response {
    uint32_t first_cta[3] = {};
    uint32_t word = refused;
};
static_assert(sizeof(Response) == response_bytes);

Response request(Machine& machine, Grid& grid)
{
    Response response;
    const bool willing = machine.random() % refusal_rate != 0;
    if (willing && grid.cancel_cluster && grid.cancel_cluster(response.first_cta))
        response.word = canceled;
    return response;
}

void issue_cancel(Exec& x, int lane)
{
    if (x.cta.cancel_failed)
        x.hazard("cluster-cancel-after-failure", "the CTA has seen an earlier request fail",
                 Mask{1} << lane);
    const auto space = static_cast<ptx::Space>(x.op.imm[0]);
    const bool everywhere = x.op.imm[1];
    const Location place =
        shared_location(x, space, address_of(x, x.op.address, lane), response_bytes, response_bytes, lane);
    const Location barrier = shared_location(x, space, address_of(x, x.op.address2, lane), 8, 8, lane);
    if (place.cta != &x.cta || barrier.cta != &x.cta)
        x.fault("wrong-space", "response and mbarrier must lie in the CTA's own shared memory");
    auto deferred = std::make_shared<Deferred>(x, Mask{1} << lane);
    start(deferred, "clusterlaunchcontrol.try_cancel", [deferred, place, barrier, everywhere] {
        const Response response = request(deferred->machine, deferred->grid);
        Exec later = deferred->exec();
        const uint32_t own = deferred->cta.rank;
        const uint32_t last = everywhere ? deferred->cta.cluster->ctas.size() - 1 : own;
        for (uint32_t rank = everywhere ? 0 : own; rank <= last; ++rank) {
            const Location there = same_place(later, place, rank, "response");
            check_alive(later, *there.cta);
            deferred->machine.checker.access(&later, *there.cta, there.offset, response_bytes,
                                             Access::Write, deferred->actor(Proxy::Async));
            std::memcpy(there.bytes, &response, response_bytes);
            mbarrier_complete_tx(later, *there.cta, barrier.offset, response_bytes,
                                 deferred->actor(Proxy::Generic));
        }
        deferred->finished();
    });
}

void run_try_cancel(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        issue_cancel(x, std::countr_zero(rest));
}

Response response_of(Exec& x, const Arg& arg, int lane)
{
    const uint64_t* halves = x.row64(arg.reg) + 2 * lane;
    const auto response = std::bit_cast<Response>(std::array{halves[0], halves[1]});
    if (response.word != canceled && response.word != refused)
        x.fault("cluster-cancel-response", "the operand is no response of clusterlaunchcontrol.try_cancel");
    return response;
}

void run_is_canceled(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const bool success = response_of(x, x.op.args[1], lane).word == canceled;
        x.cta.cancel_failed |= !success;
        set_lane(x, x.op.args[0], lane, success != x.op.args[0].negated);
    }
}

// Destinations are the coordinates from the first one asked for on.
void run_first_cta(Exec& x)
{
    const size_t count = x.op.args.size() - 1;
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const Response response = response_of(x, x.op.args[count], lane);
        if (response.word != canceled)
            x.hazard("cluster-cancel-response", "the coordinates of a refused request are undefined",
                     Mask{1} << lane);
        for (size_t i = 0; i < count; ++i) {
            const size_t dimension = x.op.imm[0] + i;
            set_lane(x, x.op.args[i], lane, dimension < 3 ? response.first_cta[dimension] : 0);
        }
    }
}

void decode_try_cancel(const ptx::Instruction& instruction, Program& program, Op& op)
{
    allow_modifiers(instruction, program,
                    {"try_cancel", "async", "shared::cta", "mbarrier::complete_tx::bytes",
                     "multicast::cluster::all", "b128"});
    if (!instruction.has("async") || !instruction.has("mbarrier::complete_tx::bytes") ||
        !instruction.has("b128"))
        refuse(instruction, program, "needs .async, .mbarrier::complete_tx::bytes and .b128");
    expect_operands(instruction, program, 2, 2);
    op.address = decode_address(instruction.operands[0], program);
    op.address2 = decode_address(instruction.operands[1], program);
    op.imm[0] = static_cast<int>(space_of(instruction));
    op.imm[1] = instruction.has("multicast::cluster::all");
    op.run = run_try_cancel;
}

void decode_first_cta(const ptx::Instruction& instruction, Program& program, Op& op)
{
    const ptx::Operand& to = instruction.operands[0];
    if (instruction.has("get_first_ctaid")) {
        if (!instruction.has("v4") || to.form != ptx::Operand::Form::Vector || to.parts.size() != 4)
            refuse(instruction, program, "needs .v4 and four destinations");
        for (const ptx::Operand& part : to.parts)
            op.args.push_back(decode_arg(part, program));
    } else {
        op.imm[0] = instruction.has("get_first_ctaid::y")   ? 1
                    : instruction.has("get_first_ctaid::z") ? 2
                                                            : 0;
        op.args.push_back(decode_arg(to, program));
    }
    op.run = run_first_cta;
}

void decode_query_cancel(const ptx::Instruction& instruction, Program& program, Op& op)
{
    allow_modifiers(instruction, program,
                    {"query_cancel", "is_canceled", "pred", "get_first_ctaid", "get_first_ctaid::x",
                     "get_first_ctaid::y", "get_first_ctaid::z", "v4", "b32", "b128"});
    expect_operands(instruction, program, 2, 2);
    if (instruction.has("is_canceled")) {
        if (!is_predicate(instruction.operands[0], program))
            refuse(instruction, program, "the destination must be a predicate");
        op.args.push_back(decode_arg(instruction.operands[0], program));
        op.run = run_is_canceled;
    } else {
        decode_first_cta(instruction, program, op);
    }
    op.args.push_back(decode_arg(instruction.operands[1], program, instruction, {ptx::Kind::Bits, 128, 1}));
}

void decode_cluster_launch(const ptx::Instruction& instruction, Program& program, Op& op)
{
    if (instruction.has("try_cancel"))
        return decode_try_cancel(instruction, program, op);
    if (instruction.has("query_cancel"))
        return decode_query_cancel(instruction, program, op);
    refuse(instruction, program, "unknown clusterlaunchcontrol instruction");
}

}  // namespace

void add_cluster_launch(DecoderTable& table)
{
    table.by_opcode["clusterlaunchcontrol"] = decode_cluster_launch;
}

}  // namespace emu
