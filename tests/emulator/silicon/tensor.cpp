#include "tensor.hpp"

#include <algorithm>

namespace emu::silicon {
namespace {

uint32_t round_up(uint32_t value, uint32_t step) { return (value + step - 1) / step * step; }

uint32_t rows_of(const TensorMap& map)
{
    uint32_t rows = 1;
    for (uint32_t i = 1; i < map.rank; ++i)
        rows *= (map.box[i] + map.element_stride[i] - 1) / map.element_stride[i];
    return rows;
}

uint32_t pitch_of(const TensorMap& map)
{
    return map.swizzle ? 16u << map.swizzle : map.box[0] * element_bytes(map.type);
}

uint64_t extent_of(const TensorMap& map)
{
    uint64_t bytes = round_up(static_cast<uint32_t>(map.size[0]) * element_bytes(map.type), 16);
    for (uint32_t i = 1; i < map.rank; ++i)
        bytes += (map.size[i] - 1) * map.stride[i - 1];
    return bytes;
}

TensorMap draw_once(Random& random, uint32_t type, const MapLimits& limits)
{
    TensorMap map;
    const uint32_t bytes = element_bytes(type);
    map.type = type;
    map.rank = 1 + random.below(5);
    map.swizzle = random.below(4);
    map.fill = is_float(type) && random.chance(50);
    const uint32_t widest = std::min(256u, map.swizzle ? (16u << map.swizzle) / bytes : 512 / bytes);
    const uint32_t unit = 16 / bytes;
    map.box[0] = unit * (1 + random.below(widest / unit));
    map.size[0] = 1 + random.below(random.chance(50) ? 40 : 2 * map.box[0] + 10);
    uint64_t stride = round_up(static_cast<uint32_t>(map.size[0]) * bytes, 16);
    for (uint32_t i = 1; i < map.rank; ++i) {
        map.stride[i - 1] = stride + 16 * random.below(3);
        map.size[i] = 1 + random.below(i == 1 ? 12 : 5);
        map.box[i] = 1 + random.below(i == 1 ? 12 : 5);
        stride = map.stride[i - 1] * map.size[i];
    }
    for (uint32_t i = 0; limits.strides && i < map.rank; ++i)
        map.element_stride[i] = 1 + random.below(3);
    return map;
}

}  // namespace

uint32_t element_bytes(uint32_t type)
{
    constexpr uint32_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return bytes[type];
}

bool is_float(uint32_t type) { return type >= F16; }

char letter_of(uint32_t type)
{
    constexpr char letters[] = {'u', 'u', 'i', 'i', 'l', 'l', 'H', 'F', 'D', 'B', 'F', 'F', 'F'};
    return letters[type];
}

TensorMap draw_map(Random& random, uint32_t type, const MapLimits& limits)
{
    for (;;) {
        const TensorMap map = draw_once(random, type, limits);
        if (extent_of(map) <= limits.tensor_bytes && box_footprint(map) <= limits.box_bytes)
            return map;
    }
}

uint32_t box_bytes(const TensorMap& map) { return rows_of(map) * map.box[0] * element_bytes(map.type); }

uint32_t box_footprint(const TensorMap& map) { return rows_of(map) * pitch_of(map); }

std::vector<int> draw_coordinates(Random& random, const TensorMap& map, bool stores)
{
    std::vector<int> at;
    const int unit = 16 / static_cast<int>(element_bytes(map.type));
    for (uint32_t i = 0; i < map.rank; ++i) {
        const auto size = static_cast<int>(map.size[i]), box = static_cast<int>(map.box[i]);
        // Most boxes should meet the tensor, whatever the other dimensions do.
        int first = random.chance(10)   ? random.between(-box - 1, size + 1)
                    : random.chance(40) ? 0
                                        : random.between(1 - box, size - 1);
        if (i == 0)
            first = first / unit * unit;
        at.push_back(stores && first < 0 ? 0 : first);
    }
    return at;
}

std::string box_operand(Text& text, size_t index, const std::vector<int>& at)
{
    const std::string address = text.wide();
    text("mov.u64 {}, map{};", address, index);
    text("cvta.param.u64 {}, {};", address, address);
    return fmt::format("[{}, {{{}}}]", address, fmt::join(at, ", "));
}

}  // namespace emu::silicon
