// The CUDA driver as the tests and the benchmark need it: libcuda.so.1 loaded at run time, so that they
// build without a toolkit and start without a driver. Every method throws std::runtime_error on failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

// The driver's own opaque types; CUstream_st is also hgemm_stream_t's.
struct CUstream_st;
struct CUevent_st;
struct CUctx_st;
struct CUgraphExec_st;

namespace hg::test {

class Cuda {
public:
    // The driver with device 0's primary context, made current to the calling thread; null if there is
    // no driver or no device, and then absent() says which.
    static Cuda* get();
    static const std::string& absent();

    const std::string& name() const { return name_; }
    int driver_version() const { return driver_version_; }
    int cc() const { return cc_; }  // 90 for 9.0
    int sm_count() const { return sm_count_; }
    int64_t l2_bytes() const { return l2_bytes_; }
    CUctx_st* context() const { return context_; }
    size_t free_bytes();

    void* allocate(size_t bytes);
    void release(void* ptr);
    void copy_in(void* device, const void* host, size_t bytes);
    void copy_out(void* host, const void* device, size_t bytes);
    void copy(void* to, const void* from, size_t bytes);
    void fill(void* device, unsigned char value, size_t bytes);

    // `bytes` rounded up to whole pages with nothing mapped behind them: reading past the end faults.
    struct Fenced {
        void* base = nullptr;
        size_t mapped = 0, reserved = 0;
        unsigned long long memory = 0;
    };
    Fenced allocate_fenced(size_t bytes);
    void release(const Fenced& fenced);

    void wait();  // for the whole context
    void wait(CUstream_st* stream);
    CUstream_st* create_stream(bool blocking = false);  // blocking: waits for the default stream, as that for it
    void destroy(CUstream_st* stream);
    CUctx_st* create_context();  // another one on the same device; the current one stays current
    void destroy(CUctx_st* context);
    void make_current(CUctx_st* context);

    // Calls `work` when the stream gets there; what follows on the stream waits for it. `work` must live
    // until then and use no CUDA function.
    void call_host(CUstream_st* stream, std::function<void()>& work);

    CUevent_st* create_event();
    void destroy(CUevent_st* event);
    void record(CUevent_st* event, CUstream_st* stream);
    double milliseconds(CUevent_st* begin, CUevent_st* end);  // waits for `end`

    // Captures what `work` puts on the stream, not under the default stream, and instantiates it.
    enum class Capture { Global, ThreadLocal, Relaxed };  // CUstreamCaptureMode
    CUgraphExec_st* capture(CUstream_st* stream, const std::function<void()>& work,
                            Capture mode = Capture::Global);
    void launch(CUgraphExec_st* graph, CUstream_st* stream);
    void destroy(CUgraphExec_st* graph);

private:
    Cuda();
    int attribute(int which);

    std::string name_;
    int driver_version_ = 0, device_ = 0, cc_ = 0, sm_count_ = 0;
    int64_t l2_bytes_ = 0;
    CUctx_st* context_ = nullptr;
};

}  // namespace hg::test
