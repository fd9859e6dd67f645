// tensormap.replace and tensormap.cp_fenceproxy: kernels that make tensor maps of their own.
#include "core/values.hpp"
#include "ops/async.hpp"
#include "ops/memory.hpp"
#include "ops/tensor_map.hpp"

#include <bit>
#include <cstring>

namespace emu {

namespace {

constexpr int map_bytes = sizeof(TensorMap), map_alignment = 64;

// In the order in which the decoder names them.
enum class Field {
    GlobalAddress,
    Rank,
    BoxDim,
    GlobalDim,
    GlobalStride,
    ElementStride,
    Type,
    Interleave,
    Swizzle,
    Atomicity,
    Fill
};
enum ReplaceSlot { replace_field = memory_first_free, replace_ordinal, replace_old_stride };

// ISA 9.7.9.28 counts types otherwise than the driver's CUtensorMapDataType.
constexpr uint32_t driver_types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};
// CUtensorMapSwizzle by atomicity, for the mode of 128 bytes.
constexpr uint8_t wide_swizzles[] = {3, 4, 5, 6};
constexpr uint32_t swizzle_wide = 3;

void replace(Exec& x, TensorMap& map, uint64_t value)
{
    const int ordinal = x.op.imm[replace_ordinal];
    const auto byte = static_cast<uint8_t>(std::min<uint64_t>(value, 0xff));
    switch (static_cast<Field>(x.op.imm[replace_field])) {
    case Field::GlobalAddress: map.base = value; break;
    case Field::Rank: map.rank = static_cast<uint32_t>(value) + 1; break;
    case Field::BoxDim: map.box[ordinal] = static_cast<uint16_t>(std::min<uint64_t>(value, 0xffff)); break;
    case Field::GlobalDim: map.size[ordinal] = static_cast<uint32_t>(value); break;
    case Field::GlobalStride:
        map.stride[ordinal] = x.op.imm[replace_old_stride] ? value << 4 : value;
        break;
    case Field::ElementStride: map.element_stride[ordinal] = byte; break;
    case Field::Type: map.type = value < std::size(driver_types) ? driver_types[value] : ~0u; break;
    case Field::Interleave: map.interleave = byte; break;
    case Field::Swizzle: map.swizzle = byte; break;
    case Field::Atomicity:
        if (map.swizzle >= swizzle_wide && value < std::size(wide_swizzles))
            map.swizzle = wide_swizzles[value];
        break;
    case Field::Fill: map.oob_nan = byte; break;
    }
}

// A map may start as zeros.
bool is_empty(const TensorMap& map)
{
    const TensorMap empty{};
    return std::memcmp(&map, &empty, sizeof map) == 0;
}

void run_replace(Exec& x)
{
    Location at[warp_lanes];
    for (Mask rest = x.lanes; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        at[lane] = locate(x, lane, map_bytes, map_alignment);
        TensorMap map;
        std::memcpy(&map, at[lane].bytes, sizeof map);
        if (map.magic != tensor_map_magic && !is_empty(map))
            x.fault("tensor-map", "there is no tensor map at this address");
        map.magic = tensor_map_magic;
        map.replaced = 1;
        replace(x, map, lane_value(x, x.op.args[0], lane));
        std::memcpy(at[lane].bytes, &map, sizeof map);
        if (at[lane].cta)
            x.machine.checker.access(&x, *at[lane].cta, at[lane].offset, map_bytes, Access::Write,
                                     generic_actor(x, lane));
    }
}

void decode_replace(const ptx::Instruction& i, Program& program, Op& op)
{
    Modifiers m(i, program);
    m.take("replace");
    if (!m.take("tile") || !m.take("b1024"))
        refuse(i, program, "only .tile of .b1024 is emulated");
    take_space(m, op);
    op.imm[replace_field] =
        m.take_one({"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
                    "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"});
    const auto field = static_cast<Field>(op.imm[replace_field]);
    const bool wide = field == Field::GlobalAddress || field == Field::GlobalStride;
    if (op.imm[replace_field] < 0 || !m.take(wide ? "b64" : "b32"))
        refuse(i, program, "no such field, or not of this type");
    m.done();
    const bool listed = field >= Field::BoxDim && field <= Field::ElementStride;
    expect_operands(i, program, listed ? 3 : 2, listed ? 3 : 2);
    op.address = decode_address(i.operands[0], program);
    if (listed) {
        op.imm[replace_ordinal] = immediate(i, program, i.operands[1]);
        if (op.imm[replace_ordinal] < 0 || op.imm[replace_ordinal] > (field == Field::GlobalStride ? 3 : 4))
            refuse(i, program, "no such dimension");
    }
    // Before PTX 8.5 strides were given without their lower four bits.
    op.imm[replace_old_stride] = program.module->version < 85;
    op.args = {decode_arg(i.operands.back(), program, i,
                          {ptx::Kind::Bits, static_cast<uint8_t>(wide ? 64 : 32), 1})};
    op.run = run_replace;
}

// The copy is the warp's, once.
void run_map_copy(Exec& x)
{
    x.require_convergence();
    const Location from = resolve_shared(x, static_cast<uint32_t>(address_of(x, x.op.address2, 0)),
                                         map_bytes, map_alignment, "tensormap.cp_fenceproxy");
    const Location to =
        resolve(x, ptx::Space::Global, address_of(x, x.op.address, 0), map_bytes, map_alignment, 0);
    x.machine.checker.access(&x, *from.cta, from.offset, map_bytes, Access::Read, generic_actor(x, -1));
    std::memcpy(to.bytes, from.bytes, map_bytes);
}

void decode_map_copy(const ptx::Instruction& i, Program& program, Op& op)
{
    allow_modifiers(i, program,
                    {"cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", "cta",
                     "cluster", "gpu", "sys", "sync", "aligned"});
    expect_operands(i, program, 3, 3);
    if (immediate(i, program, i.operands[2]) != map_bytes)
        refuse(i, program, "a tensor map has 128 bytes");
    op.address = decode_address(i.operands[0], program);
    op.address2 = decode_address(i.operands[1], program);
    op.run = run_map_copy;
}

}  // namespace

void add_tensor_map(DecoderTable& table)
{
    table.by_opcode["tensormap.replace"] = decode_replace;
    table.by_opcode["tensormap.cp_fenceproxy"] = decode_map_copy;
}

}  // namespace emu
