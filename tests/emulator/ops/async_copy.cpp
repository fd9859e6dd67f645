// cp.async: copies of 4, 8 or 16 bytes a thread from global to shared memory, in groups of each thread.
#include "core/values.hpp"
#include "ops/async.hpp"
#include "ops/mbarrier.hpp"

#include <bit>

namespace emu {

namespace {

enum CopySlot { copy_bytes, copy_source_size, copy_space, copy_newest };
enum SourceSize { whole, given, ignored };

// One lane's part.
struct Piece {
    Location to;
    const uint8_t* from = nullptr;
    uint32_t bytes;  // to read; the rest is zero
    int lane;
};

Piece piece_of(Exec& x, int lane)
{
    uint32_t size = x.op.imm[copy_bytes];
    Piece piece;
    piece.lane = lane;
    piece.bytes = size;
    if (x.op.imm[copy_source_size] == given)
        piece.bytes = static_cast<uint32_t>(lane_value(x, x.op.args[0], lane));
    else if (x.op.imm[copy_source_size] == ignored && lane_value(x, x.op.args[0], lane))
        piece.bytes = 0;
    if (piece.bytes > size)
        x.fault("cp-async-size",
                "the source size " + std::to_string(piece.bytes) + " is above the copy's size");
    piece.to =
        resolve_shared(x, static_cast<uint32_t>(address_of(x, x.op.address, lane)), size, size, "cp.async");
    uint64_t source = address_of(x, x.op.address2, lane);
    if (source % size != 0)
        x.fault("misaligned", "cp.async reads from an address that is no multiple of its size");
    if (piece.bytes > 0)
        piece.from = resolve(x, ptx::Space::Global, source, piece.bytes, 1, lane).bytes;
    return piece;
}

void finish_copy(Deferred& deferred, AsyncToken& token, const std::vector<Piece>& pieces)
{
    Exec x = deferred.exec();
    uint32_t size = deferred.op.imm[copy_bytes];
    for (const Piece& piece : pieces) {
        std::memset(piece.to.bytes, 0, size);
        if (piece.bytes > 0)
            std::memcpy(piece.to.bytes, piece.from, piece.bytes);
        Actor actor = deferred.actor(Proxy::Generic);
        actor.lane = piece.lane;
        x.machine.checker.access_global(deferred.cta, reinterpret_cast<uint64_t>(piece.from), piece.bytes,
                                        Access::Read, actor);
        x.machine.checker.access(&x, *piece.to.cta, piece.to.offset, size, Access::Write, actor);
    }
    if (deferred.cta.done())
        x.hazard("unwaited-copy", "all threads of the CTA have exited before this copy ended");
    token.clock = x.machine.checker.alone(deferred.agent, token.lanes);
    token.done = token.read = true;
    deferred.finished();
}

void run_cp_async(Exec& x)
{
    if (x.lanes == 0)
        return;
    std::vector<Piece> pieces;
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        pieces.push_back(piece_of(x, std::countr_zero(rest)));
    auto token = std::make_shared<AsyncToken>();
    token->lanes = x.lanes;
    token->by_lanes = true;
    groups_of(x.warp, ext_cp_async).add(token);
    auto deferred = std::make_shared<Deferred>(x, x.lanes);
    start(deferred, "cp.async", [deferred, token, pieces] { finish_copy(*deferred, *token, pieces); });
}

void run_cp_async_commit(Exec& x) { groups_of(x.warp, ext_cp_async).commit(x.lanes); }

void run_wait_group(Exec& x)
{
    wait_for_groups(x, groups_of(x.warp, ext_cp_async), x.op.imm[copy_newest], false);
}

void run_cp_async_wait_all(Exec& x)
{
    AsyncGroups& groups = groups_of(x.warp, ext_cp_async);
    if (!x.retried)
        groups.commit(x.lanes);
    wait_for_groups(x, groups, 0, false);
}

// cp.async.mbarrier.arrive: each lane arrives when its copies so far have ended. Without .noinc the pending
// count is raised first, so that this arrival needs no place among those expected.
void run_cp_async_arrive(Exec& x)
{
    bool raises = x.op.imm[copy_newest] != 0;
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        int lane = std::countr_zero(rest);
        auto space = static_cast<ptx::Space>(x.op.imm[copy_space]);
        Location place = shared_location(x, space, address_of(x, x.op.address, lane), 8, 8, lane);
        Mbarrier& barrier = live_mbarrier(x, *place.cta, place.offset);
        if (raises)
            ++barrier.pending;
        std::vector<Token> tokens = groups_of(x.warp, ext_cp_async).everything(1u << lane);
        auto deferred = std::make_shared<Deferred>(x, 1u << lane);
        AsyncOp op;
        op.may_finish = [tokens] {
            for (const Token& token : tokens)
                if (!token->done)
                    return false;
            return true;
        };
        op.finish = [deferred, tokens, place] {
            Exec x = deferred->exec();
            for (const Token& token : tokens)
                x.machine.checker.acquire_own(deferred->agent, token->clock, deferred->lanes);
            mbarrier_arrive(x, *place.cta, place.offset, 1, deferred->actor(Proxy::Generic));
            deferred->finished();
        };
        op.name = "cp.async.mbarrier.arrive";
        op.line = x.op.line;
        x.cta.cluster->start(std::move(op));
    }
}

void decode_cp_async(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"async", "ca", "cg", "shared", "shared::cta", "global", "L2::cache_hint", "L2::64B",
                     "L2::128B", "L2::256B"});
    size_t hint = i.has("L2::cache_hint") ? 1 : 0;
    expect_operands(i, program, 3 + hint, 4 + hint);
    int size = immediate(i, program, i.operands[2]);
    if (!(size == 16 || (i.has("ca") && (size == 4 || size == 8))) || !i.has("global"))
        refuse(i, program, "cp.async copies 16 bytes, with .ca also 4 or 8, from .global");
    op.imm[copy_bytes] = size;
    op.address = decode_address(i.operands[0], program);
    op.address2 = decode_address(i.operands[1], program);
    if (i.operands.size() == 4 + hint) {
        op.imm[copy_source_size] = is_predicate(i.operands[3], program) ? ignored : given;
        op.args = {decode_arg(i.operands[3], program)};
    }
    op.run = run_cp_async;
}

