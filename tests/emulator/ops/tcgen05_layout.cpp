// Instruction descriptors of tcgen05.mma and the layouts of its results in tensor memory.
#include "ops/tcgen05.hpp"

namespace emu {

namespace {

bool shape_exists(const TensorProduct& p)
{
    if (p.weights)
        return p.group == 1 && (p.m == 32 || p.m == 64 || p.m == 128) &&
               (p.n == 64 || p.n == 128 || p.n == 256);
    if (p.group == 1)
        return (p.m == 64 || p.m == 128) && p.n >= 8 && p.n <= 256 && p.n % 8 == 0;
    return (p.m == 128 || p.m == 256) && p.n >= 16 && p.n <= 256 && p.n % 16 == 0;
}

}  // namespace

TensorProduct read_instruction_descriptor(uint32_t descriptor, int group, bool weights, std::string& error)
{
    const auto field = [descriptor](int from, int bits) { return descriptor >> from & ((1u << bits) - 1); };
    TensorProduct p;
    p.group = group;
    p.weights = weights;
    p.m = static_cast<int>(field(24, 5)) * 16;
    p.n = static_cast<int>(field(17, 6)) * 8;
    p.a = field(7, 3) ? Half::Bf16 : Half::F16;
    p.b = field(10, 3) ? Half::Bf16 : Half::F16;
    p.half_result = field(4, 2) == 0;
    p.negate_a = field(13, 1);
    p.negate_b = field(14, 1);
    p.m_major = field(15, 1);
    p.n_major = field(16, 1);
    if (field(2, 1) || field(0, 2))
        error = "bits 0-2 are for sparse matrices";
    else if (field(3, 1))
        error = "bit 3, saturation, is for integers";
    else if (field(6, 1) || field(23, 1) || field(29, 1))
        error = "reserved bits 6, 23 and 29 must be zero";
    else if (field(4, 2) > 1)
        error = "bits 4-5: type of D is neither f16 nor f32";
    else if (field(7, 3) > 1 || field(10, 3) > 1)
        error = "bits 7-12: types of A and B are neither f16 nor bf16";
    else if (p.half_result && (p.a == Half::Bf16 || p.b == Half::Bf16))
        error = "an f16 result needs f16 operands";
    else if (field(30, 2) && !weights)
        error = "bits 30-31 are for .ws";
    else if (!shape_exists(p))
        error = "no shape M = " + std::to_string(p.m) + ", N = " + std::to_string(p.n) +
                " for .cta_group::" + std::to_string(group) + (weights ? " and .ws" : "");
    return p;
}

std::vector<Strip> result_layout(const TensorProduct& p, bool half)
{
    const int ctas = p.group;
    const int rows = p.m / ctas;  // of one CTA
    // Rows fill the lanes once, or the columns are cut so that the rest of the lanes has work too. M = 64
    // of one CTA leaves half of each quarter of the lanes alone instead.
    const bool sparse_lanes = ctas == 1 && rows == 64 && !p.weights;
    const int cuts = sparse_lanes ? 1 : static_cast<int>(tmem_lanes) / rows;
    std::vector<Strip> strips;
    for (int cta = 0; cta < ctas; ++cta)
        for (int cut = 0; cut < cuts; ++cut) {
            Strip strip;
            strip.cta = cta;
            strip.count = p.n / cuts;
            strip.first = cut * strip.count;
            for (int row = 0; row < rows; ++row)
                strip.lanes.emplace_back(
                    sparse_lanes ? row / 16 * 32 + row % 16 + (half ? 16 : 0) : cut * rows + row, row);
            strips.push_back(std::move(strip));
        }
    return strips;
}

}  // namespace emu
