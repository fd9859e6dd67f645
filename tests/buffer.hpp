// A matrix in memory with everything around it: gaps between its lines, pads of NaN before and behind.
#pragma once

#include "src/tools/support/memory.hpp"
#include "src/tools/support/number.hpp"

#include <string>
#include <vector>

namespace hg::test {

// `batch` matrices, `stride` apart, of `lines` contiguous runs of `length` elements, `ld` apart.
struct Extent {
    int64_t lines = 0, length = 0, ld = 1, batch = 1, stride = 0;

    bool empty() const { return lines == 0 || length == 0 || batch == 0; }
    int64_t matrix_span() const { return empty() ? 0 : (lines - 1) * ld + length; }
    int64_t batch_span() const { return empty() ? 0 : (batch - 1) * (stride < 0 ? -stride : stride); }
};

class Buffer {
public:
    static constexpr int64_t pad = 4096;  // elements

    Buffer() = default;
    // The first element is `shift` elements after an address of at least 256-byte alignment; with a fence,
    // the last element ends at the fence instead.
    Buffer(Memory& memory, hgemm_type_t type, const Extent& extent, int64_t shift, Guard guard);

    bool exists() const { return !image_.empty(); }
    hgemm_type_t type() const { return type_; }
    const Extent& extent() const { return extent_; }

    double get(int64_t z, int64_t line, int64_t position) const
    {
        return load(type_, &image_[offset(z, line, position)]);
    }
    void set(int64_t z, int64_t line, int64_t position, double value)
    {
        store(type_, &image_[offset(z, line, position)], value);
    }
    const unsigned char* line(int64_t z, int64_t line) const { return &image_[offset(z, line, 0)]; }
    unsigned char* line(int64_t z, int64_t line) { return &image_[offset(z, line, 0)]; }

    // The address of problem z. Not null even for a matrix without elements.
    void* ptr(int64_t z = 0) const { return block_.get<unsigned char>() + offset(z, 0, 0); }

    void upload();    // from the image to the memory
    void download();  // and back, remembering what was uploaded
    // After download(): "" if the elements outside of the matrices (with `inside`, all of them) are
    // unchanged, else where the first difference is.
    std::string damage(bool inside) const;

private:
    size_t offset(int64_t z, int64_t line, int64_t position) const
    {
        return static_cast<size_t>(origin_ + z * extent_.stride + line * extent_.ld + position) *
               bytes_of(type_);
    }

    hgemm_type_t type_ = HGEMM_F16;
    Extent extent_;
    int64_t origin_ = 0;
    std::vector<unsigned char> image_, uploaded_;
    Block block_;
};

}  // namespace hg::test
