// Copies and fills. Device memory is host memory, so all copies are the same; what differs is which side
// must lie in an allocation.
#include "driver/call.hpp"

#include <cstring>

using namespace emu::driver;

namespace {

enum Side { host, device };

// A device address must lie in one allocation; a host address may be anything.
void check(uint64_t address, size_t bytes, Side side)
{
    require(address != 0, CUDA_ERROR_INVALID_VALUE);
    if (side == host)
        return;
    const auto found = find_memory(address);
    require(found && bytes <= found->end() - address, CUDA_ERROR_INVALID_VALUE);
}

// Pointers of either kind: those that lie in an allocation must stay in it.
Side side_of(uint64_t address) { return find_memory(address) ? device : host; }

struct Copy {
    uint64_t to, from;
    size_t bytes;
    Side to_side, from_side;
};

std::shared_ptr<Item> enqueue(const Copy& copy, CUstream stream)
{
    if (copy.bytes == 0)
        return nullptr;
    check(copy.to, copy.bytes, copy.to_side);
    check(copy.from, copy.bytes, copy.from_side);
    return submit(stream, {CU_GRAPH_NODE_TYPE_MEMCPY, [copy] {
                               check(copy.to, copy.bytes, copy.to_side);
                               check(copy.from, copy.bytes, copy.from_side);
                               std::memmove(bytes_at(copy.to), bytes_at(copy.from), copy.bytes);
                           }});
}

// From host memory that the driver does not know: it may change as soon as the call returns.
void enqueue_staged(const Copy& copy, CUstream stream)
{
    if (copy.bytes == 0)
        return;
    check(copy.to, copy.bytes, copy.to_side);
    const std::vector<char> staged(bytes_at(copy.from), bytes_at(copy.from) + copy.bytes);
    submit(stream, {CU_GRAPH_NODE_TYPE_MEMCPY, [copy, staged] {
                        check(copy.to, copy.bytes, copy.to_side);
                        std::memcpy(bytes_at(copy.to), staged.data(), copy.bytes);
                    }});
}

// A copy to unknown host memory has happened when the call returns.
void enqueue_async(const Copy& copy, CUstream stream)
{
    if (get_stream(stream).capture || (find_memory(copy.from) && find_memory(copy.to)))
        enqueue(copy, stream);
    else if (find_memory(copy.from))
        finish(enqueue(copy, stream));
    else
        enqueue_staged(copy, stream);
}

CUresult copy_now(const char* name, const Copy& copy)
{
    return call(name, [&](CUctx_st&) {
        forbid_in_capture();
        finish(enqueue(copy, nullptr));
    });
}

CUresult copy_later(const char* name, const Copy& copy, CUstream stream)
{
    return call(name, [&](CUctx_st&) { enqueue_async(copy, stream); });
}

template <typename T>
std::shared_ptr<Item> enqueue_fill(uint64_t to, T value, size_t count, CUstream stream)
{
    require(to % sizeof(T) == 0, CUDA_ERROR_INVALID_VALUE);
    if (count == 0)
        return nullptr;
    check(to, count * sizeof(T), device);
    return submit(stream, {CU_GRAPH_NODE_TYPE_MEMSET, [=] {
                               check(to, count * sizeof(T), device);
                               std::fill_n(reinterpret_cast<T*>(to), count, value);
                           }});
}

// May return before the fill is done; at an idle device nobody sees that.
template <typename T>
CUresult fill_now(const char* name, uint64_t to, T value, size_t count)
{
    return call(name, [&](CUctx_st&) {
        forbid_in_capture();
        finish(enqueue_fill(to, value, count, nullptr));
    });
}

template <typename T>
CUresult fill_later(const char* name, uint64_t to, T value, size_t count, CUstream stream)
{
    return call(name, [&](CUctx_st&) { enqueue_fill(to, value, count, stream); });
}

}  // namespace

// ---- Copies -----------------------------------------------------------------------------------------
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes)
{
    return copy_now("cuMemcpyHtoD", {to, address(from), bytes, device, host});
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes)
{
    return copy_now("cuMemcpyDtoH", {address(to), from, bytes, host, device});
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_now("cuMemcpyDtoD", {to, from, bytes, device, device});
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return call("cuMemcpy", [&](CUctx_st&) {
        forbid_in_capture();
        finish(enqueue({to, from, bytes, side_of(to), side_of(from)}, nullptr));
    });
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream)
{
    return copy_later("cuMemcpyHtoDAsync", {to, address(from), bytes, device, host}, stream);
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_later("cuMemcpyDtoHAsync", {address(to), from, bytes, host, device}, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_later("cuMemcpyDtoDAsync", {to, from, bytes, device, device}, stream);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return call("cuMemcpyAsync", [&](CUctx_st&) {
        enqueue_async({to, from, bytes, side_of(to), side_of(from)}, stream);
    });
}

// ---- Fills ------------------------------------------------------------------------------------------
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count)
{
    return fill_now("cuMemsetD8", to, value, count);
}

CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count)
{
    return fill_now("cuMemsetD16", to, value, count);
}

CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count)
{
    return fill_now("cuMemsetD32", to, value, count);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return fill_later("cuMemsetD8Async", to, value, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return fill_later("cuMemsetD16Async", to, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    return fill_later("cuMemsetD32Async", to, value, count, stream);
}
