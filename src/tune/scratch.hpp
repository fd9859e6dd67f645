// The device memory of a tuning call: it takes the place of D and aux, and overwrites the L2 cache.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <cstddef>
#include <vector>

namespace hg {

class Scratch {
public:
    explicit Scratch(const Handle& handle) : handle_(handle) {}
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // The problem writes to this memory from now on. There its outputs lie as the caller's: with their
    // leading dimensions and strides, and at the same place within 256 bytes, on which kernels and their
    // speed depend.
    Status replace_outputs(Problem& problem);
    Status poison_outputs() const;  // makes every element NaN
    Status overwrite_l2();

private:
    struct Region {
        char* ptr;
        size_t bytes;
    };
    Status allocate(size_t bytes, Region& region);
    Status replace(Matrix& matrix, const Problem& problem);
    Status replace_array(Matrix& matrix, const Problem& problem);

    const Handle& handle_;
    std::vector<Region> all_, outputs_;
    Region l2_{};
};

}  // namespace hg
