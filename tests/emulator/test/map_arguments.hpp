// The arguments of a tensor map, with defaults that are valid.
#pragma once

#include "ops/tensor_map.hpp"

#include <gtest/gtest.h>

namespace emu {

enum Type { u32_type = 2, f16_type = 6, f32_type = 7, bf16_type = 9 };

struct MapArguments {
    uint32_t type = bf16_type, rank = 2;
    uint64_t base = 0x10000;
    uint64_t size[5] = {200, 150, 5, 2, 2}, stride[4] = {416, 66560, 1 << 20, 1 << 22};
    uint32_t box[5] = {64, 8, 1, 1, 1}, element_stride[5] = {1, 1, 1, 1, 1};
    uint32_t interleave = 0, swizzle = 0, fill = 0;

    const char* encode(TensorMap& map) const
    {
        return encode_tensor_map(map, type, rank, base, size, stride, box, element_stride, interleave,
                                 swizzle, fill);
    }
    TensorMap map() const
    {
        TensorMap map;
        EXPECT_EQ(encode(map), nullptr);
        return map;
    }
};

}  // namespace emu
