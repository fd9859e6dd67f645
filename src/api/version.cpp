// The public functions that tell of errors and of the library itself.
#include "build_info.hpp"
#include "src/base/status.hpp"

#include <cstdio>

namespace {

struct BuildInfo {
    char text[256];
};

BuildInfo describe_build()
{
    BuildInfo info;
    std::snprintf(info.text, sizeof info.text, "libhgemm %d.%d.%d (%s), CUDA %s, targets %s, GPUs %s",
                  HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR, HGEMM_VERSION_PATCH, hg::build_revision,
                  hg::build_cuda, hg::build_targets, hg::build_archs);
    return info;
}

}  // namespace

extern "C" int hgemm_version(void) { return HGEMM_VERSION; }

extern "C" const char* hgemm_build_info(void)
{
    static const BuildInfo info = describe_build();
    return info.text;
}

extern "C" const char* hgemm_last_error(void) { return hg::error_text(); }
extern "C" int hgemm_last_error_argument(void) { return hg::error_argument(); }

extern "C" const char* hgemm_status_string(hgemm_status_t status)
{
    switch (status) {
    case HGEMM_STATUS_SUCCESS: return "HGEMM_STATUS_SUCCESS";
    case HGEMM_STATUS_NOT_INITIALIZED: return "HGEMM_STATUS_NOT_INITIALIZED";
    case HGEMM_STATUS_INVALID_ARGUMENT: return "HGEMM_STATUS_INVALID_ARGUMENT";
    case HGEMM_STATUS_NOT_SUPPORTED: return "HGEMM_STATUS_NOT_SUPPORTED";
    case HGEMM_STATUS_ALLOC_FAILED: return "HGEMM_STATUS_ALLOC_FAILED";
    case HGEMM_STATUS_NO_DEVICE: return "HGEMM_STATUS_NO_DEVICE";
    case HGEMM_STATUS_DRIVER_ERROR: return "HGEMM_STATUS_DRIVER_ERROR";
    case HGEMM_STATUS_LAUNCH_FAILED: return "HGEMM_STATUS_LAUNCH_FAILED";
    case HGEMM_STATUS_WORKSPACE_TOO_SMALL: return "HGEMM_STATUS_WORKSPACE_TOO_SMALL";
    case HGEMM_STATUS_INTERNAL: return "HGEMM_STATUS_INTERNAL";
    case HGEMM_STATUS_TIMED_OUT: return "HGEMM_STATUS_TIMED_OUT";
    }
    return "unknown hgemm_status_t";
}
