#include "ops/tensor_map.hpp"

#include "numerics/floats.hpp"

#include <algorithm>
#include <cstring>

namespace emu {

namespace {

// By CUtensorMapDataType; 0: packed types that are not emulated.
constexpr uint32_t type_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr uint32_t type_f16 = 6, type_tf32 = 11;
// By CUtensorMapSwizzle; the last three are 128 bytes with larger atoms.
constexpr uint32_t swizzle_span[] = {0, 32, 64, 128, 128, 128, 128};
constexpr uint32_t swizzle_flip = 5;

// What is too large for its field stays too large.
uint8_t to_byte(uint32_t value) { return static_cast<uint8_t>(std::min(value, 0xffu)); }

const char* check_sizes(const TensorMap& map)
{
    for (uint32_t i = 0; i < map.rank; i++)
        if (map.size[i] < 1 || map.size[i] > uint64_t{1} << 32)
            return "a size of the tensor is not in 1 ... 2^32";
    for (uint32_t i = 0; i + 1 < map.rank; i++)
        if (map.stride[i] % 16 != 0 || map.stride[i] >= uint64_t{1} << 40)
            return "a stride is no multiple of 16 or not below 2^40";
    return nullptr;
}

const char* check_box(const TensorMap& map)
{
    for (uint32_t i = 0; i < map.rank; i++) {
        if (map.box[i] < 1 || map.box[i] > 256)
            return "a size of the box is not in 1 ... 256";
        if (map.element_stride[i] < 1 || map.element_stride[i] > 8)
            return "an element stride is not in 1 ... 8";
    }
    uint32_t inner = map.box[0] * map.element_bytes;
    if (inner % 16 != 0)
        return "the box's inner dimension is no multiple of 16 bytes";
    if (map.swizzle != 0 && inner > swizzle_span[map.swizzle])
        return "the box's inner dimension is wider than the swizzle";
    return nullptr;
}

}  // namespace

const char* encode_tensor_map(TensorMap& map, uint32_t type, uint32_t rank, uint64_t base,
                              const uint64_t* size, const uint64_t* stride, const uint32_t* box,
                              const uint32_t* element_stride, uint32_t interleave, uint32_t swizzle,
                              uint32_t oob_fill)
{
    if (rank < 1 || rank > 5)
        return "the rank is not in 1 ... 5";
    if (!size || !box || !element_stride)
        return "no sizes, box or element strides";
    if (rank > 1 && !stride)
        return "no strides";
    TensorMap made{};
    made.magic = tensor_map_magic;
    made.base = base;
    made.rank = rank, made.type = type;
    made.interleave = to_byte(interleave), made.swizzle = to_byte(swizzle),
    made.oob_nan = to_byte(oob_fill);
    for (uint32_t i = 0; i < rank; i++) {
        made.size[i] = size[i];
        if (i + 1 < rank)
            made.stride[i] = stride[i];
        made.box[i] = static_cast<uint16_t>(std::min(box[i], 0xffffu));
        made.element_stride[i] = to_byte(element_stride[i]);
    }
    if (const char* complaint = check_tensor_map(made))
        return complaint;
    map = made;
    return nullptr;
}

const char* check_tensor_map(TensorMap& map)
{
    if (map.type >= std::size(type_bytes))
        return "the data type is unknown or a packed one, which is not emulated";
    if (map.rank < 1 || map.rank > 5)
        return "the rank is not in 1 ... 5";
    if (map.interleave != 0)
        return "interleaved layouts are not emulated";
    if (map.base % 16 != 0)
        return "the address is no multiple of 16";
    if (map.swizzle >= std::size(swizzle_span) || map.swizzle == swizzle_flip)
        return "the swizzle is unknown or not emulated";
    bool floating = map.type >= type_f16;
    if (map.oob_nan > 1 || (map.oob_nan == 1 && !floating))
        return "the fill outside the tensor must be zero, or NaN for floating types";
    map.element_bytes = static_cast<uint8_t>(type_bytes[map.type]);
    const char* complaint = check_sizes(map);
    return complaint ? complaint : check_box(map);
}

// The stride of the innermost dimension does not count without interleaving.
static uint32_t rows_along(const TensorMap& map, uint32_t dimension)
{
    return (map.box[dimension] + map.element_stride[dimension] - 1u) / map.element_stride[dimension];
}

BoxShape box_shape(const TensorMap& map)
{
    BoxShape shape;
    shape.elements = map.box[0];
    shape.row_bytes = shape.elements * map.element_bytes;
    shape.pitch = map.swizzle ? swizzle_span[map.swizzle] : shape.row_bytes;
    shape.rows = 1;
    for (uint32_t i = 1; i < map.rank; i++)
        shape.rows *= rows_along(map, i);
    return shape;
}

uint32_t swizzled(uint32_t address, uint32_t swizzle)
{
    switch (swizzle) {
    case 1: return address ^ (address >> 3 & 0x10);
    case 2: return address ^ (address >> 3 & 0x30);
    case 3: return address ^ (address >> 3 & 0x70);
    case 4: return address ^ (address >> 2 & 0x60);
    case 6: return address ^ (address >> 1 & 0x40);
    default: return address;
    }
}

void for_each_row(const TensorMap& map, const int32_t (&at)[5],
                  const std::function<void(const BoxRow&)>& visit)
{
    auto size = static_cast<int64_t>(map.size[0]);
    int64_t first = std::clamp<int64_t>(-int64_t{at[0]}, 0, map.box[0]);
    int64_t last = std::clamp<int64_t>(size - at[0], first, map.box[0]);
    uint32_t rows = box_shape(map).rows;
    uint32_t index[5] = {};
    for (uint32_t row = 0; row < rows; row++) {
        BoxRow here{row, static_cast<uint32_t>(first), static_cast<uint32_t>(last), nullptr};
        uint64_t address = map.base + static_cast<uint64_t>((at[0] + first) * map.element_bytes);
        bool inside = first < last;
        for (uint32_t i = 1; i < map.rank; i++) {
            int64_t coordinate = at[i] + int64_t{index[i]} * map.element_stride[i];
            inside &= coordinate >= 0 && coordinate < static_cast<int64_t>(map.size[i]);
            address += static_cast<uint64_t>(coordinate) * map.stride[i - 1];
        }
        if (!inside)
            here.first = here.last = 0;
        here.global = reinterpret_cast<uint8_t*>(address);
        visit(here);
        for (uint32_t i = 1; i < map.rank && ++index[i] == rows_along(map, i); i++)
            index[i] = 0;
    }
}

void round_elements(const TensorMap& map, uint8_t* elements, uint32_t count)
{
    if (map.type < type_tf32)
        return;
    constexpr uint32_t dropped = 13;  // bits of an f32 that a tf32 has not
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits;
        std::memcpy(&bits, elements + 4 * i, 4);
        const double value = to_double(FormatId::F32, bits);
        bits = static_cast<uint32_t>(from_double(FormatId::Tf32, value, Rounding::Nearest) << dropped);
        std::memcpy(elements + 4 * i, &bits, 4);
    }
}

uint64_t fill_bits(const TensorMap& map)
{
    // A pattern of 16 bits whatever the type, as an H200 fills f32 and f64.
    return map.oob_nan ? 0x7ff77ff77ff77ff7 : 0;
}

}  // namespace emu
