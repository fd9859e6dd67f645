// A matrix, or a batch of them, in memory of its own that ends with the last element: a sanitizer sees what
// lies behind. Without one there are guards. Gaps and guards are NaN of a kind that no product gives.
#pragma once

#include "hgemm.h"
#include "src/tools/support/number.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace hg::fuzz {

// `batch` matrices, `stride` apart, of `lines` of `length` elements, `ld` apart.
struct Extent {
    int64_t lines = 0, length = 0, ld = 1, batch = 1, stride = 0;

    bool empty() const { return lines <= 0 || length <= 0 || batch <= 0; }
    // Elements from the first to the last; -1 where that is more than a test has memory for.
    int64_t span() const;
    // Do two matrices of the batch share elements? Not asked of those that there is no memory for.
    bool overlaps_itself() const;
};

class Block {
public:
    Block() = default;
    // `shift`: how many elements the first one lies behind an aligned address.
    Block(hgemm_type_t type, const Extent& extent, int shift);

    bool exists() const { return !before_.empty(); }
    hgemm_type_t type() const { return type_; }
    const Extent& extent() const { return extent_; }
    void* ptr(int64_t z = 0) const { return memory_.get() + offset(z, 0, 0); }

    double get(int64_t z, int64_t line, int64_t position) const
    {
        return test::load(type_, memory_.get() + offset(z, line, position));
    }
    void set(int64_t z, int64_t line, int64_t position, double value)
    {
        test::store(type_, memory_.get() + offset(z, line, position), value);
    }
    void set_bits(int64_t z, int64_t line, int64_t position, uint32_t bits);

    // Small integers in all matrices.
    void fill(uint64_t seed);
    // What is there now is what later calls are held against.
    void remember();
    // What an element is to be after the call, within `error` before it is rounded; a NaN may be any.
    void expect(int64_t z, int64_t line, int64_t position, double value, double error);
    // As remembered, but for what was expected: else says where it differs.
    void check(const char* name) const;
    // Back to what was remembered.
    void restore();

private:
    size_t offset(int64_t z, int64_t line, int64_t position) const;

    hgemm_type_t type_ = HGEMM_F16;
    Extent extent_;
    int64_t origin_ = 0;
    std::unique_ptr<unsigned char[]> memory_;
    std::vector<unsigned char> before_;
    mutable std::vector<unsigned char> expected_;
};

}  // namespace hg::fuzz
