// Launches of the library's own kernels: problems as its dispatcher would pass them to a backend.
#include "mutation/kernels.hpp"

#include "arch/common/pack.hpp"
#include "arch/sm80/rows.hpp"
#include "arch/sm90/rows.hpp"

#include <stdexcept>

namespace mutation {
namespace {

using hg::Major;
using hg::Type;

// "<row>_<type>[_<majors>]"
struct Variant {
    bool bf16;
    Major a = Major::K, b = Major::K;
};

Variant variant_of(const std::string& name)
{
    Variant variant{name.find("_bf16") != std::string::npos};
    const std::string majors = name.substr(name.rfind('_') + 1);
    if (majors.size() == 2) {
        variant.a = majors[0] == 'm' ? Major::MN : Major::K;
        variant.b = majors[1] == 'n' ? Major::MN : Major::K;
    }
    return variant;
}

template <size_t Count>
const hg::Row& row_of(const hg::Row (&rows)[Count], const std::string& name)
{
    for (const hg::Row& row : rows)
        if (name.rfind(std::string(row.name) + "_", 0) == 0)
            return row;
    throw std::runtime_error("no row for " + name);
}

// What a shape asks for, beside its sizes.
struct Asked {
    Type type_d = Type::F16;
    int64_t padding = 8;      // of each line of D
    bool everything = false;  // C, bias, activation, aux
};

void add_operand(emu::Machine& machine, hg::Operand& o, Major major, int64_t rows, int64_t k, int64_t batch,
                 bool bf16)
{
    const int64_t line = ((major == Major::K ? k : rows) + 15) / 8 * 8;
    const int64_t lines = major == Major::K ? rows : k;
    o.row_stride = major == Major::K ? line : 1;
    o.k_stride = major == Major::K ? 1 : line;
    o.batch_stride = line * lines;
    o.ptr = random_halves(machine, static_cast<size_t>(line * lines * batch), bf16);
}

hg::Problem make_problem(emu::Machine& machine, Setup& setup, int64_t m, int64_t n, int64_t k,
                         int64_t batch, const Variant& variant, const Asked& asked)
{
    hg::Problem p{};
    p.m = m, p.n = n, p.k = k, p.batch = batch;
    p.type_ab = variant.bf16 ? Type::BF16 : Type::F16;
    p.alpha = 1.5f;
    add_operand(machine, p.a, variant.a, m, k, batch, variant.bf16);
    add_operand(machine, p.b, variant.b, n, k, batch, variant.bf16);
    const int64_t ld = n + asked.padding, bytes = hg::bytes_of(asked.type_d);
    p.d.type = asked.type_d;
    p.d.ld = ld;
    p.d.batch_stride = m * ld;
    p.d.ptr = empty_result(machine, setup, static_cast<size_t>(m * ld * batch * bytes));
    if (!asked.everything)
        return p;
    p.beta = 0.5f;
    p.c.type = Type::F16;
    p.c.ld = n + 1;
    p.c.batch_stride = m * p.c.ld;
    p.c.ptr = random_halves(machine, static_cast<size_t>(p.c.batch_stride * batch), false);
    p.bias.type = Type::F16;
    p.bias.along = hg::BiasAlong::Columns;
    p.bias.batch_stride = n;
    p.bias.ptr = random_halves(machine, static_cast<size_t>(n * batch), false);
    p.aux.ld = ld;
    p.aux.batch_stride = m * ld;
    p.aux.ptr = empty_result(machine, setup, static_cast<size_t>(m * ld * batch * bytes));
    p.activation = hg::Activation::Relu;
    return p;
}

hg::sm80::OperandParams pack_operand(const hg::Operand& o)
{
    return {static_cast<const uint16_t*>(o.ptr), nullptr, o.row_stride, o.k_stride, o.batch_stride};
}

// As pack_operand() and pack_result() of arch/sm90/backend.cpp.
void map_operand(const hg::Operand& o, const hg::Problem& p, int64_t rows, int tile_rows, int tile_k,
                 void* map)
{
    const bool k_major = hg::major_of(o) == Major::K;
    make_map({o.ptr,
              false,
              p.type_ab == Type::BF16,
              {uint64_t(k_major ? p.k : rows), uint64_t(k_major ? rows : p.k), uint64_t(p.batch)},
              {2 * uint64_t(hg::line_stride(o)), 2 * uint64_t(o.batch_stride)},
              {uint32_t(hg::sm90::span_elements), uint32_t(k_major ? tile_rows : tile_k), 1}},
             map);
}

void map_result(const hg::Problem& p, void* map)
{
    const auto bytes = static_cast<uint64_t>(hg::bytes_of(p.d.type));
    make_map({p.d.ptr,
              p.d.type == Type::F32,
              p.d.type == Type::BF16,
              {uint64_t(p.n), uint64_t(p.m), uint64_t(p.batch)},
              {bytes * p.d.ld, bytes * p.d.batch_stride},
              {uint32_t(hg::sm90::span_bytes / bytes), 64, 1}},
             map);
}

}  // namespace

// Shape 0: edges in m, n and k, the ring gone round twice, 16-byte stores. Shape 1: nothing aligned, C,
// bias, aux and activation, two problems.
Setup arrange_sm80(emu::Machine& machine, const std::string& name, int shape)
{
    const hg::Row& row = row_of(hg::sm80::rows, name);
    const int64_t k = shape == 0 ? (2 * row.stages + 1) * row.tile_k - 8 : row.tile_k + 5;
    const int64_t m = row.tile_m + 16, n = row.tile_n + (shape == 0 ? 8 : -3);
    const Asked plain{Type::F16, 8, false}, everything{Type::F32, 1, true};
    Setup setup;
    const hg::Problem p = make_problem(machine, setup, m, n, k, shape == 0 ? 1 : 2, variant_of(name),
                                       shape == 0 ? plain : everything);
    hg::sm80::Params params{};
    params.a = pack_operand(p.a);
    params.b = pack_operand(p.b);
    params.output = hg::pack_output(p);
    params.k = p.k;
    params.grid = hg::pack_grid(p, row, 2);
    setup.launch.grid.x = static_cast<uint32_t>(hg::count_tiles(p, row));
    setup.launch.block.x = row.threads;
    setup.launch.dynamic_shared = row.smem_bytes;
    set_parameters(setup, params);
    return setup;
}

// Shape 0: three tiles of one CTA, the ring gone round many times, f16 by TMA. Shape 1: f32 by TMA, four
// tiles of two problems for three CTAs. Shape 2: the epilogue of everything else.
Setup arrange_sm90(emu::Machine& machine, const std::string& name, int shape)
{
    const hg::Row& row = row_of(hg::sm90::rows, name);
    const int64_t k = shape == 0 ? (2 * row.stages + 1) * row.tile_k - 24 : row.tile_k + 8;
    const int64_t m = shape == 0 ? 2 * row.tile_m + 24 : row.tile_m + 40;
    const int64_t n = row.tile_n - (shape == 2 ? 13 : 8);
    const Asked asked[] = {{Type::F16, 8, false}, {Type::F32, 4, false}, {Type::F16, 1, true}};
    Setup setup;
    const hg::Problem p =
        make_problem(machine, setup, m, n, k, shape == 0 ? 1 : 2, variant_of(name), asked[shape]);
    hg::sm90::Params params{};
    params.output = hg::pack_output(p);
    params.k = static_cast<int32_t>(p.k);
    params.tiles = static_cast<int32_t>(hg::count_tiles(p, row));
    params.grid = hg::pack_grid(p, row, 2);
    params.a_batch_step = params.b_batch_step = 1;
    params.tma_store = shape != 2;
    map_operand(p.a, p, p.m, row.tile_m, row.tile_k, &params.a);
    map_operand(p.b, p, p.n, row.tile_n, row.tile_k, &params.b);
    if (params.tma_store)
        map_result(p, &params.d);
    setup.launch.grid.x = shape == 0 ? 1 : 3;
    setup.launch.block.x = row.threads;
    setup.launch.dynamic_shared = row.smem_bytes;
    set_parameters(setup, params);
    return setup;
}

}  // namespace mutation
