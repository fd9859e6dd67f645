#include "buffer.hpp"

#include <algorithm>
#include <cstring>

namespace hg::test {

Buffer::Buffer(Memory& memory, hgemm_type_t type, const Extent& extent, int64_t shift, Guard guard)
    : type_(type), extent_(extent)
{
    origin_ = pad + shift + (extent.stride < 0 ? extent.batch_span() : 0);
    const int64_t used = pad + shift + extent.batch_span() + extent.matrix_span();
    const auto elements = static_cast<size_t>(guard == Guard::Fence ? used : used + pad);
    image_.resize(elements * bytes_of(type));
    const uint32_t nan = sentinel(type);
    for (size_t i = 0; i < image_.size(); i += bytes_of(type))
        std::memcpy(&image_[i], &nan, bytes_of(type));
    block_ = Block(memory, image_.size(), guard);
}

void Buffer::upload() { block_.copy_in(image_.data()); }

void Buffer::download()
{
    uploaded_ = image_;
    block_.copy_out(image_.data());
}

std::string Buffer::damage(bool inside) const
{
    std::vector<unsigned char> expected = uploaded_;
    for (int64_t z = 0; !inside && z < extent_.batch; ++z)
        for (int64_t i = 0; i < extent_.lines; ++i)
            std::copy_n(line(z, i), static_cast<size_t>(extent_.length) * bytes_of(type_),
                        expected.data() + offset(z, i, 0));
    const auto [was, is] = std::mismatch(expected.begin(), expected.end(), image_.begin());
    if (was == expected.end())
        return "";
    const int64_t element = (was - expected.begin()) / static_cast<int64_t>(bytes_of(type_)) - origin_;
    return "element at offset " + std::to_string(element) + " was overwritten";
}

}  // namespace hg::test
