// Tensor maps: their making, with the checks of the real driver, and the boxes that TMA moves through them.
#pragma once

#include "emulator.hpp"

#include <functional>

namespace emu {

constexpr uint64_t tensor_map_magic = 0x70616d726f736e74;

// The arguments of cuTensorMapEncodeTiled, enumerations as numbers. Null, or what is wrong with them. The
// address may be 0, as for drivers: a kernel replaces it before it uses the map.
const char* encode_tensor_map(TensorMap& map, uint32_t type, uint32_t rank, uint64_t base,
                              const uint64_t* size, const uint64_t* stride, const uint32_t* box,
                              const uint32_t* element_stride, uint32_t interleave, uint32_t swizzle,
                              uint32_t oob_fill);

// Null, or what is wrong with a map; sets what follows from its type.
const char* check_tensor_map(TensorMap& map);

// What one box of a map is in shared memory.
struct BoxShape {
    uint32_t elements = 0, rows = 0;    // of a row; rows of all outer dimensions together
    uint32_t row_bytes = 0, pitch = 0;  // with a swizzle, the pitch is its span, however narrow the box
    uint32_t bytes() const { return rows * row_bytes; }
    uint32_t footprint() const { return rows ? (rows - 1) * pitch + row_bytes : 0; }
};
BoxShape box_shape(const TensorMap& map);

// Where 16 bytes of shared memory lie once swizzled.
uint32_t swizzled(uint32_t address, uint32_t swizzle);

// One row of a box: its elements first ... last - 1 lie in the tensor, from `global` on.
struct BoxRow {
    uint32_t row = 0, first = 0, last = 0;
    uint8_t* global = nullptr;  // of element `first`
};
void for_each_row(const TensorMap& map, const int32_t (&at)[5],
                  const std::function<void(const BoxRow&)>& visit);

// What a load does to elements inside the tensor: those of the tf32 types are rounded, with .ftz or without
// to the same bits, subnormals not flushed.
void round_elements(const TensorMap& map, uint8_t* elements, uint32_t count);

// What an element outside the tensor reads as.
uint64_t fill_bits(const TensorMap& map);

}  // namespace emu
