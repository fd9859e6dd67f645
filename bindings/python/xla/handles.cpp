#include "handles.hpp"

#include "call.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace hg::xla {
namespace {

hgemm_handle_t create(const Place& place)
{
    hgemm_handle_t made = nullptr;
    require(place.device == HGEMM_DEVICE_HOST ? hgemm_create_on(&made, place.device)
                                              : hgemm_create_sized(&made, place.device, 0));
    const hgemm_status_t status = hgemm_set_mode(made, place.mode);
    if (status == HGEMM_STATUS_SUCCESS)
        return made;
    try {
        require(status);
    } catch (...) {
        hgemm_destroy(made);
        throw;
    }
    return made;
}

// Those that are lent to nobody. They stay, since graphs need their kernels: as many as have been lent at a
// time.
class Pool {
public:
    // The last one that came back; null: none is there.
    hgemm_handle_t take(const Place& place)
    {
        const std::lock_guard lock(mutex_);
        std::vector<hgemm_handle_t>& idle = idle_[place];
        if (idle.empty())
            return nullptr;
        const hgemm_handle_t handle = idle.back();
        idle.pop_back();
        return handle;
    }

    void give_back(const Place& place, hgemm_handle_t handle)
    {
        const std::lock_guard lock(mutex_);
        idle_[place].push_back(handle);
    }

private:
    std::mutex mutex_;
    std::map<Place, std::vector<hgemm_handle_t>> idle_;
};

Pool& pool()
{
    static Pool* const pool = new Pool;  // not destroyed: the driver may be gone by then
    return *pool;
}

// XLA's buffers are less aligned than workspaces must be.
hgemm_status_t lend_workspace(hgemm_handle_t handle, Workspace workspace)
{
    auto& [data, bytes] = workspace;
    const bool fits = data && std::align(256, 1, data, bytes);
    return hgemm_set_workspace(handle, fits ? data : nullptr, fits ? bytes : 0);
}

}  // namespace

Lent::Lent(const Place& place, void* stream, Workspace workspace)
    : place_(place), handle_(pool().take(place))
{
    if (!handle_)
        handle_ = create(place);
    // Also where the last stream had its address: that may belong to another one now.
    hgemm_status_t status = hgemm_set_stream(handle_, static_cast<hgemm_stream_t>(stream));
    if (status == HGEMM_STATUS_SUCCESS && place.device != HGEMM_DEVICE_HOST)
        status = lend_workspace(handle_, workspace);
    if (status == HGEMM_STATUS_SUCCESS)
        return;
    pool().give_back(place_, handle_);
    require(status);
}

Lent::~Lent() { pool().give_back(place_, handle_); }

}  // namespace hg::xla
