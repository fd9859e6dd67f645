// A generated kernel with everything that its launch needs, and the families of them. The same seed always
// makes the same kernel and the same data.
#pragma once

#include "random.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emu::silicon {

struct Extent {
    uint32_t x = 1, y = 1, z = 1;
};

// Arguments of cuTensorMapEncodeTiled, enumerations as numbers. The base lies `offset` bytes into the input
// or the output.
struct TensorMap {
    bool of_output = false;
    uint64_t offset = 0;
    uint32_t type = 0, rank = 1;
    uint64_t size[5] = {1, 1, 1, 1, 1};
    uint64_t stride[5] = {};  // of dimension i + 1, in bytes
    uint32_t box[5] = {1, 1, 1, 1, 1}, element_stride[5] = {1, 1, 1, 1, 1};
    uint32_t swizzle = 0, fill = 0;
};

// Parameters: address of the input, address of the output, the tensor maps.
struct Kernel {
    std::string ptx;
    Extent grid, block, cluster;
    uint32_t dynamic_shared = 0;
    std::vector<uint8_t> input, output;  // the output as it is before the launch
    std::vector<TensorMap> maps;
};

struct Family {
    const char* name;
    uint32_t seeds;
    Kernel (*make)(Random& random, uint32_t seed);
};
const std::vector<Family>& families();
Kernel make_kernel(const Family& family, uint32_t seed);

// A pattern that shows which bytes a kernel has left alone.
std::vector<uint8_t> untouched(size_t bytes);

}  // namespace emu::silicon
