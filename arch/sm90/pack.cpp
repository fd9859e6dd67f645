// Problem + Plan -> Params: orientation, tensor maps, tile order.
#include "arch/common/tma.hpp"
#include "arch/sm90/order.hpp"
#include "arch/sm90/rows.hpp"

namespace hg::sm90 {
namespace {

// Boxes: 64 elements of the contiguous dimension by box_rows rows (K-major) or by box_k k's (MN-major).
Status pack_operand(const Operand& o, const Problem& p, int64_t rows_of_operand, int box_rows, int box_k,
                    CUtensorMap& map)
{
    const int lines = major_of(o) == Major::K ? box_rows : box_k;
    return encode_operand(o, p, rows_of_operand, span_elements, lines, map);
}

// Lines that only one cluster reads, since the `others` rows of the other operand fit one tile, need not
// stay in L2.
uint64_t policy(const Problem& p, const Operand& o, int64_t others, int others_in_tile)
{
    const bool shared = p.batch > 1 && o.batch_stride == 0;
    return others <= others_in_tile && !shared ? evict_first : evict_normal;
}

// An output larger than L2 only drives out the operands.
uint64_t output_policy(const Problem& p)
{
    constexpr double most_of_l2 = 40e6;
    const double bytes = static_cast<double>(p.batch) * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * (p.d.type == Type::F32 ? 4.0 : 2.0);
    return bytes > most_of_l2 ? evict_first : evict_normal;
}

// Of large operands: no more than saves the first wait for memory, since TMA takes the requests one after
// the other, those of its first loads behind them. Fewer of wide tiles, and where the last wave is nearly
// empty, since the next kernel's CTAs then ask early and take bandwidth from those that still load.
// Microseconds with four k tiles, three, two, one: 96 x 4096 x 4096 by 64 x 96 10.94, 11.03, 11.17, 11.36;
// 192 x 32768 x 512 by pairs of 128 x 192 15.13, 14.90, 14.87, 15.18; 512 x 7168 x 2048 by 128 x 224
// 24.81, 24.64, 24.44, 24.32; 1 x 18432 x 7168, 288 CTAs on 264 places, 59.99, 58.58, 57.73, 58.30.
int32_t count_of_large(const Config& c, const Plan& plan, int sm_count)
{
    constexpr int narrow = 160, wide = 256;
    const int lines = c.x / c.across + c.y / c.cluster;
    const auto places = static_cast<uint32_t>(c.residents * sm_count);
    const uint32_t last_wave = plan.grid % places;
    if (plan.grid > places && 0 < last_wave && last_wave < places / 4)
        return 2;
    return lines <= narrow ? 4 : lines <= wide ? 3 : 1;
}

}  // namespace

bool is_stored_by_tma(const Problem& p)
{
    return is_tma_output(p) && (p.d.type == Type::F32 || p.d.type == p.type_ab);
}

namespace {

bool reads_c(const Problem& p) { return p.c.ptr || p.c.array; }

// All problems may share C: a tensor map has no stride of 0.
bool is_c_loaded_by_tma(const Problem& p)
{
    return is_tma_matrix(p.c, p.batch) && (p.batch == 1 || p.c.batch_stride > 0) &&
           (p.c.type == Type::F32 || p.c.type == p.type_ab);
}

// Of D's type, and of as many columns.
bool is_aux_stored_by_tma(const Problem& p)
{
    return is_tma_matrix(p.aux, p.batch) && p.d.type == p.type_ab;
}

// Is there a row that finishes it in place?
bool is_finished_in_place(const Problem& p)
{
    return is_stored_by_tma(p) && p.activation != Activation::GeluErf &&
           (!p.aux.ptr || is_aux_stored_by_tma(p)) && (!reads_c(p) || is_c_loaded_by_tma(p));
}

}  // namespace

Store store_of(const Config& c, const Problem& p, bool swapped)
{
    const bool reads_or_writes_more = reads_c(p) || p.aux.ptr;
    const bool asks_for_more =
        reads_or_writes_more || p.activation == Activation::GeluTanh || p.activation == Activation::Silu;
    if (!is_finished_in_place(p) || (asks_for_more && !takes_everything(c)) ||
        (reads_or_writes_more && swapped))
        return Store::Pieces;
    return is_plain(p) ? Store::Plain : Store::InPlace;
}

namespace {

// Boxes as store_block_tma(), BoxesOfC and store_block_16() take them or, of D, fill_piece().
Status pack_results(const Problem& p, const Config& c, bool swapped, Params& params)
{
    static_assert(swapped_box_rows == piece_y);
    const auto columns_of = [&](Type type) { return type == Type::F32 ? 32 : box_columns(c); };
    const bool halves = p.d.type != Type::F32;
    const int columns = halves && swapped                         ? 64
                        : halves && params.store == Store::Pieces ? piece_y
                                                                  : columns_of(p.d.type);
    Status status = encode_matrix(p.d, p, columns, swapped ? swapped_box_rows : 64, params.d);
    if (params.store != Store::InPlace)
        return status;
    if (status == ok && reads_c(p))
        status = encode_matrix(p.c, p, columns_of(p.c.type), 64, params.c);
    if (status == ok && p.aux.ptr)
        status = encode_matrix(p.aux, p, columns_of(p.aux.type), 64, params.aux);
    return status;
}

}  // namespace

// In pieces only where products are long enough to hide them: 8192 x 8192 x 1024 with a bias and GELU takes
// 268 us by 128 x 176 in pieces, 233 by 128 x 128 in place, 512 x 11008 x 4096 by 128 x 168 in pieces 69.
bool can_store(const Config& c, const Problem& p, bool swapped)
{
    constexpr int64_t long_k = 2048;
    if (c.is_split() || store_of(c, p, swapped) != Store::Pieces)
        return true;
    return (reads_c(p) ? takes_pieces_of_c(c) : takes_everything(c)) &&
           (p.k >= long_k || !is_finished_in_place(p));
}

int32_t count_prefetched(const Problem& p, const Config& c, const Plan& plan, int sm_count)
{
    constexpr double small = 3e6;
    constexpr int64_t many = 16;
    if (plan.streams || p.alpha_device || p.alpha == 0.0f)
        return 0;
    const double bytes =
        2.0 * static_cast<double>(p.batch) * static_cast<double>(p.k) * static_cast<double>(p.m + p.n);
    const int64_t most = bytes <= small ? many : count_of_large(c, plan, sm_count);
    return static_cast<int32_t>(std::min(ceil_div(p.k, tile_k), most));
}

Status pack_product(const Problem& p, const Plan& plan, int sm_count, Params& params)
{
    const Config& c = configs[plan.row];
    const Operand &x = plan.swapped ? p.b : p.a, &y = plan.swapped ? p.a : p.b;
    const int cluster_x = c.x * c.cluster, cluster_y = c.y * c.across;
    const int64_t rows_x = plan.swapped ? p.n : p.m, rows_y = plan.swapped ? p.m : p.n;
    params = {};
    params.output = pack_output(p);
    params.tiles = static_cast<int32_t>(plan.tiles);
    const int64_t clusters_x = ceil_div(rows_x, cluster_x), clusters_y = ceil_div(rows_y, cluster_y);
    const Order order = order_tiles(c, plan, clusters_x, clusters_y, p.k, sm_count);
    params.along_y = order.along_y;
    params.grid = order.along_y ? tile_grid(clusters_y, clusters_x, order.group)
                                : tile_grid(clusters_x, clusters_y, order.group);
    params.numbered = order.numbered;
    if (order.numbered)
        number_by_gpc(plan.cluster, static_cast<int>(plan.grid / plan.cluster), params.numbers);
    params.x_batch_step = x.batch_stride != 0;
    params.y_batch_step = y.batch_stride != 0;
    if (plan.streams)
        params.stream_tiles = static_cast<int32_t>(stream_shape(c, plan.tiles, p.k, sm_count).tiles);
    if (c.is_global())
        params.slice_clusters = divisor(static_cast<int32_t>(plan.tiles));
    params.split = plan.split;
    params.part = part_of(c, plan.split);
    params.vectors = is_vector_output(p);
    params.lagging = plan.split == 1 && lag(c, major_of(y)) > 0 && params.vectors &&
                     p.d.type == p.type_ab && params.output.bias_along == BiasAlong::None;
    params.row_vectors = divisor(plan.swapped ? (params.lagging ? 64 : c.x) / 8 : params.part);
    params.rows_at_once = divisor((params.lagging ? 128 : 128 * c.consumers) / params.row_vectors.value);
    params.cluster = divisor(plan.cluster);
    const int64_t k_tiles = ceil_div(p.k, tile_k);
    params.k_tiles = static_cast<int32_t>(k_tiles);
    for (int slice = 0; slice <= max_slices; ++slice) {
        params.slice_start[slice] =
            static_cast<int32_t>(k_tiles * std::min(slice, plan.split) / plan.split);
    }
    params.swapped = plan.swapped;
    params.tma_store = !c.is_split() && is_stored_by_tma(p);
    params.store = store_of(c, p, plan.swapped);
    params.early = plan.early;
    params.prefetched = count_prefetched(p, c, plan, sm_count);
    params.x_policy = policy(p, x, rows_y, cluster_y);
    params.y_policy = policy(p, y, rows_x, cluster_x);
    params.d_policy = output_policy(p);
    Status status = pack_operand(x, p, rows_x, c.x / c.across, tile_k / c.across, params.x);
    if (status == ok)
        status = pack_operand(y, p, rows_y, c.y / c.cluster, tile_k / c.cluster, params.y);
    if (status == ok && params.tma_store)
        status = pack_results(p, c, plan.swapped, params);
    return status;
}

// D and C in TMA's boxes where a group fills a tile.
Status pack_groups(const Problem& p, const Plan& plan, Params& params)
{
    const Config& c = config_of(plan.row);
    const Problem in_rows = rows_of_groups(p);
    params = {};
    params.output = pack_output(p);
    params.groups = p.groups;
    params.group_count = static_cast<int32_t>(p.batch);
    params.group_tiles_y = static_cast<int32_t>(ceil_div(p.n, int64_t{c.y} * c.across));
    params.k_tiles = static_cast<int32_t>(ceil_div(p.k, tile_k));
    params.x_batch_step = p.a.batch_stride != 0;
    params.y_batch_step = p.b.batch_stride != 0;
    params.x_policy = params.y_policy = evict_normal;
    params.d_policy = output_policy(in_rows);
    params.tma_store = is_stored_by_tma(in_rows);
    params.store = store_of(c, in_rows, false);
    Status status = ok;
    if (p.k > 0)
        status = pack_operand(p.a, in_rows, p.m, c.x / c.across, tile_k / c.across, params.x);
    if (status == ok && p.k > 0)
        status = pack_operand(p.b, p, p.n, c.y, tile_k, params.y);
    if (status == ok && params.tma_store)
        status = pack_results(in_rows, c, false, params);
    return status;
}

}  // namespace hg::sm90
