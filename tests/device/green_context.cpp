#include "green_context.hpp"

#include "driver_functions.hpp"

// Declarations follow cuda.h of CUDA 12.4; drivers before that have none of them.
#define GREEN_FUNCTIONS(F)                                                                                 \
    F(cuDeviceGetCount, (int*))                                                                            \
    F(cuDeviceGetDevResource, (int, Resource*, int))                                                       \
    F(cuDevSmResourceSplitByCount, (Resource*, unsigned*, const Resource*, Resource*, unsigned, unsigned)) \
    F(cuDevResourceGenerateDesc, (ResourceDesc**, Resource*, unsigned))                                    \
    F(cuGreenCtxCreate, (CUgreenCtx_st**, ResourceDesc*, int, unsigned))                                   \
    F(cuGreenCtxDestroy, (CUgreenCtx_st*))                                                                 \
    F(cuGreenCtxStreamCreate, (CUstream_st**, CUgreenCtx_st*, unsigned, int))                              \
    F(cuCtxFromGreenCtx, (CUctx_st**, CUgreenCtx_st*))                                                     \
    F(cuStreamDestroy_v2, (CUstream_st*))                                                                  \
    F(cuStreamGetCtx_v2, (CUstream_st*, CUctx_st**, CUgreenCtx_st**))

namespace hg::test {
namespace {

struct ResourceDesc;
struct Resource {
    int type;
    unsigned char unused[92];
    unsigned sm_count, least, alignment;
    unsigned char reserved[36];
};
static_assert(sizeof(Resource) == 144);
constexpr int sm_resource = 1;

DRIVER_FUNCTIONS(GREEN_FUNCTIONS)

}  // namespace

std::string GreenContext::absent() { return cu().absent; }

GreenContext::GreenContext(int device, unsigned sm_count)
{
    constexpr unsigned default_stream = 1, non_blocking = 1;
    Resource all{}, part{};
    unsigned parts = 1;
    ResourceDesc* description = nullptr;
    CHECK(cuDeviceGetDevResource, device, &all, sm_resource);
    CHECK(cuDevSmResourceSplitByCount, &part, &parts, &all, nullptr, 0, sm_count);
    CHECK(cuDevResourceGenerateDesc, &description, &part, 1);
    CHECK(cuGreenCtxCreate, &green_, description, device, default_stream);
    CHECK(cuGreenCtxStreamCreate, &stream_, green_, non_blocking, 0);
    CHECK(cuCtxFromGreenCtx, &context_, green_);
    sm_count_ = static_cast<int>(part.sm_count);
}

GreenContext::~GreenContext()
{
    cu().cuStreamDestroy_v2(stream_);
    cu().cuGreenCtxDestroy(green_);
}

int device_count()
{
    int count = 0;
    CHECK(cuDeviceGetCount, &count);
    return count;
}

}  // namespace hg::test
