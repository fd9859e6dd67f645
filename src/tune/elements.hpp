// Elements in device memory, read line by line.
#pragma once

#include "src/base/convert.hpp"
#include "src/base/status.hpp"
#include "src/driver/driver.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hg {

// `count` lines of `width` elements, `pitch` elements apart.
struct Lines {
    const void* first;
    int64_t count, width, pitch;
    Type type;
};

inline float value_of(const char* element, Type type)
{
    if (type == Type::F32) {
        float value;
        std::memcpy(&value, element, sizeof value);
        return value;
    }
    uint16_t bits;
    std::memcpy(&bits, element, sizeof bits);
    return type == Type::BF16 ? bfloat16_to_float(bits) : half_to_float(bits);
}

// Reads `count` values that lie one behind the other, behind what is on the stream.
template <typename T>
Status read_values(hgemm_stream_t stream, const T* from, int64_t count, T* values)
{
    const Status status = driver::copy_out(values, from, static_cast<size_t>(count) * sizeof(T), stream);
    const Status waited = driver::wait_for(stream);
    return status == ok ? waited : status;
}

// Copies the lines to the host in pieces and calls use(index, line) for each, behind what is on the stream.
// What lies between lines is copied too unless there is much of it.
template <typename Use>
Status for_each_line(hgemm_stream_t stream, const Lines& lines, Use use)
{
    constexpr int64_t piece_bytes = int64_t{16} << 20;
    const int64_t element = bytes_of(lines.type), width = lines.width * element;
    const int64_t pitch = lines.count > 1 ? lines.pitch * element : width;
    const bool dense = pitch <= 2 * width;
    const int64_t kept = dense ? pitch : width;  // from line to line on the host
    const int64_t at_once = std::clamp<int64_t>(piece_bytes / kept, 1, lines.count);
    const auto* const first = static_cast<const char*>(lines.first);
    std::vector<char> piece(static_cast<size_t>((at_once - 1) * kept + width));
    for (int64_t begin = 0; begin < lines.count; begin += at_once) {
        const int64_t here = std::min(at_once, lines.count - begin);
        Status status = ok;
        for (int64_t i = 0; status == ok && i < (dense ? 1 : here); ++i)
            status =
                driver::copy_out(piece.data() + i * kept, first + (begin + i) * pitch,
                                 static_cast<size_t>(dense ? (here - 1) * pitch + width : width), stream);
        const Status waited = driver::wait_for(stream);
        if (status != ok || waited != ok)
            return status != ok ? status : waited;
        for (int64_t i = 0; i < here; ++i)
            use(begin + i, static_cast<const char*>(piece.data() + i * kept));
    }
    return ok;
}

}  // namespace hg
