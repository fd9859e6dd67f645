// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: TMA boxes in tile mode, one to five dimensions.
#include "core/values.hpp"
#include "ops/async_bulk.hpp"
#include "ops/mbarrier.hpp"
#include "ops/tensor_map.hpp"

#include <bit>

namespace emu {

namespace {

enum TensorSlot { tensor_rank, tensor_flags, tensor_reduction };
enum TensorFlag { tensor_multicast = 1, tensor_pairs = 2, tensor_to_global = 4, tensor_prefetch = 8 };
// Operands in Op::args: the map, five coordinates, the mbarrier, the multicast mask.
enum TensorPlace { place_map, place_coordinates, place_barrier = 6, place_mask };

constexpr uint32_t tensor_alignment = 128;  // of boxes in shared memory

// What one lane asks for. The map is read at issue.
struct BoxCopy {
    TensorMap map;
    BoxShape shape;
    int32_t at[5] = {};
};

// Everything of the box that lies in the tensor must lie in one allocation.
void check_global(Exec& x, const BoxCopy& copy)
{
    uint64_t low = ~uint64_t{0}, high = 0;
    for_each_row(copy.map, copy.at, [&](const BoxRow& row) {
        if (row.first == row.last)
            return;
        auto address = reinterpret_cast<uint64_t>(row.global);
        low = std::min(low, address);
        high = std::max(high, address + (row.last - row.first) * copy.map.element_bytes);
    });
    if (high > low && !x.machine.memory.contains(low, high - low))
        x.fault("out-of-bounds", "the box lies in " + hexadecimal(low) + " ... " + hexadecimal(high) +
                                     ", which is not all of one allocation; the tensor map starts at " +
                                     hexadecimal(copy.map.base));
}

// Stores and reductions go on to the end of a 16-byte unit, behind the tensor's end, as measured on an
// H200.
void round_up_to_units(TensorMap& map)
{
    const uint64_t elements = 16 / map.element_bytes;
    map.size[0] = (map.size[0] + elements - 1) / elements * elements;
}

// An H200 refuses a box that does not begin on a 16-byte unit, and a store that begins before the tensor.
// The programming guide has the second rule, nothing has the first.
void check_coordinates(Exec& x, const BoxCopy& copy, bool stores)
{
    if (static_cast<int64_t>(copy.at[0]) * copy.map.element_bytes % 16 != 0)
        x.fault("illegal-instruction", "the box begins at element " + std::to_string(copy.at[0]) +
                                           ", which is not on a 16-byte unit");
    for (uint32_t i = 0; stores && i < copy.map.rank; i++)
        if (copy.at[i] < 0)
            x.fault("illegal-instruction",
                    "a store to the negative coordinate " + std::to_string(copy.at[i]));
}

BoxCopy box_copy(Exec& x, int lane)
{
    BoxCopy copy;
    uint64_t address = lane_value(x, x.op.args[place_map], lane) + x.op.wide;
    Location place = resolve(x, ptx::Space::None, address, sizeof(TensorMap), 64, lane);
    std::memcpy(&copy.map, place.bytes, sizeof copy.map);
    if (copy.map.magic != tensor_map_magic)
        x.fault("tensor-map", "there is no tensor map at this address");
    if (const char* complaint = copy.map.replaced ? check_tensor_map(copy.map) : nullptr)
        x.fault("tensor-map", complaint);
    if (copy.map.base == 0)
        x.fault("tensor-map", "the tensor map has the address 0, which nothing has replaced");
    if (copy.map.rank != static_cast<uint32_t>(x.op.imm[tensor_rank]))
        x.fault("tensor-map", "the tensor map has " + std::to_string(copy.map.rank) + " dimensions");
    for (uint32_t i = 0; i < copy.map.rank; i++)
        copy.at[i] = static_cast<int32_t>(lane_value(x, x.op.args[place_coordinates + i], lane));
    copy.shape = box_shape(copy.map);
    const bool stores = x.op.imm[tensor_flags] & tensor_to_global;
    check_coordinates(x, copy, stores);
    if (stores)
        round_up_to_units(copy.map);
    check_global(x, copy);
    return copy;
}

// Part of a row, as the 16-byte units that a swizzle leaves together.
void check_row_access(Exec& x, const BoxCopy& copy, const Location& place, const BoxRow& row, Access kind,
                      const Actor& actor)
{
    uint32_t first = row.first * copy.map.element_bytes, last = row.last * copy.map.element_bytes;
    for (uint32_t byte = first; byte < last; byte = byte / 16 * 16 + 16) {
        uint32_t address = place.offset + shared_base + row.row * copy.shape.pitch + byte;
        uint32_t offset = swizzled(address, copy.map.swizzle) - shared_base;
        uint32_t count = std::min(last, byte / 16 * 16 + 16) - byte;
        x.machine.checker.access(&x, *place.cta, offset, count, kind, actor);
    }
}

// A load writes the whole box. What a store reads and drops, because it lies outside the tensor, counts for
// nothing. Full rows are one range: a swizzle only permutes 16-byte units inside each.
void check_box_access(Exec& x, const BoxCopy& copy, const Location& place, Access kind, const Actor& actor)
{
    if (!x.machine.checker.races())
        return;
    bool whole = true;
    if (kind == Access::Read)
        for_each_row(copy.map, copy.at,
                     [&](const BoxRow& row) { whole &= row.last - row.first == copy.shape.elements; });
    if (whole && copy.shape.pitch == copy.shape.row_bytes) {
        x.machine.checker.access(&x, *place.cta, place.offset, copy.shape.bytes(), kind, actor);
        return;
    }
    for_each_row(copy.map, copy.at, [&](BoxRow row) {
        if (kind == Access::Write)
            row.first = 0, row.last = copy.shape.elements;
        check_row_access(x, copy, place, row, kind, actor);
    });
}

// The part of the box that lies in the tensor.
void note_box(Deferred& deferred, const BoxCopy& copy, Access kind)
{
    if (deferred.machine.checker.watches_global())
        for_each_row(copy.map, copy.at, [&](const BoxRow& row) {
            note_global(deferred, row.global, (row.last - row.first) * copy.map.element_bytes, kind);
        });
}

// Calls `move(unit, shared)` for each 16 bytes of a row and where they lie in shared memory.
template <typename Move>
void each_unit(const BoxCopy& copy, const Location& place, uint32_t row, Move move)
{
    for (uint32_t byte = 0; byte < copy.shape.row_bytes; byte += 16) {
        uint32_t address = place.offset + shared_base + row * copy.shape.pitch + byte;
        move(byte, place.cta->shared.data() + swizzled(address, copy.map.swizzle) - shared_base);
    }
}

void load_box(const BoxCopy& copy, const Location& to)
{
    uint64_t fill = fill_bits(copy.map);
    uint32_t bytes = copy.map.element_bytes;
    std::vector<uint8_t> buffer(copy.shape.row_bytes);
    for_each_row(copy.map, copy.at, [&](const BoxRow& row) {
        for (uint32_t i = 0; i < copy.shape.elements; i++)
            if (i < row.first || i >= row.last)
                std::memcpy(buffer.data() + i * bytes, &fill, bytes);
        if (row.first < row.last)
            std::memcpy(buffer.data() + row.first * bytes, row.global, (row.last - row.first) * bytes);
        round_elements(copy.map, buffer.data() + row.first * bytes, row.last - row.first);
        each_unit(copy, to, row.row,
                  [&](uint32_t at, uint8_t* unit) { std::memcpy(unit, buffer.data() + at, 16); });
    });
}

void read_box(const BoxCopy& copy, const Location& from, uint8_t* buffer)
{
    for (uint32_t row = 0; row < copy.shape.rows; row++)
        each_unit(copy, from, row, [&](uint32_t at, const uint8_t* unit) {
            std::memcpy(buffer + row * copy.shape.row_bytes + at, unit, 16);
        });
}

Element element_of(const TensorMap& map)
{
    constexpr Element elements[] = {Element::B32, Element::B32, Element::U32, Element::S32, Element::U64,
                                    Element::S64, Element::F16, Element::F32, Element::F64, Element::Bf16};
    return map.type < std::size(elements) ? elements[map.type] : Element::B32;
}

void write_box(const BoxCopy& copy, Reduction reduction, const uint8_t* buffer)
{
    uint32_t bytes = copy.map.element_bytes;
    for_each_row(copy.map, copy.at, [&](const BoxRow& row) {
        if (row.first == row.last)
            return;
        const uint8_t* from = buffer + row.row * copy.shape.row_bytes + row.first * bytes;
        if (reduction == Reduction::None)
            std::memcpy(row.global, from, (row.last - row.first) * bytes);
        else
            reduce(reduction, element_of(copy.map), row.global, from, row.last - row.first);
    });
}

// The types that cp.reduce.async.bulk takes; those of 64 signed bits have no bitwise reductions on an H200.
void check_reduction(Exec& x, const TensorMap& map)
{
    auto reduction = static_cast<Reduction>(x.op.imm[tensor_reduction]);
    bool integers = map.type >= 2 && map.type <= 5, floats = map.type >= 6 && map.type <= 9;
    bool bitwise = reduction >= Reduction::And && integers && element_of(map) != Element::S64;
    if (!bitwise && (!(integers || floats) || !may_reduce(reduction, element_of(map))))
        x.fault("illegal-instruction", "the reduction does not suit the tensor's type");
}

void issue_load(Exec& x, int lane)
{
    BoxCopy copy = box_copy(x, lane);
    int flags = x.op.imm[tensor_flags];
    auto address = static_cast<uint32_t>(address_of(x, x.op.address, lane));
    int footprint = static_cast<int>(copy.shape.footprint());
    Location to = resolve_shared(x, address, footprint, tensor_alignment, "cp.async.bulk.tensor");
    auto barrier_address = static_cast<uint32_t>(address_of(x, x.op.address2, lane));
    Location barrier = resolve_shared(x, barrier_address, 8, 8, "mbarrier");
    Mask mask =
        flags & tensor_multicast ? static_cast<Mask>(lane_value(x, x.op.args[place_mask], lane)) : 0;
    for (const BulkTarget& target :
         bulk_targets(x, to, barrier, flags & tensor_multicast ? &mask : nullptr, flags & tensor_pairs)) {
        auto deferred = std::make_shared<Deferred>(x, 1u << lane);
        start(deferred, "cp.async.bulk.tensor", [deferred, target, copy] {
            Exec x = deferred->exec();
            check_box_access(x, copy, target.to, Access::Write, deferred->actor(Proxy::Async));
            note_box(*deferred, copy, Access::Read);
            load_box(copy, target.to);
            finish_load(*deferred, target, copy.shape.bytes());
        });
        x.machine.statistics.tma_bytes += copy.shape.bytes();
    }
}

void issue_store(Exec& x, int lane)
{
    BoxCopy copy = box_copy(x, lane);
    auto reduction = static_cast<Reduction>(x.op.imm[tensor_reduction]);
    if (reduction != Reduction::None)
        check_reduction(x, copy.map);
    auto address = static_cast<uint32_t>(address_of(x, x.op.address2, lane));
    int footprint = static_cast<int>(copy.shape.footprint());
    Location from = resolve_shared(x, address, footprint, tensor_alignment, "cp.async.bulk.tensor");
    if (from.cta != &x.cta)
        x.fault("bulk-source", "the source must lie in the CTA's own shared memory");
    auto buffer = std::make_shared<std::vector<uint8_t>>(copy.shape.bytes());
    auto read = [buffer, copy, from](Deferred& deferred) {
        Exec x = deferred.exec();
        check_box_access(x, copy, from, Access::Read, deferred.actor(Proxy::Async));
        read_box(copy, from, buffer->data());
    };
    auto write = [buffer, copy, reduction](Deferred& deferred) {
        note_box(deferred, copy, access_kind(reduction));
        write_box(copy, reduction, buffer->data());
    };
    start_store(x, lane, "cp.async.bulk.tensor", read, write);
    x.machine.statistics.tma_bytes += copy.shape.bytes();
}

void run_tensor(Exec& x)
{
    int flags = x.op.imm[tensor_flags];
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        int lane = std::countr_zero(rest);
        if (flags & tensor_prefetch)
            box_copy(x, lane);
        else if (flags & tensor_to_global)
            issue_store(x, lane);
        else
            issue_load(x, lane);
    }
}

void decode_map(const ptx::Instruction& i, Program& program, Op& op, const ptx::Operand& operand)
{
    using Form = ptx::Operand::Form;
    int rank = op.imm[tensor_rank];
    bool composite = operand.form == Form::Composite && operand.parts.size() == 2;
    if (!composite || operand.parts[1].form != Form::Vector ||
        static_cast<int>(operand.parts[1].parts.size()) != rank)
        refuse(i, program, "[tensor map, {" + std::to_string(rank) + " coordinates}] is expected");
    AddressArg map = decode_address(operand.parts[0], program);
    op.args.assign(place_mask + 1, Arg{});
    op.args[place_map] = map.base;
    op.wide = static_cast<uint64_t>(map.offset);
    for (int part = 0; part < rank; part++)
        op.args[place_coordinates + part] = decode_arg(operand.parts[1].parts[part], program);
}

void check_tensor_modifiers(const ptx::Instruction& i, Program& program)
{
    allow_modifiers(i, program,
                    {"async",
                     "bulk",
                     "tensor",
                     "reduce",
                     "prefetch",
                     "L2",
                     "1d",
                     "2d",
                     "3d",
                     "4d",
                     "5d",
                     "shared::cluster",
                     "shared::cta",
                     "global",
                     "tile",
                     "bulk_group",
                     "mbarrier::complete_tx::bytes",
                     "multicast::cluster",
                     "cta_group::1",
                     "cta_group::2",
                     "L2::cache_hint",
                     "add",
                     "min",
                     "max",
                     "inc",
                     "dec",
                     "and",
                     "or",
                     "xor"});
}

}  // namespace

