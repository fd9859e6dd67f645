// cp.async.bulk and cp.reduce.async.bulk: contiguous bytes between global and shared memory, and between
// the shared memories of a cluster.
#include "ops/async_bulk.hpp"

#include "core/values.hpp"
#include "ops/mbarrier.hpp"

#include <bit>

namespace emu {

std::vector<BulkTarget> bulk_targets(Exec& x, const Location& to, const Location& barrier, const Mask* mask,
                                     bool pairs)
{
    // With .cta_group::2 the barrier may be that of the other CTA of the pair.
    if (!mask) {
        bool same = pairs ? to.cta->rank / 2 == barrier.cta->rank / 2 : to.cta == barrier.cta;
        if (!same)
            x.hazard("bulk-barrier", "the mbarrier is not in the CTA that receives the bytes");
        return {{to, barrier}};
    }
    if (*mask == 0)
        x.hazard("bulk-multicast", "the multicast mask is empty");
    std::vector<BulkTarget> targets;
    for (Mask rest = *mask & 0xffff; rest; rest &= rest - 1) {
        auto rank = static_cast<uint32_t>(std::countr_zero(rest));
        uint32_t signalled = pairs ? (rank & ~1u) | (barrier.cta->rank & 1) : rank;
        targets.push_back(
            {same_place(x, to, rank, "multicast"), same_place(x, barrier, signalled, "multicast")});
    }
    return targets;
}

Access access_kind(Reduction reduction)
{
    return reduction == Reduction::None ? Access::Write : Access::Atomic;
}

void note_global(Deferred& deferred, const uint8_t* first, uint64_t bytes, Access kind)
{
    deferred.machine.checker.access_global(deferred.cta, reinterpret_cast<uint64_t>(first), bytes, kind,
                                           deferred.actor(Proxy::Async));
}

void finish_load(Deferred& deferred, const BulkTarget& target, int64_t bytes)
{
    Exec x = deferred.exec();
    check_alive(x, *target.to.cta);
    mbarrier_complete_tx(x, *target.barrier.cta, target.barrier.offset, bytes,
                         deferred.actor(Proxy::Async));
    deferred.finished();
}

void start_store(Exec& x, int lane, const char* name, std::function<void(Deferred&)> read,
                 std::function<void(Deferred&)> write)
{
    auto token = std::make_shared<AsyncToken>();
    token->lanes = 1u << lane;
    groups_of(x.warp, ext_bulk).add(token);
    auto deferred = std::make_shared<Deferred>(x, 1u << lane);
    start(deferred, name, [deferred, token, name, read, write] {
        Exec x = deferred->exec();
        if (deferred->cta.done())
            x.hazard("unwaited-bulk-store",
                     "all threads of the CTA have exited before this store has read shared memory");
        read(*deferred);
        token->read = true;
        x.machine.checker.release(deferred->agent, token->read_clock);
        start(deferred, name, [deferred, token, write] {
            write(*deferred);
            token->done = true;
            deferred->machine.checker.release(deferred->agent, token->clock);
            deferred->finished();
        });
    });
}

namespace {

enum BulkSlot { bulk_flags, bulk_reduction, bulk_element, bulk_newest };
enum BulkFlag {
    bulk_multicast = 1,
    bulk_from_shared = 2,
    bulk_to_global = 4,
    bulk_byte_mask = 8,
    bulk_wait_for_read = 16
};

// What one lane asks for.
struct Copy {
    int64_t bytes = 0;
    Reduction reduction = Reduction::None;
    Element element = Element::B32;
    uint16_t keep = 0xffff;  // of every 16 bytes
};

Copy copy_of(Exec& x, int lane)
{
    Copy copy;
    copy.bytes = static_cast<uint32_t>(lane_value(x, x.op.args[0], lane));
    copy.reduction = static_cast<Reduction>(x.op.imm[bulk_reduction]);
    copy.element = static_cast<Element>(x.op.imm[bulk_element]);
    if (x.op.imm[bulk_flags] & bulk_byte_mask)
        copy.keep = static_cast<uint16_t>(lane_value(x, x.op.args[1], lane));
    if (copy.bytes % 16 != 0)
        x.fault("bulk-size",
                "the size of a bulk copy must be a multiple of 16, not " + std::to_string(copy.bytes));
    return copy;
}

void deliver(const Copy& copy, uint8_t* to, const uint8_t* from)
{
    if (copy.reduction != Reduction::None) {
        reduce(copy.reduction, copy.element, to, from, copy.bytes / bytes_of(copy.element));
        return;
    }
    for (int64_t i = 0; i < copy.bytes; i += 16)
        for (int byte = 0; byte < 16; byte++)
            if (copy.keep >> byte & 1)
                to[i + byte] = from[i + byte];
}

void load(Exec& x, const Copy& copy, int lane)
{
    auto bytes = static_cast<int>(copy.bytes);
    int flags = x.op.imm[bulk_flags];
    auto to_address = static_cast<uint32_t>(address_of(x, x.op.address, lane));
    Location to = resolve_shared(x, to_address, bytes, 16, "cp.async.bulk");
    auto barrier_address = static_cast<uint32_t>(lane_value(x, x.op.args[2], lane) + x.op.wide);
    Location barrier = resolve_shared(x, barrier_address, 8, 8, "mbarrier");
    uint64_t source = address_of(x, x.op.address2, lane);
    Location from = flags & bulk_from_shared
                        ? resolve_shared(x, static_cast<uint32_t>(source), bytes, 16, "cp.async.bulk")
                        : resolve(x, ptx::Space::Global, source, bytes, 16, lane);
    Mask mask = flags & bulk_multicast ? static_cast<Mask>(lane_value(x, x.op.args[1], lane)) : 0;
    for (const BulkTarget& target :
         bulk_targets(x, to, barrier, flags & bulk_multicast ? &mask : nullptr, false)) {
        auto deferred = std::make_shared<Deferred>(x, 1u << lane);
        start(deferred, "cp.async.bulk", [deferred, target, from, copy] {
            Exec x = deferred->exec();
            auto size = static_cast<uint32_t>(copy.bytes);
            Actor actor = deferred->actor(Proxy::Async);
            if (from.cta)
                x.machine.checker.access(&x, *from.cta, from.offset, size, Access::Read, actor);
            else
                note_global(*deferred, from.bytes, size, Access::Read);
            Access kind = access_kind(copy.reduction);
            x.machine.checker.access(&x, *target.to.cta, target.to.offset, size, kind, actor);
            deliver(copy, target.to.bytes, from.bytes);
            finish_load(*deferred, target, copy.bytes);
        });
        x.machine.statistics.tma_bytes += copy.bytes;
    }
}

void store(Exec& x, const Copy& copy, int lane)
{
    auto bytes = static_cast<int>(copy.bytes);
    auto source = static_cast<uint32_t>(address_of(x, x.op.address2, lane));
    Location from = resolve_shared(x, source, bytes, 16, "cp.async.bulk");
    if (from.cta != &x.cta)
        x.fault("bulk-source", "the source must lie in the CTA's own shared memory");
    Location to = resolve(x, ptx::Space::Global, address_of(x, x.op.address, lane), bytes, 16, lane);
    auto buffer = std::make_shared<std::vector<uint8_t>>(copy.bytes);
    auto read = [buffer, from](Deferred& deferred) {
        Exec x = deferred.exec();
        auto size = static_cast<uint32_t>(buffer->size());
        x.machine.checker.access(&x, *from.cta, from.offset, size, Access::Read,
                                 deferred.actor(Proxy::Async));
        std::memcpy(buffer->data(), from.bytes, buffer->size());
    };
    start_store(x, lane, "cp.async.bulk", read, [buffer, to, copy](Deferred& deferred) {
        note_global(deferred, to.bytes, copy.bytes, access_kind(copy.reduction));
        deliver(copy, to.bytes, buffer->data());
    });
    x.machine.statistics.tma_bytes += copy.bytes;
}

void run_bulk_copy(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        int lane = std::countr_zero(rest);
        Copy copy = copy_of(x, lane);
        if (x.op.imm[bulk_flags] & bulk_to_global)
            store(x, copy, lane);
        else
            load(x, copy, lane);
    }
}

void run_bulk_commit(Exec& x) { groups_of(x.warp, ext_bulk).commit(x.lanes); }

void run_bulk_wait(Exec& x)
{
    wait_for_groups(x, groups_of(x.warp, ext_bulk), x.op.imm[bulk_newest],
                    x.op.imm[bulk_flags] & bulk_wait_for_read);
}

bool decode_group(const ptx::Instruction& i, Program& program, Op& op)
{
    bool commit = i.has("commit_group"), wait = i.has("wait_group");
    if (!commit && !wait)
        return false;
    allow_modifiers(i, program,
                    {"async", "bulk", commit ? "commit_group" : "wait_group", wait ? "read" : "bulk"});
    expect_operands(i, program, wait, wait);
    if (wait)
        op.imm[bulk_newest] = immediate(i, program, i.operands[0]);
    op.imm[bulk_flags] = i.has("read") ? bulk_wait_for_read : 0;
    op.run = wait ? run_bulk_wait : run_bulk_commit;
    return true;
}

void decode_reduction(const ptx::Instruction& i, Program& program, Op& op)
{
    Reduction reduction = Reduction::None;
    Element element = Element::B32;
    int reductions = 0, elements = 0;
    for (const std::string& modifier : i.modifiers) {
        reductions += parse_reduction(modifier, reduction);
        elements += parse_element(modifier, element);
    }
    if (reductions != 1 || elements != 1 || !may_reduce(reduction, element))
        refuse(i, program, "not a reduction of elements of this type");
    op.imm[bulk_reduction] = static_cast<int>(reduction);
    op.imm[bulk_element] = static_cast<int>(element);
}

// Operands: dst, src, size, then [mbar] or nothing, then the multicast mask, policy and byte mask.
void decode_operands(const ptx::Instruction& i, Program& program, Op& op)
{
    int flags = op.imm[bulk_flags];
    size_t hint = i.has("L2::cache_hint"), barrier = flags & bulk_to_global ? 0 : 1;
    size_t extra = (flags & (bulk_multicast | bulk_byte_mask)) ? 1 : 0;
    expect_operands(i, program, 3 + barrier + extra + hint, 3 + barrier + extra + hint);
    op.address = decode_address(i.operands[0], program);
    op.address2 = decode_address(i.operands[1], program);
    op.args.resize(3);
    op.args[0] = decode_arg(i.operands[2], program);
    if (flags & bulk_multicast)
        op.args[1] = decode_arg(i.operands[4], program);
    if (flags & bulk_byte_mask)
        op.args[1] = decode_arg(i.operands.back(), program);
    if (barrier) {
        AddressArg address = decode_address(i.operands[3], program);
        op.args[2] = address.base;
        op.wide = static_cast<uint64_t>(address.offset);
    }
}

}  // namespace

