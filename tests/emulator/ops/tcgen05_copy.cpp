// tcgen05.cp, from shared to tensor memory, and tcgen05.commit, which lets an mbarrier follow products and
// copies.
#include "core/values.hpp"
#include "ops/mbarrier.hpp"
#include "ops/shared_matrix.hpp"
#include "ops/tcgen05.hpp"

#include <algorithm>
#include <bit>

namespace emu {

namespace {

// Rows of 16 or 32 bytes; each goes to one lane, and with multicast to others too.
enum class CopyShape { s128x256b, s4x256b, s128x128b, s64x128b_02_13, s64x128b_01_23, s32x128b };

enum { imm_copy_shape = imm_group + 1 };

int rows_of(CopyShape shape)
{
    switch (shape) {
    case CopyShape::s4x256b: return 4;
    case CopyShape::s64x128b_02_13:
    case CopyShape::s64x128b_01_23: return 64;
    case CopyShape::s32x128b: return 32;
    default: return 128;
    }
}

int bytes_of(CopyShape shape)
{
    return shape == CopyShape::s128x256b || shape == CopyShape::s4x256b ? 32 : 16;
}

std::vector<uint32_t> lanes_of(CopyShape shape, uint32_t row)
{
    switch (shape) {
    case CopyShape::s4x256b: return {row * 32};
    case CopyShape::s64x128b_02_13: return {row, row + 64};
    case CopyShape::s64x128b_01_23: return {row / 32 * 64 + row % 32, row / 32 * 64 + row % 32 + 32};
    case CopyShape::s32x128b: return {row, row + 32, row + 64, row + 96};
    default: return {row};
    }
}

struct TensorCopy {
    CopyShape shape;
    std::vector<Cta*> ctas;
    SharedMatrix source;
    uint32_t lane = 0, column = 0;
    std::shared_ptr<Deferred> deferred;
    std::shared_ptr<TensorOperation> operation = std::make_shared<TensorOperation>();
};

void finish(const TensorCopy& copy)
{
    Exec x = copy.deferred->exec();
    const int rows = rows_of(copy.shape), bytes = bytes_of(copy.shape);
    const uint32_t columns = bytes / 4;
    const Actor actor = copy.deferred->actor(Proxy::Async);
    for (Cta* cta : copy.ctas) {
        check_alive(x, *cta);
        // Descriptors count rows in eights; four are read as eight of which the rest is left.
        std::vector<uint8_t> data(rows * bytes);
        fetch_bytes(x, *cta, copy.source, rows, bytes, actor, data.data());
        TensorMemory& memory = tensor_memory(*cta);
        for (int row = 0; row < rows; ++row)
            for (const uint32_t lane : lanes_of(copy.shape, row)) {
                if (row % 16 == 0 || rows < 16)
                    x.machine.checker.access_tmem(*cta, copy.column, columns, (copy.lane + lane) / 16 * 16,
                                                  16, Access::Write, actor);
                std::memcpy(&memory.cell(copy.lane + lane, copy.column), data.data() + row * bytes, bytes);
            }
    }
    copy.operation->done = true;
    copy.deferred->finished();
}

void issue_copy(Exec& x, int lane)
{
    auto copy = std::make_shared<TensorCopy>();
    copy->shape = static_cast<CopyShape>(x.op.imm[imm_copy_shape]);
    copy->ctas = group_ctas(x, x.op.imm[imm_group]);
    std::string error;
    copy->source = tcgen05_matrix(lane_value(x, x.op.args[0], lane), false, error);
    if (!error.empty())
        x.fault("tcgen05-descriptor", error);
    const auto address = static_cast<uint32_t>(address_of(x, x.op.address, lane));
    copy->lane = address >> 16;
    copy->column = address & 0xffff;
    const uint32_t last = copy->shape == CopyShape::s4x256b ? 31 : 0;
    if (copy->lane > last)
        x.fault("tmem-lane-alignment", "the copy starts at lane " + std::to_string(copy->lane));
    for (Cta* cta : copy->ctas)
        require_allocated(x, *cta, copy->column, bytes_of(copy->shape) / 4, "cp");
    copy->deferred = std::make_shared<Deferred>(x, Mask{1} << lane);
    track(x, lane, copy->operation, copy->deferred->agent);
    TensorMemory& memory = tensor_memory(*copy->ctas[0]);
    memory.copies.push_back(copy->operation);
    x.machine.checker.merge(memory.copied, copy->operation->clock);
    start(copy->deferred, "tcgen05.cp", [copy] { finish(*copy); });
}

void run_tcgen05_copy(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        issue_copy(x, std::countr_zero(rest));
}

// Without a state space the address is a generic one. Kernels that give one of shared memory all the same
// run on hardware, which looks at the low bits alone: that is reported, and done.
ptx::Space commit_space(Exec& x, uint64_t address, int lane)
{
    const auto space = static_cast<ptx::Space>(x.op.imm[1]);
    if (space != ptx::Space::None || address >> 32)
        return space;
    x.hazard("not-generic", "an address of shared memory where a generic one is expected", Mask{1} << lane);
    return ptx::Space::Shared;
}

void commit(Exec& x, int lane)
{
    group_ctas(x, x.op.imm[0]);
    const uint64_t address = address_of(x, x.op.address, lane);
    const Location here = shared_location(x, commit_space(x, address, lane), address, 8, 8, lane);
    std::vector<Location> targets;
    const auto mask =
        x.op.args.empty() ? 0 : static_cast<uint32_t>(lane_value(x, x.op.args[0], lane)) & 0xffff;
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        targets.push_back(same_place(x, here, std::countr_zero(rest), "tcgen05.commit"));
    if (x.op.args.empty())
        targets.push_back(here);
    else if (mask == 0)
        x.hazard("tcgen05-commit-nobody", "the mask names no CTA", Mask{1} << lane);

    // What it tracks travels with its arrival, as after fence::before_thread_sync.
    TensorWarp::Thread& thread = tensor_warp(x.warp).threads[lane];
    auto deferred = std::make_shared<Deferred>(x, Mask{1} << lane);
    x.machine.checker.join_tensor(deferred->agent, thread.issued);
    x.machine.checker.fence_tensor_before(deferred->agent);
    TensorOperations tracked = thread.operations;
    if (thread.commit)
        tracked.push_back(thread.commit);
    const auto arrival = thread.commit = std::make_shared<TensorOperation>();
    AsyncOp op;
    op.name = "tcgen05.commit";
    op.line = x.op.line;
    op.may_finish = [tracked] {
        return std::all_of(tracked.begin(), tracked.end(), [](const auto& other) { return other->done; });
    };
    op.finish = [deferred, targets, arrival] {
        Exec later = deferred->exec();
        for (const Location& target : targets)
            mbarrier_arrive(later, *target.cta, target.offset, 1, deferred->actor(Proxy::Generic));
        arrival->done = true;
        deferred->finished();
    };
    x.cta.cluster->start(std::move(op));
}

void run_tcgen05_commit(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        commit(x, std::countr_zero(rest));
}

CopyShape copy_shape(const ptx::Instruction& instruction, const Program& program)
{
    struct Form {
        const char *shape, *multicast;
        CopyShape value;
    };
    static constexpr Form forms[] = {
        {"128x256b", "", CopyShape::s128x256b},
        {"4x256b", "", CopyShape::s4x256b},
        {"128x128b", "", CopyShape::s128x128b},
        {"64x128b", "warpx2::02_13", CopyShape::s64x128b_02_13},
        {"64x128b", "warpx2::01_23", CopyShape::s64x128b_01_23},
        {"32x128b", "warpx4", CopyShape::s32x128b},
    };
    for (const Form& form : forms) {
        const std::string multicast = form.multicast;
        const size_t words = multicast.empty() ? 3 : 4;
        if (instruction.has(form.shape) && (multicast.empty() || instruction.has(multicast)) &&
            instruction.modifiers.size() == words)
            return form.value;
    }
    refuse(instruction, program, "no such form of tcgen05.cp, or one that unpacks");
}

}  // namespace

void decode_tensor_copy(const ptx::Instruction& instruction, Program& program, Op& op)
{
    op.imm[imm_group] = cta_group_of(instruction, program);
    op.imm[imm_copy_shape] = static_cast<int>(copy_shape(instruction, program));
    expect_operands(instruction, program, 2, 2);
    op.address = decode_address(instruction.operands[0], program);
    op.args = {decode_arg(instruction.operands[1], program, instruction, {ptx::Kind::Bits, 64, 1})};
    op.run = run_tcgen05_copy;
}

void decode_tensor_commit(const ptx::Instruction& instruction, Program& program, Op& op)
{
    allow_modifiers(instruction, program,
                    {"commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster",
                     "multicast::cluster", "b64"});
    if (!instruction.has("mbarrier::arrive::one"))
        refuse(instruction, program, "needs .mbarrier::arrive::one");
    op.imm[0] = cta_group_of(instruction, program);
    op.imm[1] = static_cast<int>(space_of(instruction));
    const size_t operands = instruction.has("multicast::cluster") ? 2 : 1;
    expect_operands(instruction, program, operands, operands);
    op.address = decode_address(instruction.operands[0], program);
    if (operands == 2)
        op.args = {decode_arg(instruction.operands[1], program)};
    op.run = run_tcgen05_commit;
}

}  // namespace emu
