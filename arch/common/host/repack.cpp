#include "arch/common/host/repack.hpp"

#include "arch/common/host/pack.hpp"

#include <algorithm>
#include <bit>

namespace hg {
namespace {

// Keeps the number of tiles well within 32 bits.
constexpr int64_t max_elements = int64_t{1} << 35;

// Each copy begins at a multiple of as many bytes, like the workspace itself.
constexpr int64_t copy_alignment = 256;

// Lines that a warp copies side by side, where the elements of a line are not contiguous in the operand.
constexpr int64_t max_side_by_side = 8;

int64_t align(int64_t size, int64_t unit) { return ceil_div(size, unit) * unit; }

int64_t bit_ceil(int64_t size) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))); }

// A line is what is contiguous in the copy: a row (along K), unless only the operand's other dimension is
// contiguous and it is no thin operand. Strides are the operand's, in elements.
struct CopyLines {
    bool along_k;
    int64_t count, length, stride, element_stride;
    int64_t copies;  // the batch; 1 where its problems share the operand

    int64_t pitch() const { return align(length, repack_line); }
    // Of all copies; 0 where that is too large.
    int64_t bytes() const
    {
        int64_t elements;
        const bool overflow = __builtin_mul_overflow(count, pitch(), &elements) ||
                              __builtin_mul_overflow(elements, copies, &elements);
        return overflow || elements > max_elements ? 0 : align(2 * elements, copy_alignment);
    }
};

// An MN-major operand of few rows. TMA would read it in boxes of a few bytes a K, so it is copied to
// K-major rows; where TMA cannot address it and it is copied in any case, that pays for more rows.
// sm90's DESIGN.md#repack.
bool is_thin(const Operand& o, int64_t rows, const Problem& p)
{
    constexpr int64_t min_k = 128;
    const int64_t max_rows = OperandFacts(o, p.batch).tma ? 8 : 48;
    return o.k_stride != 1 && o.row_stride == 1 && rows <= max_rows && p.k >= min_k;
}

CopyLines lines_of(const Operand& o, int64_t rows, const Problem& p)
{
    const int64_t copies = p.batch > 1 && (o.array || o.batch_stride != 0) ? p.batch : 1;
    if (o.k_stride == 1 || o.row_stride != 1 || rows == 1 || is_thin(o, rows, p))
        return {true, rows, p.k, o.row_stride, o.k_stride, copies};
    return {false, p.k, rows, o.k_stride, o.row_stride, copies};
}

Operand copy_of(const CopyLines& lines, void* workspace, int64_t offset)
{
    const int64_t pitch = lines.pitch();
    void* const ptr = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(workspace) + offset);
    return {ptr,
            nullptr,
            lines.along_k ? pitch : 1,
            lines.along_k ? 1 : pitch,
            lines.copies > 1 ? lines.count * pitch : 0,
            0};
}

// Problems of a batch that are contiguous in memory are copied as one: fewer partial tiles, and fewer ends
// of lines, which are copied element by element.
CopyLines merge(const Operand& o, CopyLines lines)
{
    if (!o.array && o.batch_stride == lines.count * lines.stride) {
        lines.count *= lines.copies;
        lines.copies = 1;
    }
    return lines;
}

RepackOperand pack_lines(const Operand& o, const CopyLines& separate, const Operand& copy)
{
    const CopyLines lines = merge(o, separate);
    const int64_t vectors = ceil_div(lines.length, repack_vector);
    const bool by_line = lines.element_stride == 1;
    const int64_t along = by_line ? bit_ceil(std::min<int64_t>(vectors, repack_threads))
                                  : repack_threads / bit_ceil(std::min(lines.count, max_side_by_side));
    const int64_t across = repack_threads / along * (by_line ? repack_rows : 1);
    RepackOperand r{};
    r.ptr = base_of<const uint16_t>(o);
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

bool plan_repack(const Facts& f, const Readable& readable, size_t room, Plan& plan)
{
    const Problem& p = f.problem;
    for (const bool thin : {readable.copies_thin, false}) {
        plan.repack_a = !(f.a.*readable.as_is) || (thin && is_thin(p.a, p.m, p));
        plan.repack_b = !(f.b.*readable.as_is) || (thin && is_thin(p.b, p.n, p));
        const int64_t a = plan.repack_a ? lines_of(p.a, p.m, p).bytes() : 0;
        const int64_t b = plan.repack_b ? lines_of(p.b, p.n, p).bytes() : 0;
        plan.workspace = static_cast<size_t>(a + b);
        if (plan.repack_a == (a > 0) && plan.repack_b == (b > 0) && plan.workspace <= room)
            return true;
    }
    return false;
}

Problem repacked(const Problem& p, const Plan& plan, void* workspace)
{
    Problem left = p;
    const CopyLines a = lines_of(p.a, p.m, p), b = lines_of(p.b, p.n, p);
    if (plan.repack_a)
        left.a = copy_of(a, workspace, 0);
    if (plan.repack_b)
        left.b = copy_of(b, workspace, plan.repack_a ? a.bytes() : 0);
    return left;
}

int64_t pack_repack(const Problem& p, const Plan& plan, void* workspace, RepackParams& params)
{
    const Problem left = repacked(p, plan, workspace);
    params = {};
    params.alpha_device = p.alpha_device;
    if (plan.repack_a)
        params.operands[0] = pack_lines(p.a, lines_of(p.a, p.m, p), left.a);
    if (plan.repack_b)
        params.operands[1] = pack_lines(p.b, lines_of(p.b, p.n, p), left.b);
    return int64_t{params.operands[0].tiles} + params.operands[1].tiles;
}

Plan plan_of_copies(const Plan& plan, int kernel, int64_t tiles, int64_t max_ctas)
{
    Plan copies = plan;
    copies.kernel = kernel;
    copies.variant = copies.cluster = 0;
    copies.grid = std::min(tiles, max_ctas);
    return copies;
}

}  // namespace hg
