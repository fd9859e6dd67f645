#include "driver/attributes.hpp"

#include "driver/driver.hpp"

#include <climits>

namespace emu::driver {
namespace {

struct FixedAttribute {
    CUdevice_attribute attribute;
    int value;
};

// What is the same for all. Absent abilities answer 0 (see below) and need no row.
constexpr FixedAttribute fixed[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, threads_per_block},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, smem_per_block},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, registers_per_sm},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, registers_per_sm},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, reserved_smem},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
};

}  // namespace

// From the CUDA programming guide's table of technical specifications. That does not have 10.7: its blocks
// and shared memory are from cuda_occupancy.h of CUDA 13.5, without the oversized configuration of 328 KiB;
// its threads are the most for which ptxas 13.5 accepts .minnctapersm. Its L2 is that of 10.3, unsourced.
Limits limits(const Config& config)
{
    constexpr int kib = 1024, mib = 1024 * kib;
    switch (config.cc) {
    case 80: return {2048, 32, 164 * kib, 40 * mib};
    case 86: return {1536, 16, 100 * kib, 6 * mib};
    case 87:
    case 88: return {1536, 16, 164 * kib, 4 * mib};
    case 89: return {1536, 24, 100 * kib, 72 * mib};
    case 90: return {2048, 32, 228 * kib, 50 * mib};
    case 100:
    case 103: return {2048, 32, 228 * kib, 126 * mib};
    case 107: return {1024, 16, 228 * kib, 126 * mib};
    case 110: return {1536, 24, 228 * kib, 32 * mib};
    case 120:
    case 121: return {1536, 24, 100 * kib, 96 * mib};
    default: return {1024, 16, config.smem_optin + reserved_smem, 32 * mib};
    }
}

int device_attribute(CUdevice_attribute attribute, const Config& config, int ordinal)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return config.cc / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return config.cc % 10;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return config.sm_count;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return config.smem_optin;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return std::max(limits(config).smem_per_sm, config.smem_optin + reserved_smem);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return limits(config).threads_per_sm;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return limits(config).blocks_per_sm;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return limits(config).l2_bytes;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: return config.cc >= 90;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return ordinal + 1;
    default: break;
    }
    for (const FixedAttribute& row : fixed)
        if (row.attribute == attribute)
            return row.value;
    // The rest are textures, surfaces and abilities, all of which are absent.
    require(attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX, CUDA_ERROR_INVALID_VALUE);
    return 0;
}

}  // namespace emu::driver
