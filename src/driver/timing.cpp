// Copies, events and waiting: the part of the driver that tuning uses.
#include "src/driver/calls.hpp"
#include "src/driver/driver.hpp"

#include <cuda.h>

namespace hg::driver {
namespace {

CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

Status wait_for(hgemm_stream_t stream)
{
    return check(calls().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

Status set_bytes(void* memory, unsigned char value, size_t bytes, hgemm_stream_t stream)
{
    return check(calls().cuMemsetD8Async(address_of(memory), value, bytes, stream), "cuMemsetD8Async");
}

Status copy_out(void* host, const void* memory, size_t bytes, hgemm_stream_t stream)
{
    return check(calls().cuMemcpyDtoHAsync(host, address_of(memory), bytes, stream), "cuMemcpyDtoHAsync");
}

Status copy_in(void* memory, const void* host, size_t bytes, hgemm_stream_t stream)
{
    return check(calls().cuMemcpyHtoDAsync(address_of(memory), host, bytes, stream), "cuMemcpyHtoDAsync");
}

Status create_event(Event* event)
{
    CUevent created = nullptr;
    const Status status = check(calls().cuEventCreate(&created, CU_EVENT_DEFAULT), "cuEventCreate");
    *event = created;
    return status;
}

void destroy_event(Event event) { calls().cuEventDestroy(static_cast<CUevent>(event)); }

Status record(Event event, hgemm_stream_t stream)
{
    return check(calls().cuEventRecord(static_cast<CUevent>(event), stream), "cuEventRecord");
}

Status elapsed_us(Event begin, Event end, double& us)
{
    float ms = 0;
    const Status status =
        check(calls().cuEventElapsedTime(&ms, static_cast<CUevent>(begin), static_cast<CUevent>(end)),
              "cuEventElapsedTime");
    us = 1e3 * ms;
    return status;
}

}  // namespace hg::driver
