// The bytes of one input, read front to back. Behind the end all are 0, which every choice takes for the
// plainest case, so that short inputs are whole calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hg::fuzz {

class Input {
public:
    Input(const uint8_t* data, size_t size) : rest_(data, size) {}

    bool empty() const { return rest_.empty(); }
    std::span<const uint8_t> rest() const { return rest_; }

    uint8_t byte()
    {
        if (rest_.empty())
            return 0;
        const uint8_t first = rest_.front();
        rest_ = rest_.subspan(1);
        return first;
    }
    // Up to eight bytes, the lowest first.
    uint64_t bits(int bytes)
    {
        uint64_t value = 0;
        for (int i = 0; i < bytes; ++i)
            value |= uint64_t{byte()} << (8 * i);
        return value;
    }
    int below(int limit) { return byte() % limit; }
    // True for one byte in n, never for 0.
    bool one_in(int n) { return byte() % n == n - 1; }
    template <typename T, size_t count>
    T pick(const T (&list)[count])
    {
        static_assert(count <= 256);
        return list[byte() % count];
    }
    // A length byte and so many bytes, fewer at the end.
    std::string text()
    {
        const size_t length = byte();
        std::string value;
        while (value.size() < length && !empty())
            value.push_back(static_cast<char>(byte()));
        return value;
    }

private:
    std::span<const uint8_t> rest_;
};

}  // namespace hg::fuzz
