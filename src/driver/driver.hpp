// The CUDA driver, as much of it as the library uses. driver.cpp is the only file that knows
// libcuda.so.1; a build without CUDA has absent.cpp in its place.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"

namespace hg::driver {

// Counts devices. 0, with a *reason, if there is no driver or it sees no device. A driver that does not
// start is an error.
Status count_devices(int* count, const char** reason);

// NOT_SUPPORTED if there is a device that this build has no backend for: the host must not serve silently
// instead.
Status check_unserved();

// The context of the calling thread and its device; *context is null when there is none.
Status current_context(void** context, int* ordinal);
// A retained primary context. `device` is the driver's handle, so that releasing it needs no other call
// that could fail.
struct Primary {
    void* context;
    int device;
};
Status retain_primary(int ordinal, Primary& primary);
void release_primary(const Primary& primary);
Status describe(int ordinal, Device& device);

// Makes a context current while it lives.
class Scope {
public:
    explicit Scope(void* context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    Status status() const { return status_; }

private:
    bool pushed_ = false;
    Status status_ = ok;
};

// These may be called while streams are captured.
Status allocate(size_t bytes, void** memory);
void release(void* memory);
// Sets the bytes to 0; waits for that, and for no other work.
Status clear(void* memory, size_t bytes);

// Where a stream's kernels run. A green context has some of a device's SMs and shares the memory of the
// primary context.
struct StreamOwner {
    void* context;  // the one that the stream belongs to; null if the driver says that it is no stream
    void* primary;  // for a stream of a green context: the primary context behind that, else null
    int sm_count;   // that its context has; 0: all of the device
};
// NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, which belong to the current context.
inline bool is_special(hgemm_stream_t stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }
Status find_owner(hgemm_stream_t stream, StreamOwner& owner);

// Is the stream being captured into a graph, or, for the default stream, does a capture forbid its use?
Status is_capturing(hgemm_stream_t stream, bool& capturing);

// Which stream, and which capture of it, a call is for. Addresses of streams are used again, these numbers
// are not.
struct Place {
    uint64_t stream;  // its number, 0 for the default stream; its address while it is captured
    uint64_t capture;
    void* graph;  // into which it is captured; null: it is not
};
Status find_place(hgemm_stream_t stream, Place& place);
// A number that no other context of the process has had.
Status context_id(void* context, uint64_t& id);
// Calls destroy(object), on any thread and without CUDA, when the graph and all that was made of it are
// gone and no launch of theirs runs. Where this fails the object was destroyed too.
Status keep_with(void* graph, void* object, void (*destroy)(void*));

// For tuning, which allocates and waits: what it puts on a stream and how long that takes.
Status wait_for(hgemm_stream_t stream);
Status set_bytes(void* memory, unsigned char value, size_t bytes, hgemm_stream_t stream);
Status copy_out(void* host, const void* memory, size_t bytes, hgemm_stream_t stream);
Status copy_in(void* memory, const void* host, size_t bytes, hgemm_stream_t stream);
using Event = void*;
Status create_event(Event* event);
void destroy_event(Event event);
Status record(Event event, hgemm_stream_t stream);
Status elapsed_us(Event begin, Event end, double& us);  // after wait_for()

// Allows the thread to do what it may not do while a stream is captured, for as long as it lives.
class BesideCaptures {
public:
    BesideCaptures();
    ~BesideCaptures();
    BesideCaptures(const BesideCaptures&) = delete;
    BesideCaptures& operator=(const BesideCaptures&) = delete;

private:
    int mode_;  // a CUstreamCaptureMode
};

// Take entry points out of an image (fatbin, cubin or PTX in static memory). An image is loaded once per
// process and unloaded with its last user, unless kernels stay. Several threads may do so at a time.
struct LoadedImage;
using Kernel = void*;
// From now on no image is unloaded: graphs may outlive the last user.
void keep_images();
Status load_image(const void* image, LoadedImage** loaded);
void unload_image(LoadedImage* loaded);
Status get_kernel(const LoadedImage& loaded, const char* symbol, Kernel* kernel);
// Once before launches that ask for so many bytes of dynamic shared memory.
Status allow_shared_memory(Kernel kernel, int ordinal, int bytes);

struct Launch {
    Kernel kernel;
    unsigned grid;     // CTAs, one-dimensional
    unsigned cluster;  // CTAs of a cluster, 0 or 1 for none
    unsigned threads;  // per CTA
    unsigned smem_bytes;
    bool pdl;      // the kernel waits itself for earlier ones (griddepcontrol), so it may start early
    void* params;  // the kernel's one parameter
};
Status enqueue(const Launch& launch, hgemm_stream_t stream);

// Tensor map of 16- or 32-bit elements, swizzled over span_bytes (64 or 128, the box in dimension 0).
// Elements outside the tensor read as zero. Dimension 0 is contiguous; strides are of dimensions 1 and 2,
// in bytes.
struct TensorMapRequest {
    const void* base;
    Type type;
    uint64_t size[3];
    uint64_t stride_bytes[2];
    uint32_t box[3];
    uint32_t span_bytes;
};
Status encode_tensor_map(const TensorMapRequest& request, void* map /* 128 bytes, 64-byte aligned */);

}  // namespace hg::driver
