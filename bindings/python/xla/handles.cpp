#include "handles.hpp"

#include "call.hpp"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <vector>

namespace hg::xla {
namespace {

// While it lives, this thread may allocate although it records a CUDA graph, as XLA does for its command
// buffers.
class AllowWhileRecording {
public:
    AllowWhileRecording()
    {
        if (void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD))
            exchange_ = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuThreadExchangeStreamCaptureMode"));
        changed_ = exchange_ && exchange_(&mode_) == 0;
    }
    ~AllowWhileRecording()
    {
        if (changed_)
            exchange_(&mode_);
    }
    AllowWhileRecording(const AllowWhileRecording&) = delete;
    AllowWhileRecording& operator=(const AllowWhileRecording&) = delete;

private:
    int (*exchange_)(int*) = nullptr;
    int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
    bool changed_ = false;
};

Lent::Handle create(const Place& place)
{
    const AllowWhileRecording allow;
    Lent::Handle made{};
    require(place.device == HGEMM_DEVICE_HOST ? hgemm_create_on(&made.raw, place.device)
                                              : hgemm_create_sized(&made.raw, place.device, 0));
    const hgemm_status_t status = hgemm_set_mode(made.raw, place.mode);
    if (status == HGEMM_STATUS_SUCCESS)
        return made;
    try {
        require(status);
    } catch (...) {
        hgemm_destroy(made.raw);
        throw;
    }
    return made;
}

// Those that are lent to nobody. They stay, since graphs need their kernels: as many as have been lent at a
// time.
class Pool {
public:
    // The last one that came back, rather one that is on the stream already; without a handle: none is
    // there.
    Lent::Handle take(const Place& place, void* stream)
    {
        const std::lock_guard lock(mutex_);
        std::vector<Lent::Handle>& idle = idle_[place];
        if (idle.empty())
            return {};
        auto found = idle.end() - 1;
        for (auto it = idle.begin(); it != idle.end(); ++it)
            if (it->stream == stream)
                found = it;
        const Lent::Handle handle = *found;
        idle.erase(found);
        return handle;
    }

    void give_back(const Place& place, const Lent::Handle& handle)
    {
        const std::lock_guard lock(mutex_);
        idle_[place].push_back(handle);
    }

private:
    std::mutex mutex_;
    std::map<Place, std::vector<Lent::Handle>> idle_;
};

Pool& pool()
{
    static Pool* const pool = new Pool;  // not destroyed: the driver may be gone by then
    return *pool;
}

}  // namespace

Lent::Lent(const Place& place, void* stream) : place_(place), handle_(pool().take(place, stream))
{
    if (!handle_.raw)
        handle_ = create(place);
    if (handle_.stream == stream)
        return;
    const hgemm_status_t status = hgemm_set_stream(handle_.raw, static_cast<hgemm_stream_t>(stream));
    if (status == HGEMM_STATUS_SUCCESS) {
        handle_.stream = stream;
        return;
    }
    pool().give_back(place_, handle_);
    require(status);
}

Lent::~Lent() { pool().give_back(place_, handle_); }

}  // namespace hg::xla
