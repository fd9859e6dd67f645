// Random tensor maps and boxes of them, for the kernels that use TMA.
#pragma once

#include "kernel.hpp"
#include "text.hpp"

#include <vector>

namespace emu::silicon {

// CUtensorMapDataType.
enum TensorType : uint32_t { U8, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, F32Ftz, Tf32, Tf32Ftz };
uint32_t element_bytes(uint32_t type);
bool is_float(uint32_t type);
char letter_of(uint32_t type);  // of random.hpp

struct MapLimits {
    uint32_t tensor_bytes = 32 * 1024;  // all of it, from the base on
    uint32_t box_bytes = 8192;          // in shared memory
    bool strides = false;               // element strides other than 1
};
TensorMap draw_map(Random& random, uint32_t type, const MapLimits& limits);

// Of a box in shared memory: what is counted at a barrier, and what it covers.
uint32_t box_bytes(const TensorMap& map);
uint32_t box_footprint(const TensorMap& map);

// Where a box begins: on a 16-byte unit; it may hang over any edge, but a store begins at no negative
// coordinate. The device refuses other boxes.
std::vector<int> draw_coordinates(Random& random, const TensorMap& map, bool stores = false);

// "[address, {0, -1}]" of map number `index`.
std::string box_operand(Text& text, size_t index, const std::vector<int>& at);

}  // namespace emu::silicon
