#include "build_info.hpp"
#include "hgemm.h"

#include <cstdio>

namespace {

struct BuildInfo {
    char text[256];
};

BuildInfo describe_build()
{
    BuildInfo info;
    std::snprintf(info.text, sizeof info.text, "libhgemm %d.%d.%d (%s), CUDA %s, targets %s",
                  HGEMM_VERSION_MAJOR, HGEMM_VERSION_MINOR, HGEMM_VERSION_PATCH, hg::build_revision,
                  hg::build_cuda, hg::build_targets);
    return info;
}

}  // namespace

extern "C" int hgemm_version(void) { return HGEMM_VERSION; }

extern "C" const char* hgemm_build_info(void)
{
    static const BuildInfo info = describe_build();
    return info.text;
}