void decode_bulk_tensor(const ptx::Instruction& i, Program& program, Op& op)
{
    check_tensor_modifiers(i, program);
    int ranks = 0;
    for (int rank = 1; rank <= 5; rank++) {
        if (i.has(std::to_string(rank) + "d")) {
            op.imm[tensor_rank] = rank;
            ranks++;
        }
    }
    bool stores = i.has("bulk_group"), fetches = i.has("prefetch");
    bool loads = i.has("mbarrier::complete_tx::bytes");
    if (ranks != 1 || !i.has("global") || stores + fetches + loads != 1 || (i.has("reduce") && !stores))
        refuse(i, program, "one of .1d ... .5d, .global and a completion mechanism are expected");
    size_t hint = i.has("L2::cache_hint"), masked = i.has("multicast::cluster");
    op.imm[tensor_flags] = (masked ? tensor_multicast : 0) | (i.has("cta_group::2") ? tensor_pairs : 0) |
                           (stores ? tensor_to_global : 0) | (fetches ? tensor_prefetch : 0);
    size_t expected = (loads ? 3 + masked : stores ? 2 : 1) + hint;
    expect_operands(i, program, expected, expected);
    decode_map(i, program, op, i.operands[loads ? 1 : 0]);
    if (loads) {
        op.address = decode_address(i.operands[0], program);
        op.address2 = decode_address(i.operands[2], program);
        if (masked)
            op.args[place_mask] = decode_arg(i.operands[3], program);
    }
    if (stores)
        op.address2 = decode_address(i.operands[1], program);
    Reduction reduction = Reduction::None;
    for (const std::string& modifier : i.modifiers)
        parse_reduction(modifier, reduction);
    if ((reduction != Reduction::None) != i.has("reduce"))
        refuse(i, program, "a reduction needs cp.reduce, and cp.reduce a reduction");
    op.imm[tensor_reduction] = static_cast<int>(reduction);
    op.run = run_tensor;
}

}  // namespace emu
