// cuTensorMapEncodeTiled: the emulator's own encoding in the space of a CUtensorMap.
#include "ops/tensor_map.hpp"

#include "driver/call.hpp"

#include <cstring>

using namespace emu::driver;

static_assert(sizeof(emu::TensorMap) == sizeof(CUtensorMap));

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                const cuuint64_t* size, const cuuint64_t* stride, const cuuint32_t* box,
                                const cuuint32_t* element_stride, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    return call("cuTensorMapEncodeTiled", Needs::Driver, [&] {
        require(map && size && box && element_stride && (stride || rank == 1), CUDA_ERROR_INVALID_VALUE);
        require(address(map) % 64 == 0, CUDA_ERROR_INVALID_VALUE);
        require(promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CUDA_ERROR_INVALID_VALUE);
        emu::TensorMap encoded{};
        const auto* sizes = reinterpret_cast<const uint64_t*>(size);
        const auto* strides = reinterpret_cast<const uint64_t*>(stride);
        if (const char* wrong = emu::encode_tensor_map(encoded, type, rank, address(base), sizes, strides,
                                                       box, element_stride, interleave, swizzle, fill))
            throw Failure{CUDA_ERROR_INVALID_VALUE, wrong};
        std::memcpy(map, &encoded, sizeof encoded);
    });
}
