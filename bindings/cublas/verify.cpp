#include "verify.hpp"

#include "describe.hpp"
#include "driver.hpp"
#include "lazy.hpp"
#include "quietly.hpp"

#include "arch/host/convert.hpp"
#include "src/decimal.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace hg::shim {
namespace {

using Bytes = std::vector<unsigned char>;

size_t size_of(hgemm_type_t type) { return type == HGEMM_F32 ? 4 : 2; }

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

// The memory that a GEMM writes to: of each problem of a batch, from its first element to the last.
class Output {
public:
    Output(const hgemm_args_t& args, void* stream)
        : args_(args), stream_(stream), lines_(args.layout == HGEMM_COL_MAJOR ? args.n : args.m),
          length_(args.layout == HGEMM_COL_MAJOR ? args.m : args.n),
          bytes_(extent(lines_, args.ldd, length_, size_of(args.type_d)))
    {
    }

    // Finds the problems of the batch; arrays of pointers are read from the device.
    bool find()
    {
        const driver::AllowWhileRecording allow;
        if (bytes_ == 0 || !resize(problems_, static_cast<size_t>(args_.batch_count)))
            return false;
        if (args_.d_array)
            return done(driver::copy_out(problems_.data(), args_.d_array, problems_.size() * sizeof(void*),
                                         stream_));
        const auto first = reinterpret_cast<uintptr_t>(args_.d);
        const auto stride = static_cast<uintptr_t>(args_.stride_d) * size_of(args_.type_d);
        for (size_t i = 0; i < problems_.size(); ++i)
            problems_[i] = reinterpret_cast<void*>(first + i * stride);
        return true;
    }

    bool read(Bytes& to) const
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

    // Other streams may write to the gaps between columns meanwhile, so these are not restored.
    bool write(const Bytes& from) const
    {
        const driver::AllowWhileRecording allow;
        const size_t pitch = static_cast<size_t>(args_.ldd) * size_of(args_.type_d);
        const size_t line = static_cast<size_t>(length_) * size_of(args_.type_d);
        const size_t piece = pitch == line ? bytes_ : line, step = pitch == line ? bytes_ : pitch;
        bool copied = true;
        for (size_t i = 0; i < problems_.size(); ++i)
            for (size_t at = 0; copied && at < bytes_; at += step)
                copied = driver::copy_in(static_cast<char*>(problems_[i]) + at, &from[i * bytes_ + at],
                                         piece, stream_);
        return done(copied);
    }

    // Calls visit(first, second) with each element of two results.
    template <typename Visit>
    void compare(const Bytes& first, const Bytes& second, Visit visit) const
    {
        const size_t element = size_of(args_.type_d);
        for (size_t problem = 0; problem < problems_.size(); ++problem)
            for (int64_t line = 0; line < lines_; ++line)
                for (int64_t i = 0; i < length_; ++i) {
                    const size_t at =
                        problem * bytes_ + static_cast<size_t>(line * args_.ldd + i) * element;
                    visit(decode(&first[at]), decode(&second[at]));
                }
    }

private:
    bool done(bool copied) const { return driver::wait(stream_) && copied; }

    double decode(const unsigned char* at) const
    {
        if (args_.type_d == HGEMM_F32) {
            float value;
            std::memcpy(&value, at, sizeof value);
            return static_cast<double>(value);
        }
        uint16_t bits;
        std::memcpy(&bits, at, sizeof bits);
        return static_cast<double>(args_.type_d == HGEMM_F16 ? half_to_float(bits)
                                                             : bfloat16_to_float(bits));
    }

    const hgemm_args_t& args_;
    void* stream_;
    int64_t lines_, length_;
    size_t bytes_;  // of one problem, from its first element to the last
    std::vector<void*> problems_;
};

struct Difference {
    uint64_t calls = 0;
    double largest = 0;        // relative to the largest element of the same result
    uint64_t only_one_is = 0;  // elements that are finite in one of the two results
};

struct Differences {
    std::mutex mutex;
    std::map<std::string, Difference> by_shape;
};
constinit Lazy<Differences> found;

void record(const std::string& shape, const Output& output, const Bytes& ours, const Bytes& theirs)
{
    double largest = 0, difference = 0;
    uint64_t only_one = 0;
    output.compare(ours, theirs, [&](double o, double t) {
        if (std::isfinite(o) != std::isfinite(t)) {
            ++only_one;
        } else if (std::isfinite(t)) {
            largest = std::max(largest, std::abs(t));
            difference = std::max(difference, std::abs(o - t));
        }
    });
    Differences& all = found.get();
    const std::lock_guard lock(all.mutex);
    Difference& known = all.by_shape[shape];
    ++known.calls;
    known.largest = std::max(known.largest, difference == 0 ? 0 : difference / largest);
    known.only_one_is += only_one;
}

}  // namespace

std::optional<int> verify(Product product, void* handle, const Place& place, const hgemm_args_t& args,
                          const RealCall& real_call, Reason& reason)
{
    Output output(args, place.stream);
    Bytes before, ours, theirs;
    const bool compares = !driver::is_capturing(place.stream);
    reason = quietly(Reason::NoHandle, [&] {
        const bool ready = !compares || (output.find() && output.read(before));
        return ready ? multiply(handle, place, args) : Reason::NoHandle;
    });
    if (!compares || reason != Reason::None)
        return {};
    const bool have_ours = output.read(ours);
    // If D cannot be restored, the real library would read libhgemm's result as its C.
    if (!output.write(before))
        return {};
    const int status = real_call();
    if (have_ours && status == status_success && output.read(theirs))
        quietly(
            [&] { record(std::string(name_of(product)) + " " + describe(args), output, ours, theirs); });
    return status;
}

void leave_differences_behind() { found.leave_behind(); }

std::string differences()
{
    std::string text;
    Differences& all = found.get();
    const std::lock_guard lock(all.mutex);
    for (const auto& [shape, d] : all.by_shape) {
        text += "\n  " + shape + ": " + std::to_string(d.calls) + " compared, largest difference " +
                scientific(d.largest, 2).text();
        if (d.only_one_is > 0)
            text += ", " + std::to_string(d.only_one_is) + " elements finite in one alone";
    }
    return text;
}

}  // namespace hg::shim
