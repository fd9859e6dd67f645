// Images, kernels, launches and tensor maps: the part of the driver that compute calls use.
#include "src/base/status.hpp"
#include "src/driver/calls.hpp"
#include "src/driver/driver.hpp"

#include <cuda.h>

#include <iterator>
#include <mutex>

namespace hg::driver {

struct LoadedImage {
    const void* image;
    int users;
    std::mutex loading;
    CUlibrary library;
};

namespace {

std::mutex images_mutex;
LoadedImage images[32];
bool images_stay = false;

// The image's slot, else a free one for it, with one user more; null when there is none.
LoadedImage* take_slot(const void* image)
{
    const std::lock_guard lock(images_mutex);
    LoadedImage* taken = nullptr;
    for (LoadedImage& slot : images)
        if (slot.image == image || (!taken && !slot.image))
            taken = &slot;
    if (taken) {
        taken->image = image;
        ++taken->users;
    }
    return taken;
}

}  // namespace

Status load_image(const void* image, LoadedImage** loaded)
{
    *loaded = nullptr;
    LoadedImage* const slot = take_slot(image);
    if (!slot)
        return fail(HGEMM_STATUS_INTERNAL, "more than %zu images", std::size(images));
    const BesideCaptures beside_captures;
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void* value = reinterpret_cast<void*>(1);
    Status status = ok;
    {
        const std::lock_guard lock(slot->loading);
        CUlibrary library = nullptr;
        if (!slot->library) {
            status =
                check(calls().cuLibraryLoadData(&library, image, nullptr, nullptr, 0, &option, &value, 1),
                      "cuLibraryLoadData");
            if (status == ok)
                slot->library = library;
        }
    }
    if (status == ok)
        *loaded = slot;
    else
        unload_image(slot);
    return status;
}

void keep_images()
{
    const std::lock_guard lock(images_mutex);
    images_stay = true;
}

void unload_image(LoadedImage* loaded)
{
    const std::lock_guard lock(images_mutex);
    if (--loaded->users > 0 || (images_stay && loaded->library))
        return;
    const BesideCaptures beside_captures;
    if (loaded->library)
        calls().cuLibraryUnload(loaded->library);
    loaded->library = nullptr;
    loaded->image = nullptr;
}

Status get_kernel(const LoadedImage& loaded, const char* symbol, Kernel* kernel)
{
    CUkernel found = nullptr;
    const Status status =
        check(calls().cuLibraryGetKernel(&found, loaded.library, symbol), "cuLibraryGetKernel");
    *kernel = found;
    return status;
}

// The driver puts the kernel's code on the device here.
Status allow_shared_memory(Kernel kernel, int ordinal, int bytes)
{
    const BesideCaptures beside_captures;
    CUdevice device;
    const Status status = check(calls().cuDeviceGet(&device, ordinal), "cuDeviceGet");
    return status == ok
               ? check(calls().cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes,
                                                    static_cast<CUkernel>(kernel), device),
                       "cuKernelSetAttribute")
               : status;
}

Status enqueue(const Launch& launch, hgemm_stream_t stream)
{
    CUlaunchConfig config{};
    config.gridDimX = launch.grid;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = launch.threads;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = launch.smem_bytes;
    config.hStream = stream;
    CUlaunchAttribute attributes[2];
    config.attrs = attributes;
    if (launch.cluster > 1) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config.numAttrs++].value.clusterDim = {launch.cluster, 1, 1};
    }
    if (launch.pdl) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[config.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
    }
    void* params[] = {launch.params};
    return check(calls().cuLaunchKernelEx(&config, static_cast<CUfunction>(launch.kernel), params, nullptr),
                 "cuLaunchKernelEx", HGEMM_STATUS_LAUNCH_FAILED);
}

Status encode_tensor_map(const TensorMapRequest& r, void* map)
{
    const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                         CU_TENSOR_MAP_DATA_TYPE_FLOAT32};
    const cuuint32_t element_strides[] = {1, 1, 1};
    return check(calls().cuTensorMapEncodeTiled(
                     static_cast<CUtensorMap*>(map), types[static_cast<int>(r.type) - 1], 3,
                     const_cast<void*>(r.base), reinterpret_cast<const cuuint64_t*>(r.size),
                     reinterpret_cast<const cuuint64_t*>(r.stride_bytes), r.box, element_strides,
                     CU_TENSOR_MAP_INTERLEAVE_NONE,
                     r.span_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 "cuTensorMapEncodeTiled", HGEMM_STATUS_INTERNAL);
}

}  // namespace hg::driver