void decode_bulk(const ptx::Instruction& i, Program& program, Op& op)
{
    if (decode_group(i, program, op))
        return;
    allow_modifiers(i, program,
                    {"reduce",
                     "async",
                     "bulk",
                     "prefetch",
                     "L2",
                     "shared::cluster",
                     "shared::cta",
                     "global",
                     "mbarrier::complete_tx::bytes",
                     "bulk_group",
                     "multicast::cluster",
                     "L2::cache_hint",
                     "cp_mask",
                     "noftz",
                     "add",
                     "min",
                     "max",
                     "inc",
                     "dec",
                     "and",
                     "or",
                     "xor",
                     "b32",
                     "u32",
                     "s32",
                     "b64",
                     "u64",
                     "s64",
                     "f16",
                     "bf16",
                     "f32",
                     "f64"});
    if (i.has("prefetch")) {
        expect_operands(i, program, 2, 3);
        op.run = run_nothing;
        return;
    }
    // Destination and source, in this order.
    std::vector<std::string> spaces;
    for (const std::string& modifier : i.modifiers)
        if (modifier == "global" || modifier.substr(0, 8) == "shared::")
            spaces.push_back(modifier);
    bool stores = spaces == std::vector<std::string>{"global", "shared::cta"};
    bool loads = spaces.size() == 2 && spaces[0] != "global" && !i.has("reduce");
    bool between = spaces == std::vector<std::string>{"shared::cluster", "shared::cta"};
    if (!stores && !(loads && spaces[1] == "global") && !between)
        refuse(i, program, "no bulk copy between these state spaces");
    if (i.has("bulk_group") != stores || i.has("mbarrier::complete_tx::bytes") == stores)
        refuse(i, program, "the completion mechanism does not suit the state spaces");
    op.imm[bulk_flags] = (i.has("multicast::cluster") ? bulk_multicast : 0) |
                         (between ? bulk_from_shared : 0) | (stores ? bulk_to_global : 0) |
                         (i.has("cp_mask") ? bulk_byte_mask : 0);
    if (i.has("reduce"))
        decode_reduction(i, program, op);
    decode_operands(i, program, op);
    op.run = run_bulk_copy;
}

}  // namespace emu