void decode_cp(const ptx::Instruction& i, Program& program, Op& op)
{
    if (i.has("bulk")) {
        if (i.has("tensor"))
            decode_bulk_tensor(i, program, op);
        else
            decode_bulk(i, program, op);
        return;
    }
    if (i.modifiers.empty() || i.modifiers[0] != "async")
        refuse(i, program, "unknown copy");
    if (i.has("commit_group") || i.has("wait_all")) {
        allow_modifiers(i, program, {"async", "commit_group", "wait_all"});
        expect_operands(i, program, 0, 0);
        op.run = i.has("commit_group") ? run_cp_async_commit : run_cp_async_wait_all;
    } else if (i.has("wait_group")) {
        allow_modifiers(i, program, {"async", "wait_group"});
        expect_operands(i, program, 1, 1);
        op.imm[copy_newest] = immediate(i, program, i.operands[0]);
        op.run = run_wait_group;
    } else if (i.has("mbarrier")) {
        allow_modifiers(i, program,
                        {"async", "mbarrier", "arrive", "noinc", "shared", "shared::cta", "b64"});
        expect_operands(i, program, 1, 1);
        op.imm[copy_space] = static_cast<int>(space_of(i));
        op.imm[copy_newest] = !i.has("noinc");
        op.address = decode_address(i.operands[0], program);
        op.run = run_cp_async_arrive;
    } else {
        decode_cp_async(i, program, op);
    }
}

}  // namespace

void add_cp_async(DecoderTable& table) { table.by_opcode["cp"] = decode_cp; }

}  // namespace emu
