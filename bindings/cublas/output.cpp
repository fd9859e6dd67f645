#include "output.hpp"

#include "driver.hpp"
#include "quietly.hpp"

#include "src/base/convert.hpp"

#include <cstring>

namespace hg::shim {
namespace {

// Limits: a large result may not fit memory twice, nor a batch a list of its problems.
template <typename T>
bool resize(std::vector<T>& list, size_t size)
{
    return quietly([&] { list.resize(size); });
}

// Bytes from the first element to the last; 0 if that overflows.
size_t extent(int64_t lines, int64_t ld, int64_t length, size_t element)
{
    size_t before = 0, elements = 0, bytes = 0;
    const bool fits = !__builtin_mul_overflow(lines - 1, ld, &before) &&
                      !__builtin_add_overflow(before, length, &elements) &&
                      !__builtin_mul_overflow(elements, element, &bytes);
    return fits ? bytes : 0;
}

}  // namespace

Output::Output(const hgemm_args_t& args, void* stream)
    : args_(args), stream_(stream), lines_(args.layout == HGEMM_COL_MAJOR ? args.n : args.m),
      length_(args.layout == HGEMM_COL_MAJOR ? args.m : args.n), element_(args.type_d == HGEMM_F32 ? 4 : 2),
      bytes_(extent(lines_, args.ldd, length_, element_))
{
}

bool Output::find()
{
    const driver::AllowWhileRecording allow;
    if (bytes_ == 0 || !resize(problems_, static_cast<size_t>(args_.batch_count)))
        return false;
    if (args_.d_array)
        return done(
            driver::copy_out(problems_.data(), args_.d_array, problems_.size() * sizeof(void*), stream_));
    const auto first = reinterpret_cast<uintptr_t>(args_.d);
    const auto stride = static_cast<uintptr_t>(args_.stride_d) * element_;
    for (size_t i = 0; i < problems_.size(); ++i)
        problems_[i] = reinterpret_cast<void*>(first + i * stride);
    return true;
}

bool Output::read(Bytes& to) const
{
    const driver::AllowWhileRecording allow;
    size_t size = 0;
    if (__builtin_mul_overflow(problems_.size(), bytes_, &size) || !resize(to, size))
        return false;
    bool copied = true;
    for (size_t i = 0; copied && i < problems_.size(); ++i)
        copied = driver::copy_out(to.data() + i * bytes_, problems_[i], bytes_, stream_);
    return done(copied);
}

bool Output::write(const Bytes& from) const
{
    const driver::AllowWhileRecording allow;
    const size_t pitch = static_cast<size_t>(args_.ldd) * element_;
    const size_t line = static_cast<size_t>(length_) * element_;
    const size_t piece = pitch == line ? bytes_ : line, step = pitch == line ? bytes_ : pitch;
    bool copied = true;
    for (size_t i = 0; i < problems_.size(); ++i)
        for (size_t at = 0; copied && at < bytes_; at += step)
            copied = driver::copy_in(static_cast<char*>(problems_[i]) + at, &from[i * bytes_ + at], piece,
                                     stream_);
    return done(copied);
}

float Output::decode(const unsigned char* at) const
{
    if (args_.type_d == HGEMM_F32) {
        float value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return args_.type_d == HGEMM_F16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

bool Output::done(bool copied) const { return driver::wait(stream_) && copied; }

}  // namespace hg::shim
