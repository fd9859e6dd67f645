// st.async and red.async: writes to the shared memory of a CTA of the cluster that count their bytes at an
// mbarrier there.
#include "core/values.hpp"
#include "ops/async_bulk.hpp"
#include "ops/mbarrier.hpp"

#include <bit>

namespace emu {

namespace {

enum StoreSlot { store_reduction, store_element, store_bytes };

struct StoredPiece {
    Location to, barrier;
    uint8_t value[32];
    int lane;
};

void finish_store(Deferred& deferred, const StoredPiece& piece)
{
    Exec x = deferred.exec();
    auto reduction = static_cast<Reduction>(deferred.op.imm[store_reduction]);
    auto bytes = static_cast<uint32_t>(deferred.op.imm[store_bytes] * deferred.op.args.size());
    Actor actor = deferred.actor(Proxy::Generic);
    actor.lane = piece.lane;
    check_alive(x, *piece.to.cta);
    Access kind = access_kind(reduction);
    x.machine.checker.access(&x, *piece.to.cta, piece.to.offset, bytes, kind, actor);
    if (reduction == Reduction::None)
        std::memcpy(piece.to.bytes, piece.value, bytes);
    else
        reduce(reduction, static_cast<Element>(deferred.op.imm[store_element]), piece.to.bytes, piece.value,
               1);
    mbarrier_complete_tx(x, *piece.barrier.cta, piece.barrier.offset, bytes, actor);
    deferred.finished();
}

void run_async_store(Exec& x)
{
    int element = x.op.imm[store_bytes], bytes = element * static_cast<int>(x.op.args.size());
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        StoredPiece piece;
        piece.lane = std::countr_zero(rest);
        auto to = static_cast<uint32_t>(address_of(x, x.op.address, piece.lane));
        auto barrier = static_cast<uint32_t>(address_of(x, x.op.address2, piece.lane));
        piece.to = resolve_shared(x, to, bytes, bytes, "destination");
        piece.barrier = resolve_shared(x, barrier, 8, 8, "mbarrier");
        if (piece.to.cta != piece.barrier.cta)
            x.hazard("bulk-barrier", "the mbarrier is not in the CTA that receives the bytes");
        for (size_t i = 0; i < x.op.args.size(); i++) {
            uint64_t value = lane_value(x, x.op.args[i], piece.lane);
            std::memcpy(piece.value + i * element, &value, element);
        }
        auto deferred = std::make_shared<Deferred>(x, 1u << piece.lane);
        start(deferred, x.op.source->opcode == "st" ? "st.async" : "red.async",
              [deferred, piece] { finish_store(*deferred, piece); });
    }
}

void decode_async_store(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"async",
                     "weak",
                     "relaxed",
                     "cluster",
                     "shared::cluster",
                     "mbarrier::complete_tx::bytes",
                     "v2",
                     "v4",
                     "inc",
                     "dec",
                     "min",
                     "max",
                     "and",
                     "or",
                     "xor",
                     "add",
                     "b32",
                     "b64",
                     "u32",
                     "u64",
                     "s32",
                     "s64",
                     "f32",
                     "f64"});
    expect_operands(i, program, 3, 3);
    ptx::Type type;
    Reduction reduction = Reduction::None;
    Element element = Element::B32;
    for (const std::string& modifier : i.modifiers) {
        ptx::parse_type(modifier, type);
        parse_element(modifier, element);
        parse_reduction(modifier, reduction);
    }
    bool stores = i.opcode == "st";
    if (!i.has("mbarrier::complete_tx::bytes") || type.bits == 0 ||
        stores != (reduction == Reduction::None) || (!stores && !may_reduce(reduction, element)))
        refuse(i, program, "only the forms that complete at an mbarrier are emulated");
    op.imm[store_reduction] = static_cast<int>(reduction);
    op.imm[store_element] = static_cast<int>(element);
    op.imm[store_bytes] = type.bits / 8;
    op.address = decode_address(i.operands[0], program);
    op.address2 = decode_address(i.operands[2], program);
    const ptx::Operand& value = i.operands[1];
    size_t count = i.has("v4") ? 4 : i.has("v2") ? 2 : 1;
    bool vector = value.form == ptx::Operand::Form::Vector;
    if (count != (vector ? value.parts.size() : 1) ||
        count * op.imm[store_bytes] > sizeof StoredPiece::value)
        refuse(i, program, "the values do not match .v2 or .v4");
    for (size_t part = 0; part < count; part++)
        op.args.push_back(decode_arg(vector ? value.parts[part] : value, program, i, type));
    op.run = run_async_store;
}

}  // namespace

void add_store_async(DecoderTable& table)
{
    table.by_opcode["st.async"] = decode_async_store;
    table.by_opcode["red.async"] = decode_async_store;
}

}  // namespace emu
