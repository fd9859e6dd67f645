// Launches of the kernels that exist for these tests alone.
#include "mutation/kernels.hpp"
#include "mutation/kernels/params.hpp"
#include "numerics/floats.hpp"

#include <bit>
#include <cmath>
#include <numeric>

namespace mutation {
namespace {

std::vector<double> numbers(const uint16_t* halves, size_t count)
{
    std::vector<double> list;
    for (size_t i = 0; i < count; ++i)
        list.push_back(emu::to_double(emu::FormatId::F16, halves[i]));
    return list;
}

// D against plain sums, and what surrounds it.
bool is_product(const Params& p, const std::vector<double>& a, const std::vector<double>& b, int k)
{
    for (int64_t row = 0; row <= p.m; ++row)
        for (int64_t column = 0; column < p.ldd; ++column) {
            const float result = p.d_rows[row * p.ldd + column];
            if (row == p.m || column >= p.n) {
                if (std::bit_cast<uint32_t>(result) != 0xa5a5a5a5)
                    return false;
                continue;
            }
            const double sum = std::inner_product(&a[row * k], &a[row * k] + k, &b[column * k], 0.0);
            if (!(std::abs(result - sum) <= 1e-3))
                return false;
        }
    return true;
}

struct Form {
    int rows_a, rows_b, store_rows;  // of boxes
};

void map_operand(void* map, const uint16_t* base, int rows, int k, int box_rows)
{
    MapRequest request{base,
                       false,
                       false,
                       {uint64_t(k), uint64_t(rows)},
                       {uint64_t(k) * 2},
                       {uint32_t(tile_k), uint32_t(box_rows)}};
    make_map(request, map);
}

// Lines of D are longer than n, and a multiple of 16 bytes, as a tensor map must have them.
Params make_params(emu::Machine& machine, Setup& setup, int m, int n, int k, const Form& form)
{
    Params p{};
    const int64_t ldd = (n + 15) / 4 * 4;
    p.d_rows = static_cast<float*>(empty_result(machine, setup, (m + 1) * ldd * sizeof(float)));
    p.ldd = ldd;
    p.m = m, p.n = n;
    p.k_tiles = (k + tile_k - 1) / tile_k;
    const uint16_t* a = random_halves(machine, size_t(m) * k, false);
    const uint16_t* b = random_halves(machine, size_t(n) * k, false);
    map_operand(&p.a, a, m, k, form.rows_a);
    map_operand(&p.b, b, n, k, form.rows_b);
    MapRequest result{p.d_rows,
                      true,
                      false,
                      {uint64_t(n), uint64_t(m)},
                      {uint64_t(ldd) * sizeof(float)},
                      {uint32_t(store_columns), uint32_t(form.store_rows)}};
    make_map(result, &p.d);
    setup.is_correct = [p, k, a = numbers(a, size_t(m) * k), b = numbers(b, size_t(n) * k)] {
        return is_product(p, a, b, k);
    };
    return p;
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

// Shape 0: five tiles of one pair, so that both accumulators are used twice, by TMA. Shape 1: three tiles
// of two pairs, with the ring gone round twice, by plain stores.
Setup arrange_pair(emu::Machine& machine, const std::string& name, int shape)
{
    using namespace tcgen05;
    const int stages = name == "pair_1" ? stages_1 : stages_2;
    const int b_bytes = copy_n * tile_k * 2 * (name == "pair_1" ? 2 : 1);
    const int m = shape == 0 ? 1048 : 500, n = shape == 0 ? 124 : 131;
    const int k = shape == 0 ? 72 : (2 * stages + 1) * tile_k - 24;
    Setup setup;
    Params p = make_params(machine, setup, m, n, k, {tile_m, copy_n, store_rows});
    p.tiles_m = ceil_div(m, 2 * tile_m);
    p.tiles = p.tiles_m * ceil_div(n, tile_n);
    p.tma_store = shape == 0;
    setup.launch.grid.x = shape == 0 ? 2 : 4;
    setup.launch.cluster.x = 2;
    setup.launch.block.x = threads;
    setup.launch.dynamic_shared =
        stages * (tile_m * tile_k * 2 + b_bytes) + 4 * 2 * store_rows * 128 + 1024;
    set_parameters(setup, p);
    return setup;
}

}  // namespace mutation
