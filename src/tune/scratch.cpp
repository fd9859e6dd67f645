#include "src/tune/scratch.hpp"

#include "src/driver/driver.hpp"
#include "src/tune/elements.hpp"

#include <algorithm>
#include <cstdint>

namespace hg {
namespace {

constexpr size_t place_bytes = 256;

size_t place_of(const void* address) { return reinterpret_cast<uintptr_t>(address) % place_bytes; }

// From the first byte of a problem's output to behind the last.
int64_t bytes_of_one(const Matrix& matrix, const Problem& p)
{
    return ((p.m - 1) * matrix.ld + p.n) * bytes_of(matrix.type);
}

}  // namespace

Scratch::~Scratch()
{
    for (const Region& region : all_)
        driver::release(region.ptr);
}

Status Scratch::allocate(size_t bytes, Region& region)
{
    void* memory = nullptr;
    all_.reserve(all_.size() + 1);
    const Status status = driver::allocate(bytes, &memory);
    region = {static_cast<char*>(memory), bytes};
    if (status == ok)
        all_.push_back(region);
    return status;
}

Status Scratch::replace(Matrix& matrix, const Problem& p)
{
    if (matrix.array)
        return replace_array(matrix, p);
    const int64_t to_last = p.batch > 1 ? (p.batch - 1) * matrix.batch_stride * bytes_of(matrix.type) : 0;
    const int64_t before = std::max<int64_t>(-to_last, 0);  // of problem 0, where the stride is negative
    const auto bytes =
        static_cast<size_t>(std::max<int64_t>(to_last, 0) + before + bytes_of_one(matrix, p));
    Region region{};
    const Status status = allocate(bytes + 2 * place_bytes, region);
    if (status != ok)
        return status;
    outputs_.push_back(region);
    char* const start = region.ptr + before;
    matrix.ptr = start + (place_of(matrix.ptr) - place_of(start)) % place_bytes;
    return ok;
}

Status Scratch::replace_array(Matrix& matrix, const Problem& p)
{
    std::vector<void*> addresses(static_cast<size_t>(p.batch));
    Status status = read_values(handle_.stream, matrix.array, p.batch, addresses.data());
    const auto one = (static_cast<size_t>(bytes_of_one(matrix, p)) / place_bytes + 2) * place_bytes;
    Region region{}, array{};
    if (status == ok)
        status = allocate(one * addresses.size(), region);
    if (status != ok)
        return status;
    outputs_.push_back(region);
    char* next = region.ptr;  // CUDA aligns it
    for (void*& address : addresses) {
        address = next + place_of(address);
        next += one;
    }
    const size_t bytes = addresses.size() * sizeof addresses[0];
    status = allocate(bytes, array);
    if (status == ok)
        status = driver::copy_in(array.ptr, addresses.data(), bytes, handle_.stream);
    if (status == ok)
        status = driver::wait_for(handle_.stream);
    matrix.array = reinterpret_cast<void* const*>(array.ptr);
    return status;
}

Status Scratch::replace_outputs(Problem& problem)
{
    const Status status = replace(problem.d, problem);
    return status == ok && problem.aux.ptr ? replace(problem.aux, problem) : status;
}

Status Scratch::poison_outputs() const
{
    Status status = ok;
    for (const Region& region : outputs_)
        if (status == ok)
            status = driver::set_bytes(region.ptr, 0xff, region.bytes, handle_.stream);
    return status;
}

Status Scratch::overwrite_l2()
{
    const auto bytes = static_cast<size_t>(2 * handle_.device.l2_bytes);
    if (!l2_.ptr && bytes > 0)
        if (const Status status = allocate(bytes, l2_); status != ok)
            return status;
    return bytes > 0 ? driver::set_bytes(l2_.ptr, 0, bytes, handle_.stream) : ok;
}

}  // namespace hg
