// Matrices in device memory whose values and places a test chooses, with memory around them that nobody may
// write to.
#pragma once

#include "lt_fixture.hpp"
#include "src/tools/support/reference.hpp"

#include <dlfcn.h>

#include <cmath>
#include <cstring>

namespace hg::test {

class Placed {
public:
    using Value = std::function<double(size_t index)>;

    // Matrix z of a batch begins `shift` + z elements behind a boundary of 16 bytes.
    Placed(Memory& memory, hgemm_type_t type, int64_t elements, int batch, const Value& value,
           int shift = 0)
        : memory_(memory), type_(type), elements_(elements), batch_(batch), shift_(shift),
          image_(static_cast<size_t>(pitch() * batch + margin) * bytes_of(type), 0xff),
          block_(memory, image_.size())
    {
        for (int z = 0; z < batch; ++z)
            for (int64_t i = 0; i < elements; ++i)
                store(type, &image_[place(z, i)], value(static_cast<size_t>(i)));
        block_.copy_in(image_.data());
    }

    uint16_t* ptr(int problem = 0) const
    {
        return reinterpret_cast<uint16_t*>(block_.get<unsigned char>() + place(problem, 0));
    }
    Block pointers() const  // in device memory
    {
        std::vector<void*> list;
        for (int z = 0; z < batch_; ++z)
            list.push_back(ptr(z));
        Block block(memory_, list.size() * sizeof list[0]);
        block.copy_in(list.data());
        return block;
    }

    double at(int problem, int64_t i) const { return load(type_, &image_[place(problem, i)]); }  // at first
    std::vector<double> now(int problem = 0) const
    {
        const std::vector<unsigned char> image = copy_out();
        std::vector<double> values;
        for (int64_t i = 0; i < elements_; ++i)
            values.push_back(load(type_, &image[place(problem, i)]));
        return values;
    }
    // Elements that are not value(problem, i), rounded.
    int64_t wrong(const std::function<double(int problem, int64_t i)>& value) const
    {
        int64_t wrong = 0;
        for (int z = 0; z < batch_; ++z) {
            const std::vector<double> values = now(z);
            for (int64_t i = 0; i < elements_; ++i)
                wrong += values[static_cast<size_t>(i)] != round_to(type_, value(z, i));
        }
        return wrong;
    }
    bool nothing_else_written() const
    {
        std::vector<unsigned char> image = copy_out();
        for (int z = 0; z < batch_; ++z)
            std::memcpy(&image[place(z, 0)], &image_[place(z, 0)],
                        static_cast<size_t>(elements_) * bytes_of(type_));
        return image == image_;
    }

private:
    static constexpr int64_t margin = 256;

    int64_t pitch() const { return (elements_ + margin + 7) / 8 * 8; }
    size_t place(int problem, int64_t i) const
    {
        return static_cast<size_t>(margin / 2 + problem * (pitch() + 1) + shift_ + i) * bytes_of(type_);
    }
    std::vector<unsigned char> copy_out() const
    {
        Cuda::get()->wait();
        std::vector<unsigned char> image(image_.size());
        block_.copy_out(image.data());
        return image;
    }

    Memory& memory_;
    hgemm_type_t type_;
    int64_t elements_;
    int batch_, shift_;
    std::vector<unsigned char> image_;
    Block block_;
};

}  // namespace hg::test
