#include "mutation/kernels.hpp"

#include "numerics/floats.hpp"
#include "ops/tensor_map.hpp"

#include <stdexcept>

namespace mutation {

const std::vector<Kernel>& kernels()
{
    static const std::vector<Kernel> list = {
        {"sm80_128x128x64_s3_f16_kk", 80, "sm80_sm80.fatbin", 3, arrange_sm80},
        {"sm80_64x64x64_s4_bf16_mn", 80, "sm80_sm80.fatbin", 3, arrange_sm80},
        {"sm80_16x64x64_s8_bf16_kn", 80, "sm80_sm80.fatbin", 3, arrange_sm80},
        {"sm80_any_64x64x32_f16", 80, "sm80_sm80.fatbin", 2, arrange_sm80},
        {"sm80_unaligned_64x64x64_bf16_kn", 80, "sm80_sm80.fatbin", 3, arrange_sm80},
        {"sm80_triangle", 80, "sm80_sm80.fatbin", 3, arrange_sm80_triangle},
        {"sm80_route", 80, "sm80_sm80.fatbin", 4, arrange_sm80_route},
        {"sm90_coop_128x224_f16_kk", 90, "sm90_f16_persistent.fatbin", 13, arrange_sm90},
        {"sm90_coop_128x256_2x1_bf16_kn", 90, "sm90_bf16_persistent.fatbin", 13, arrange_sm90},
        {"sm90_pingpong_64x256_f16_mk", 90, "sm90_f16_persistent.fatbin", 13, arrange_sm90},
        {"sm90_pingpong_128x192_2x1_bf16_kk", 90, "sm90_bf16_persistent.fatbin", 13, arrange_sm90},
        {"sm90_splitk_64x64_bf16_xn", 90, "sm90_bf16_splitk_64.fatbin", 6, arrange_sm90},
        {"sm90_splitk_128x64_f16_xk", 90, "sm90_f16_splitk_128.fatbin", 6, arrange_sm90},
        {"sm90_splitk_64x8_occ4_f16_xk", 90, "sm90_f16_splitk_64.fatbin", 6, arrange_sm90},
        {"sm90_splitk_global_64x64_f16_xn", 90, "sm90_f16_other.fatbin", 6, arrange_sm90},
        {"sm90_direct_64x16_bf16_k", 90, "sm90_bf16_other.fatbin", 3, arrange_sm90_direct},
        {"sm90_direct_64x8_f16_m", 90, "sm90_f16_other.fatbin", 3, arrange_sm90_direct},
        {"sm90_triangle_128x128_bf16_kk", 90, "sm90_bf16_other.fatbin", 3, arrange_sm90_triangle},
        {"sm90_tree_128x128_2x1_bf16_kk", 90, "sm90_bf16_other.fatbin", 2, arrange_sm90_tree},
        {"sm90_tree_splitk_64x64_bf16_xn", 90, "sm90_bf16_other.fatbin", 2, arrange_sm90_tree},
        {"sm90_gated_128x176_2x1_bf16_kk", 90, "sm90_bf16_other.fatbin", 3, arrange_sm90_gated},
        {"sm90_gated_128x224_f16_kk", 90, "sm90_f16_other.fatbin", 3, arrange_sm90_gated},
        {"sm90_gated_splitk_128x64_1x2_bf16_kk", 90, "sm90_bf16_other.fatbin", 3, arrange_sm90_gated},
        {"sm90_gated_splitk_64x8_occ2_f16_kk", 90, "sm90_f16_other.fatbin", 3, arrange_sm90_gated},
        {"sm90_grouped_splitk_64x16_occ2_bf16_xk", 90, "sm90_bf16_other.fatbin", 3, arrange_sm90_few_rows},
        {"sm90_gated_grouped_splitk_64x32_occ2_f16_kk", 90, "sm90_f16_other.fatbin", 3,
         arrange_sm90_few_rows},
        {"sm100_2cta_512x256", 100, "sm100_sm100.fatbin", 7, arrange_sm100},
        {"sm100_2cta_256x128", 100, "sm100_sm100.fatbin", 7, arrange_sm100},
        {"sm100_128x64", 100, "sm100_sm100.fatbin", 7, arrange_sm100},
        {"sm100_128x128_static", 100, "sm100_sm100.fatbin", 7, arrange_sm100},
        {"sm100_splitk_128x64", 100, "sm100_sm100.fatbin", 7, arrange_sm100},
        {"sm100_splitk_128x16", 100, "sm100_sm100.fatbin", 7, arrange_sm100},
        {"pair_1", 100, "tests/emulator/mutation/tcgen05.ptx", 2, arrange_pair},
        {"pair_2", 100, "tests/emulator/mutation/tcgen05.ptx", 2, arrange_pair},
        {"sm120_128x128x64_s3_f16_kk", 120, "sm120_sm120.fatbin", 4, arrange_sm120},
        {"sm120_256x128x32_s4_bf16_kn", 120, "sm120_sm120.fatbin", 4, arrange_sm120},
        {"sm120_64x128x32_s4_f16_mn", 120, "sm120_sm120.fatbin", 4, arrange_sm120},
        {"sm120_64x64x64_s3_bf16_mk", 120, "sm120_sm120.fatbin", 4, arrange_sm120},
    };
    return list;
}

static void* allocate(emu::Machine& machine, size_t bytes)
{
    void* memory = machine.memory.allocate(bytes);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

uint16_t* random_halves(emu::Machine& machine, size_t count, bool bf16)
{
    auto* values = static_cast<uint16_t*>(allocate(machine, count * 2));
    std::minstd_rand random(static_cast<unsigned>(machine.memory.used()));  // others for each operand
    const emu::FormatId format = bf16 ? emu::FormatId::Bf16 : emu::FormatId::F16;
    for (size_t i = 0; i < count; ++i) {
        const double value = static_cast<double>(random() % 2001) / 1000.0 - 1.0;
        values[i] = static_cast<uint16_t>(emu::from_double(format, value, emu::Rounding::Nearest));
    }
    return values;
}

void* empty_result(emu::Machine& machine, Setup& setup, size_t bytes)
{
    void* memory = allocate(machine, bytes);
    std::memset(memory, 0xa5, bytes);
    setup.results.push_back({static_cast<const uint8_t*>(memory), bytes});
    return memory;
}

void make_map(const MapRequest& r, void* map)
{
    constexpr uint32_t f16_type = 6, f32_type = 7, bf16_type = 9, swizzle_64 = 2, swizzle_128 = 3;
    const std::vector<uint32_t> ones(r.size.size(), 1);
    const char* error = emu::encode_tensor_map(
        *static_cast<emu::TensorMap*>(map),
        r.f32    ? f32_type
        : r.bf16 ? bf16_type
                 : f16_type,
        static_cast<uint32_t>(r.size.size()), reinterpret_cast<uint64_t>(r.base), r.size.data(),
        r.stride.data(), r.box.data(), ones.data(), 0, r.span_bytes == 64 ? swizzle_64 : swizzle_128, 0);
    if (error)
        throw std::runtime_error(std::string("tensor map: ") + error);
}

}  // namespace mutation
