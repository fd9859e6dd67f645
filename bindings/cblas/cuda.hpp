// The CUDA driver as the stager needs it: libcuda.so.1 loaded at run time, device 0's primary context, no
// CUDA header. Functions return false when the driver refuses.
#pragma once

#include "hgemm.h"

#include <cstddef>

struct CUevent_st;
struct CUctx_st;

namespace hg::cblas::cuda {

using Stream = hgemm_stream_t;
using Event = CUevent_st*;

// Loads the driver and retains the context. To be called once.
bool open();

// Makes the context current while the object lives, and leaves captures alone.
class Scope {
public:
    Scope();
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    explicit operator bool() const { return pushed_; }

private:
    bool pushed_;
    int capture_mode_;
    bool changed_;
};

enum class Place { Device, Pinned };

// Memory that can grow, and loses its contents when it does.
class Buffer {
public:
    explicit Buffer(Place place) : place_(place) {}
    bool reserve(size_t bytes);
    char* get() const { return memory_; }

private:
    Place place_;
    char* memory_ = nullptr;
    size_t bytes_ = 0;
};

bool create(Stream& stream);  // does not wait for the default stream
bool create(Event& event);
bool record(Event event, Stream stream);
bool wait(Event event);
bool wait(Stream stream);
bool make_wait(Stream stream, Event event);

bool upload(void* device, const void* pinned, size_t bytes, Stream stream);
bool download(void* pinned, const void* device, size_t bytes, Stream stream);

}  // namespace hg::cblas::cuda
