// Instruction descriptors of tcgen05.mma and the layouts of its results in tensor memory.
#include "ops/tcgen05.hpp"

namespace emu {

namespace {

bool shape_exists(const TensorProduct& p)
{
    if (p.weights)
        return p.group == 1 && (p.m == 32 || p.m == 64 || p.m == 128) &&
               (p.n == 64 || p.n == 128 || p.n == 256);
    const bool integers = p.kind == TensorKind::I8, scaled = is_scaled(p.kind);
    const int step = 8 * p.group * (integers && (p.group == 2 || p.n > 32) ? 2 : 1);
    if (p.n < step || p.n > 256 || p.n % step)
        return false;
    return p.m == 128 || p.m == (p.group == 2 ? 256 : scaled ? 128 : 64);
}

// Bits 7-9 and 10-12.
bool read_type(TensorKind kind, uint32_t code, MatrixElement& element)
{
    static constexpr const char* f8f6f4[] = {"e4m3", "e5m2", "", "e2m3", "e3m2", "e2m1", "", ""};
    switch (kind) {
    case TensorKind::F16: return code < 2 && parse_matrix_element(code ? "bf16" : "f16", false, element);
    case TensorKind::Tf32: return code == 2 && parse_matrix_element("tf32", false, element);
    case TensorKind::I8: return code < 2 && parse_matrix_element(code ? "s8" : "u8", false, element);
    case TensorKind::Mxf4:
    case TensorKind::Mxf4nvf4: return code == 1 && parse_matrix_element("e2m1", true, element);
    default:
        if (!parse_matrix_element(f8f6f4[code], false, element))
            return false;
        element.dense = element.width < 8;
        return true;
    }
}

uint32_t field(uint32_t descriptor, int from, int bits) { return descriptor >> from & ((1u << bits) - 1); }

// What kinds without scales have besides types, signs and N.
void read_plain(uint32_t d, TensorProduct& p, std::string& error)
{
    const uint32_t result = field(d, 4, 2);
    const bool integers = p.kind == TensorKind::I8,
               halves = p.kind == TensorKind::F16 || p.kind == TensorKind::F8f6f4;
    p.m = static_cast<int>(field(d, 24, 5)) * 16;
    p.half_result = result == 0;
    p.saturate = field(d, 3, 1);
    if (field(d, 0, 3))
        error = "bits 0-2 are for sparse matrices";
    else if (p.saturate && !integers)
        error = "bit 3, saturation, is for integers";
    else if (field(d, 6, 1) || field(d, 23, 1) || field(d, 29, 1))
        error = "reserved bits 6, 23 and 29 must be zero";
    else if (integers ? result != 2 : result != 1 && !(halves && result == 0))
        error = "bits 4-5: no such type of D for this kind";
    else if (field(d, 30, 2) && !p.weights)
        error = "bits 30-31 are for .ws";
}

void read_scaled(uint32_t d, TensorProduct& p, std::string& error)
{
    p.m = static_cast<int>(field(d, 27, 2)) * 128;
    p.b_scale_byte = static_cast<int>(field(d, 4, 2));
    p.a_scale_byte = static_cast<int>(field(d, 29, 2));
    p.ue4m3 = !field(d, 23, 1);
    const auto misplaced = [&](int byte) { return byte % p.scale_vector || byte + p.scale_vector > 4; };
    if (field(d, 2, 1))
        error = "bit 2 is for sparse matrices";
    else if (field(d, 0, 2) || field(d, 3, 1) || field(d, 6, 1) || field(d, 24, 3))
        error = "reserved bits 0, 1, 3, 6 and 24-26 must be zero";
    else if (field(d, 31, 1))
        error = "bit 31: K = 96 needs sm_103";
    else if (p.ue4m3 && (p.kind != TensorKind::Mxf4nvf4 || p.scale_vector != 4))
        error = "bit 23: scales of type ue4m3 need .kind::mxf4nvf4 and .scale_vec::4X";
    else if (misplaced(p.a_scale_byte) || misplaced(p.b_scale_byte))
        error = "bits 4-5 and 29-30: no scales start there";
}

}  // namespace

void read_instruction_descriptor(uint32_t descriptor, TensorProduct& p, std::string& error)
{
    const bool fours = p.kind == TensorKind::Mxf4 || p.kind == TensorKind::Mxf4nvf4;
    p.n = static_cast<int>(field(descriptor, 17, 6)) * 8;
    p.negate_a = field(descriptor, 13, 1), p.negate_b = field(descriptor, 14, 1);
    p.m_major = field(descriptor, 15, 1), p.n_major = field(descriptor, 16, 1);
    if (is_scaled(p.kind))
        read_scaled(descriptor, p, error);
    else
        read_plain(descriptor, p, error);
    if (!error.empty())
        return;
    if (!read_type(p.kind, field(descriptor, 7, 3), p.a) ||
        !read_type(p.kind, field(descriptor, 10, fours ? 2 : 3), p.b))
        error = "bits 7-12: no such types of A and B for this kind";
    else if (p.half_result && (p.a.format == FormatId::Bf16 || p.b.format == FormatId::Bf16))
        error = "an f16 result needs f16 operands";
    else if (fours && (p.m_major || p.n_major || field(descriptor, 12, 1)))
        error = "bits 12, 15 and 16 must be zero for this kind";
    else if (p.kind == TensorKind::I8 && (p.negate_a || p.negate_b))
        error = "bits 13-14: integers are not negated";
    else if ((p.m_major && p.a.dense) || (p.n_major && p.b.dense))
        error = "fp4 and fp6 are not transposed";
    else if (!shape_exists(p))
        error = "no shape M = " + std::to_string(p.m) + ", N = " + std::to_string(p.n) +
                " for .cta_group::" + std::to_string(p.group) + (p.weights ? " and .ws" : "");
    else
        p.k = 256 / p.a.bits;
}

MatrixElement in_tensor_memory(const TensorProduct& product)
{
    MatrixElement element = product.a;
    if (element.dense)
        element.dense = false, element.place = element.width == 4 ? 2 : 0;
    return element;
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
