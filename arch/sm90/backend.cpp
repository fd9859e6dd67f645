// The sm90 backend: TMA + wgmma, for compute capability 9.0 alone.
#include "arch/sm90/backend.hpp"

#include "arch/common/pack.hpp"
#include "arch/sm90/rows.hpp"
#include "src/handle.hpp"
#include "src/kernel_table.hpp"

#include <algorithm>
#include <cmath>

extern "C" {
extern const unsigned char hgemm_image_sm90_sm90[];
}

namespace hg {
namespace sm90 {
namespace {

// An image that was left out of the build is empty.
bool serves(const Device& device)
{
    return device.cc == 90 && device.smem_per_block >= smem_limit && hgemm_image_sm90_sm90[0] != 0;
}

Status open(const Device& device, void** state)
{
    return open_kernels(hgemm_image_sm90_sm90, device, rows, major_variants, major_symbol, state);
}

size_t default_workspace(const Device&) { return 0; }

// Boxes: 64 elements of the contiguous dimension by tile_rows rows (K-major) or by tile_k k's (MN-major).
// A batch that shares the operand has one matrix in its map.
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int tile_rows, int tile_k,
                    CUtensorMap& map)
{
    const bool k_major = major_of(o) == Major::K;
    const bool batched = p.batch > 1 && o.batch_stride > 0;
    const int64_t line = line_stride(o);
    driver::TensorMapRequest r{};
    r.base = o.ptr;
    r.type = p.type_ab;
    r.size[0] = k_major ? p.k : rows_of_operand;
    r.size[1] = k_major ? rows_of_operand : p.k;
    r.size[2] = batched ? p.batch : 1;
    r.stride_bytes[0] = 2 * line;
    r.stride_bytes[1] = batched ? 2 * o.batch_stride : 16;
    r.box[0] = span_elements;
    r.box[1] = k_major ? tile_rows : tile_k;
    r.box[2] = 1;
    return driver::encode_tensor_map(r, &map);
}

// A TMA store writes whole 16-byte units: one that reaches past column n would overwrite what lies there.
bool can_tma_store(const Problem& p)
{
    const int64_t bytes = bytes_of(p.d.type);
    const int64_t batch_stride = p.batch > 1 ? p.d.batch_stride : 0;
    return is_plain(p) && p.n * bytes % 16 == 0 && p.d.ld > 0 && batch_stride >= 0 &&
           is_vector_aligned(p.d.ptr, p.d.ld, batch_stride, bytes) && p.d.ld * bytes < int64_t{1} << 40 &&
           batch_stride * bytes < int64_t{1} << 40;
}

Status pack_result(const Problem& p, CUtensorMap& map)
{
    const int64_t bytes = bytes_of(p.d.type);
    driver::TensorMapRequest r{};
    r.base = p.d.ptr;
    r.type = p.d.type;
    r.size[0] = p.n;
    r.size[1] = p.m;
    r.size[2] = p.batch;
    r.stride_bytes[0] = bytes * p.d.ld;
    r.stride_bytes[1] = p.batch > 1 ? bytes * p.d.batch_stride : 16;
    r.box[0] = static_cast<uint32_t>(span_bytes / bytes);
    r.box[1] = 64;
    r.box[2] = 1;
    return driver::encode_tensor_map(r, &map);
}

// Rows of tiles walked together: the tiles in flight form a block whose sides in elements are equal, so
// that they read the fewest bytes.
int group_of(const Row& row, int sm_count)
{
    return std::max(1,
                    static_cast<int>(std::sqrt(static_cast<double>(sm_count) * row.tile_n / row.tile_m)));
}

Status run(Handle& handle, void* state, const Problem& p, const Plan& plan)
{
    const Row& row = rows[plan.row];
    Params params{};
    params.output = pack_output(p);
    params.k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(plan.tiles);
    params.grid = pack_grid(p, row, group_of(row, handle.sm_count()));
    params.a_batch_step = p.a.batch_stride != 0;
    params.b_batch_step = p.b.batch_stride != 0;
    params.tma_store = can_tma_store(p);
    Status status = pack_operand(p.a, p, p.m, row.tile_m, row.tile_k, params.a);
    if (status == ok)
        status = pack_operand(p.b, p, p.n, row.tile_n, row.tile_k, params.b);
    if (status == ok && params.tma_store)
        status = pack_result(p, params.d);
    return status == ok ? launch(*static_cast<const KernelTable*>(state), plan, &params, handle.stream)
                        : status;
}

}  // namespace
}  // namespace sm90

const Backend sm90_backend = {
    "sm90",     sm90::rows,    sm90::row_count,         sm90::serves,
    sm90::open, close_kernels, sm90::default_workspace, sm90::choose,
    sm90::run,  true,
};

}  // namespace hg
