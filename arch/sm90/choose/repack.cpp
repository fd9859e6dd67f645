#include "arch/sm90/choose/repack.hpp"

#include "arch/common/host/pack.hpp"
#include "arch/common/host/tma.hpp"
#include "arch/sm90/config.hpp"

#include <algorithm>
#include <bit>

namespace hg::sm90 {
namespace {

// Keeps the number of tiles well within 32 bits.
constexpr int64_t max_elements = int64_t{1} << 35;

// Lines of a copy begin at whole TMA spans, a copy where the workspace itself may.
constexpr int64_t copy_alignment = 256;

// Lines that a warp copies side by side, where the elements of a line have others between them.
constexpr int64_t max_side_by_side = 8;

int64_t align(int64_t size, int64_t unit) { return ceil_div(size, unit) * unit; }

int64_t bit_ceil(int64_t size) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))); }

// The lines of an operand: along k, unless only the other dimension is contiguous.
struct Lines {
    bool along_k;
    int64_t count, length, stride, element_stride;
    int64_t copies;  // problems; one where they share the operand

    int64_t pitch() const { return align(length, span_elements); }
    // 0 where a copy would be too large.
    int64_t bytes() const
    {
        int64_t elements;
        const bool overflow = __builtin_mul_overflow(count, pitch(), &elements) ||
                              __builtin_mul_overflow(elements, copies, &elements);
        return overflow || elements > max_elements ? 0 : align(2 * elements, copy_alignment);
    }
};

// Of few rows side by side: a line of 128 bytes of L2 is asked for eight times or more by each CTA. Where
// TMA cannot address them, and they are copied in any case, more rows are faster along k.
bool is_thin(const Operand& o, int64_t rows, const Problem& p)
{
    constexpr int64_t min_k = 128;
    const int64_t max_rows = is_tma_operand(o, p.batch) ? 8 : 48;
    return o.k_stride != 1 && o.row_stride == 1 && rows <= max_rows && p.k >= min_k;
}

Lines lines_of(const Operand& o, int64_t rows, const Problem& p)
{
    const int64_t copies = p.batch > 1 && (o.array || o.batch_stride != 0) ? p.batch : 1;
    if (o.k_stride == 1 || o.row_stride != 1 || rows == 1 || is_thin(o, rows, p))
        return {true, rows, p.k, o.row_stride, o.k_stride, copies};
    return {false, p.k, rows, o.k_stride, o.row_stride, copies};
}

Operand copy_of(const Lines& lines, void* workspace, int64_t offset)
{
    const int64_t pitch = lines.pitch();
    void* const ptr = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(workspace) + offset);
    return {ptr, nullptr, lines.along_k ? pitch : 1, lines.along_k ? 1 : pitch,
            lines.copies > 1 ? lines.count * pitch : 0};
}

// Problems whose lines follow each other are copied as one: fewer tiles that are not full, and fewer ends,
// which are gathered.
Lines merge(const Operand& o, Lines lines)
{
    if (!o.array && o.batch_stride == lines.count * lines.stride) {
        lines.count *= lines.copies;
        lines.copies = 1;
    }
    return lines;
}

RepackOperand pack_lines(const Operand& o, const Lines& separate, const Operand& copy)
{
    const Lines lines = merge(o, separate);
    const int64_t vectors = ceil_div(lines.length, repack_vector);
    const bool by_line = lines.element_stride == 1;
    const int64_t along = by_line ? bit_ceil(std::min<int64_t>(vectors, repack_threads))
                                  : repack_threads / bit_ceil(std::min(lines.count, max_side_by_side));
    const int64_t across = repack_threads / along * (by_line ? repack_rows : 1);
    RepackOperand r{};
    r.ptr = static_cast<const uint16_t*>(o.ptr);
    r.array = reinterpret_cast<const uint16_t* const*>(o.array);
    r.batch_stride = o.batch_stride;
    r.row_stride = lines.stride;
    r.element_stride = lines.element_stride;
    r.to = static_cast<uint16_t*>(const_cast<void*>(copy.ptr));
    r.to_stride = lines.pitch();
    r.rows = lines.count;
    r.columns = lines.length;
    r.log2_along = std::countr_zero(static_cast<uint64_t>(along));
    r.tiles_along = static_cast<uint32_t>(ceil_div(vectors, along));
    r.tiles_across = static_cast<uint32_t>(ceil_div(lines.count, across));
    r.tiles = static_cast<uint32_t>(int64_t{r.tiles_along} * r.tiles_across * lines.copies);
    return r;
}

}  // namespace

bool plan_repack(const Problem& p, size_t room, Plan& plan)
{
    for (const bool copies_thin : {true, false}) {
        plan.sm90.repack_a = !is_tma_operand(p.a, p.batch) || (copies_thin && is_thin(p.a, p.m, p));
        plan.sm90.repack_b = !is_tma_operand(p.b, p.batch) || (copies_thin && is_thin(p.b, p.n, p));
        const int64_t a = plan.sm90.repack_a ? lines_of(p.a, p.m, p).bytes() : 0;
        const int64_t b = plan.sm90.repack_b ? lines_of(p.b, p.n, p).bytes() : 0;
        plan.workspace = static_cast<size_t>(a + b);
        if (plan.sm90.repack_a == (a > 0) && plan.sm90.repack_b == (b > 0) && plan.workspace <= room)
            return true;
    }
    return false;
}

Problem repacked(const Problem& p, const Plan& plan, void* workspace)
{
    Problem left = p;
    const Lines a = lines_of(p.a, p.m, p), b = lines_of(p.b, p.n, p);
    if (plan.sm90.repack_a)
        left.a = copy_of(a, workspace, 0);
    if (plan.sm90.repack_b)
        left.b = copy_of(b, workspace, plan.sm90.repack_a ? a.bytes() : 0);
    return left;
}

double predict_repack(const Problem& p, const Plan& plan)
{
    constexpr double of_batch = 1.26;
    if (!plan.sm90.repacks())
        return 0;
    // The rate from 4,055 candidates of 724 problems (h200_sm90_direct_ways.txt.xz): what they take longer
    // than predicted. Since copies are faster 2.61 instead of 1.5 makes 28 of 229 products 14 % slower. Of
    // batches from 112 of them (h100_sm90_batches.txt.xz).
    return (1.5 + static_cast<double>(plan.workspace) / 1.95e6) * (p.batch > 1 ? of_batch : 1.0);
}

int64_t pack_repack(const Problem& p, const Plan& plan, void* workspace, RepackParams& params)
{
    const Problem left = repacked(p, plan, workspace);
    params = {};
    params.alpha_device = p.alpha_device;
    if (plan.sm90.repack_a)
        params.operands[0] = pack_lines(p.a, lines_of(p.a, p.m, p), left.a);
    if (plan.sm90.repack_b)
        params.operands[1] = pack_lines(p.b, lines_of(p.b, p.n, p), left.b);
    return int64_t{params.operands[0].tiles} + params.operands[1].tiles;
}

}  // namespace hg::sm90
