#include "host.hpp"

#include "fork.hpp"

#include <mutex>
#include <vector>

namespace hg::cblas {
namespace {

struct FreeHandles {
    std::mutex mutex;
    std::vector<hgemm_handle_t> handles;
};

FreeHandles& free_handles()
{
    static FreeHandles* const list = new FreeHandles;
    return *list;
}

Status adopt(Status status) { return status == ok ? ok : fail(status, "%s", hgemm_last_error()); }

}  // namespace

HostLease::HostLease()
{
    FreeHandles& list = free_handles();
    {
        const std::lock_guard lock(list.mutex);
        if (!list.handles.empty()) {
            handle_ = list.handles.back();
            list.handles.pop_back();
            return;
        }
    }
    created_ = adopt(hgemm_create_on(&handle_, HGEMM_DEVICE_HOST));
    watch_forks_before_openblas();
}

HostLease::~HostLease()
{
    if (!handle_)
        return;
    FreeHandles& list = free_handles();
    const std::lock_guard lock(list.mutex);
    list.handles.push_back(handle_);
}

Status HostLease::run(const hgemm_args_t& args) const
{
    return handle_ ? gemm_ex(handle_, args) : created_;
}

void forget_host_handles() { free_handles().handles.clear(); }

Status gemm_ex(hgemm_handle_t handle, const hgemm_args_t& args)
{
    return adopt(hgemm_gemm_ex(handle, &args));
}

}  // namespace hg::cblas
