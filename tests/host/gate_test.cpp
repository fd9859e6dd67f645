// Gated problems: what is checked of a D that is narrower than the product, and how they are cut into
// parts.
#include "arch/common/host/facts.hpp"
#include "devices.hpp"
#include "src/check/arguments.hpp"
#include "src/check/canonical.hpp"
#include "src/plan/gate.hpp"
#include "src/tuning/key.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hg {
namespace {

constexpr Arg listed[] = {Arg::Handle, Arg::Layout, Arg::M,   Arg::N,       Arg::K,    Arg::Gate,
                          Arg::A,      Arg::Lda,    Arg::B,   Arg::Ldb,     Arg::C,    Arg::Ldc,
                          Arg::D,      Arg::Ldd,    Arg::Aux, Arg::StrideD, Arg::Ldaux};
constexpr int64_t m = 6, n = 32, k = 8;
constexpr uintptr_t d_at = 1 << 20;

void* address(uintptr_t at) { return reinterpret_cast<void*>(at); }

// Row-major f16, packed, D half as wide as the product, and A, B and C far from it.
hgemm_args_t gated()
{
    hgemm_args_t g{};
    g.layout = HGEMM_ROW_MAJOR;
    g.transa = HGEMM_NO_TRANS;
    g.transb = HGEMM_TRANS;
    g.type_ab = g.type_c = g.type_d = HGEMM_F16;
    g.m = m;
    g.n = n;
    g.k = k;
    g.alpha = 1;
    g.batch_count = 1;
    g.a = address(1 << 12);
    g.b = address(1 << 16);
    g.c = address(1 << 24);
    g.d = address(d_at);
    g.lda = g.ldb = k;
    g.ldc = g.ldaux = n;
    g.ldd = n / 2;
    g.gate.block = n / 2;
    return g;
}

hgemm_args_t without_gates(hgemm_args_t g)
{
    g.gate = {};
    return g;
}

std::string refusal(const hgemm_args_t& g)
{
    return check_arguments({listed, true}, g, Pointers::Checked) == ok ? "" : hgemm_last_error();
}

void expect_refused(const hgemm_args_t& g, const char* text)
{
    EXPECT_NE(refusal(g).find(text), std::string::npos) << refusal(g);
}

TEST(Gate, LinesOfDMayBeAsShortAsItsWidth)
{
    hgemm_args_t g = gated();
    EXPECT_EQ(refusal(g), "");
    expect_refused(without_gates(g), "must be at least n = 32");
    g.ldd = n / 2 - 1;
    expect_refused(g, "args->ldd) is 15, must be at least n / 2 = 16");
}

TEST(Gate, CAndAuxAreAsWideAsTheProduct)
{
    hgemm_args_t g = gated();
    g.beta = 1;
    g.ldc = n - 1;
    expect_refused(g, "args->ldc");
    g.ldc = n;
    g.aux = address(1 << 28);
    EXPECT_EQ(refusal(g), "");
    g.ldaux = n - 1;
    expect_refused(g, "args->ldaux");
}

TEST(Gate, DIsNotC)
{
    hgemm_args_t g = gated();
    g.beta = 1;
    g.ldd = n;
    g.d = const_cast<void*>(g.c);
    EXPECT_EQ(refusal(without_gates(g)), "");
    expect_refused(g, "narrower");
    g.beta = 0;
    EXPECT_EQ(refusal(g), "");
}

TEST(Gate, BlocksDivideTheLinesOfD)
{
    for (const int64_t block : {1, 2, 4, 8, 16}) {
        hgemm_args_t g = gated();
        g.gate.block = block;
        EXPECT_EQ(refusal(g), "");
        g.m = m + 1;
        EXPECT_EQ(refusal(g), "");
        g.n = n + 1;
        expect_refused(g, "args->gate.block");
        g.n = 0;
        EXPECT_EQ(refusal(g), "") << "nothing to be done";
    }
    hgemm_args_t g = gated();
    g.gate.block = n;
    expect_refused(g, "is 32, twice of it must divide args->n = 32");
}

// The operand begins where D ends.
TEST(Gate, DEndsEarlier)
{
    hgemm_args_t g = gated();
    g.ldd = n;
    g.a = address(d_at + 2 * ((m - 1) * n + n / 2));
    EXPECT_EQ(refusal(g), "");
    expect_refused(without_gates(g), "overlaps");
    g.a = address(d_at + 2 * ((m - 1) * n + n / 2 - 1));
    expect_refused(g, "overlaps");
}

// Two problems lie side by side in the lines that one D would fill without gates.
TEST(Gate, OutputsOfABatchMayLieSideBySide)
{
    hgemm_args_t g = gated();
    g.ldd = n;
    g.batch_count = 2;
    g.stride_d = n / 2;
    EXPECT_EQ(refusal(g), "");
    expect_refused(without_gates(g), "share elements");
    g.stride_d = n / 2 - 1;
    expect_refused(g, "share elements");
}

TEST(Gate, ColumnsOfTheProblemAreThoseAlongLinesOfD)
{
    hgemm_args_t g = gated();
    EXPECT_EQ(to_problem(without_gates(g)).columns(), n);
    EXPECT_EQ(to_problem(g).columns(), n / 2);
    EXPECT_EQ(to_problem(g).n, n);
    g.layout = HGEMM_COL_MAJOR;
    g.m = n;
    g.n = m;
    g.lda = n;
    g.ldb = m;
    EXPECT_EQ(to_problem(g).columns(), n / 2);
    EXPECT_EQ(to_problem(g).m, m);
}

TEST(Gate, NumbersThatAreNotGivenChangeNothing)
{
    hgemm_args_t g = gated();
    EXPECT_EQ(to_problem(g).gate.slope, 1.0f);
    EXPECT_TRUE(std::signbit(to_problem(g).gate.offset)) << "-0 keeps the sign of a zero";
    g.gate = {n / 2, 3, 2, 1, 77};
    EXPECT_EQ(to_problem(g).gate, (Gate{n / 2, 3, 2, 1}));
}

// Else a gate of 0 would become infinity times 0.
TEST(Gate, SlopesTimesLog2EAreFinite)
{
    hgemm_args_t g = gated();
    g.activation = HGEMM_ACTIVATION_SILU;
    g.gate.slope = FLT_MAX;
    EXPECT_TRUE(std::isfinite(to_problem(g).gate.slope * 1.4426950409f));
    EXPECT_GT(to_problem(g).gate.slope, 1e38f);
}

// A problem whose D has so many columns; a block of 0 is the whole of these.
Problem problem_of(int64_t rows, int64_t columns, int64_t block)
{
    Problem p = linear_layer(rows, 2 * columns, 24);
    p.gate = {block != 0 ? block : columns, 0, 1, -0.0f};
    p.d.ld = columns;
    return p;
}

TEST(Gate, FactsAreOfTheNarrowOutput)
{
    Problem p = linear_layer(64, 24, 64);
    p.d.ld = 32;
    EXPECT_TRUE(Facts(p).output.tma);
    EXPECT_TRUE(Facts(p).output.plain);
    EXPECT_TRUE(Facts(p).output.vectors);
    p.gate.block = 12;  // 12 columns of two bytes
    const OutputFacts output = Facts(p).output;
    EXPECT_EQ(output.columns, 12);
    EXPECT_FALSE(output.tma);
    EXPECT_FALSE(output.plain);
    EXPECT_FALSE(output.vectors);
    EXPECT_FALSE(output.fusible);
    p.n = 32;
    EXPECT_TRUE(Facts(p).output.tma);
}

TEST(Gate, BlockIsPartOfTheTuningKey)
{
    Problem p = linear_layer(64, 32, 64);
    const std::string plain = tuning_key(p, Mode::Default);
    p.gate.block = 16;
    EXPECT_EQ(tuning_key(p, Mode::Default), plain + ",gate16");
}

TEST(Gate, BackendsWithoutKernelsForItAreNotChosen)
{
    const Problem p = problem_of(64, 16, 0);
    EXPECT_NE(choose(host(), p).status, ok);
    EXPECT_NE(std::string(hgemm_last_error()).find("no kernel has gates"), std::string::npos)
        << hgemm_last_error();
    if (!has_cuda())
        return;
    EXPECT_NE(choose(b200, p).status, ok) << "kernels of sm80 stand aside";
    EXPECT_NE(std::string(hgemm_last_error()).find("in parts"), std::string::npos) << hgemm_last_error();
    EXPECT_EQ(choose(b200, p, "sm80").status, ok) << hgemm_last_error();
}

// The problem with a B that is contiguous along N.
Problem with_columns(Problem p)
{
    p.b.row_stride = 1;
    p.b.k_stride = p.n;
    return p;
}

Problem with_aux(Problem p)
{
    p.aux = {address(0x10000), nullptr, p.n + 16 - p.n % 8, 0, p.d.type, 0};
    return p;
}

TEST(Gate, KernelsOfSm80ServeWhatTheyFind)
{
    NEEDS_CUDA_BUILD();
    Problem erf = problem_of(64, 16, 0), reads_c = erf, wide_d = with_aux(erf), misaligned = erf,
            columns_of_a = erf;
    erf.activation = Activation::GeluErf;
    reads_c.beta = 1;
    reads_c.c = reads_c.d;
    wide_d.d.type = Type::F32;
    misaligned.b.row_stride += 1;
    columns_of_a.a.row_stride = 1;
    columns_of_a.a.k_stride = 64;
    const Problem served[] = {problem_of(64, 16, 0),
                              problem_of(64, 15, 0),
                              problem_of(64, 15, 1),
                              problem_of(64, 128, 64),
                              with_columns(problem_of(64, 16, 0)),
                              with_aux(problem_of(64, 16, 0)),
                              with_aux(problem_of(64, 14, 1))};
    const Problem refused[] = {erf,
                               reads_c,
                               wide_d,
                               misaligned,
                               columns_of_a,
                               problem_of(64, 16, 8),
                               with_columns(problem_of(64, 12, 0)),
                               with_columns(problem_of(64, 16, 1)),
                               with_aux(problem_of(64, 15, 0)),
                               with_aux(problem_of(64, 15, 1))};
    for (const Device& device : {a100, a10, rtx5090}) {
        for (const Problem& p : served)
            EXPECT_TRUE(choose(device, p).kernel.starts_with("sm80_"))
                << &p - served << ": " << hgemm_last_error();
        for (const Problem& p : refused)
            EXPECT_NE(choose(device, p).status, ok) << &p - refused;
    }
}

// Element (row, column) of the product of problem z.
using Element = std::array<int64_t, 3>;

// Operands whose strides tell the problem, row and column of what lies at an address.
Problem with_strides(Problem p, int64_t batch)
{
    p.batch = batch;
    p.a = {address(0x1000), nullptr, 100, 1, 100 * p.m + 7, 0};
    p.b = {address(0x2000), nullptr, 50, 1, 50 * p.n + 9, 0};
    p.c = {address(0x3000), nullptr, p.n + 3, p.m * (p.n + 3) + 5, Type::F16, 0};
    p.bias = {address(0x4000), p.n + 1, Type::BF16, BiasAlong::Columns};
    p.aux = {address(0x5000), nullptr, p.n + 2, p.m * (p.n + 2) + 1, Type::F16, 0};
    p.d = {address(0x6000), nullptr, p.n / 2 + 1, p.m * (p.n / 2 + 1) + 3, Type::F16, 0};
    p.beta = 1;
    return p;
}

int64_t distance(const void* from, const void* to)
{
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from));
}

// Where which element's sum is written by the products of a piece. Their operands must be that element's.
std::map<int64_t, Element> sums_of(const Problem& p, const GateCut& cut, const GatePiece& piece)
{
    std::map<int64_t, Element> sums;
    float* const base = reinterpret_cast<float*>(0x100000);
    for (int index = 0; index < cut.products(); ++index) {
        const Problem part = product_of(p, cut, piece, index, base);
        EXPECT_FALSE(part.is_gated() || part.aux.ptr || part.activation != Activation::None);
        for (int64_t z = 0; z < part.batch; ++z)
            for (int64_t i = 0; i < part.m; ++i)
                for (int64_t j = 0; j < part.n; ++j) {
                    const int64_t a = distance(p.a.ptr, part.a.ptr) / 2 + z * part.a.batch_stride + i * 100;
                    const int64_t b = distance(p.b.ptr, part.b.ptr) / 2 + z * part.b.batch_stride + j * 50;
                    const int64_t problem = a / p.a.batch_stride;
                    const Element element{problem, a % p.a.batch_stride / 100,
                                          (b - problem * p.b.batch_stride) / 50};
                    EXPECT_EQ(b, problem * p.b.batch_stride + element[2] * 50);
                    EXPECT_EQ(distance(p.c.ptr, part.c.ptr) / 2 + z * part.c.batch_stride + i * part.c.ld +
                                  j,
                              problem * p.c.batch_stride + element[1] * p.c.ld + element[2])
                        << problem << " " << element[1] << " " << element[2];
                    EXPECT_EQ(distance(p.bias.ptr, part.bias.ptr) / 2 + z * part.bias.batch_stride + j,
                              problem * p.bias.batch_stride + element[2]);
                    const int64_t place =
                        distance(base, part.d.ptr) / 4 + z * part.d.batch_stride + i * part.d.ld + j;
                    EXPECT_TRUE(sums.emplace(place, element).second) << "two sums at one place";
                }
    }
    return sums;
}

// The pass finds the sums of each element of D, all of which are within the room.
void expect_whole(const Problem& p, size_t room)
{
    const GateCut cut = cut_gates(p, room);
    const int64_t block = p.gate.block;
    std::map<int64_t, int> written;
    for_each_gate_piece(p, cut, [&](const GatePiece& piece) {
        const std::map<int64_t, Element> sums = sums_of(p, cut, piece);
        EXPECT_GE(sums.begin()->first, 0);
        EXPECT_LE(static_cast<size_t>(sums.rbegin()->first + 1) * sizeof(float), cut.sums_bytes);
        const GatePass pass = pass_of(p, cut, piece, nullptr);
        for (int64_t z = 0; z < pass.batch; ++z)
            for (int64_t i = 0; i < pass.rows; ++i)
                for (int64_t j = 0; j < pass.columns; ++j) {
                    const int64_t at = z * pass.problem_stride + i * pass.ld + pass.place(j);
                    const int64_t column = piece.column + j, place = column + column / block * block;
                    const Element gate{piece.problem + z, piece.row + i, place};
                    const Element other{gate[0], gate[1], place + block};
                    ASSERT_EQ(sums.at(at), gate);
                    ASSERT_EQ(sums.at(at + pass.apart), other);
                    ASSERT_EQ(distance(p.aux.ptr, pass.aux.ptr) / 2 + z * pass.aux.batch_stride +
                                  i * pass.aux.ld + pass.place(j),
                              gate[0] * p.aux.batch_stride + gate[1] * p.aux.ld + place);
                    ++written[distance(p.d.ptr, pass.d.ptr) / 2 + z * pass.d.batch_stride + i * pass.d.ld +
                              j];
                }
    });
    EXPECT_EQ(written.size(), static_cast<size_t>(p.batch * p.m * p.columns()));
    EXPECT_TRUE(std::all_of(written.begin(), written.end(), [](const auto& w) { return w.second == 1; }));
}

TEST(Gate, PiecesGateEveryElementOnce)
{
    for (const int64_t block : {0, 1, 3, 8, 40})
        for (const int64_t rows : {1, 5, 33})
            for (const int64_t columns : {1, 24, 120, 1080})
                for (const int64_t batch : {1, 3})
                    for (const size_t room : {0, 1000, 5000, 100'000, 10'000'000})
                        if (block == 0 || columns % block == 0) {
                            expect_whole(with_strides(problem_of(rows, columns, block), batch), room);
                            ASSERT_FALSE(HasFailure()) << block << ": " << rows << " x " << columns << " x "
                                                       << batch << " in " << room;
                        }
}

TEST(Gate, SumsFitInTheRoomIfAnyDo)
{
    for (const int64_t block : {0, 1, 3, 8, 72, 1000, 4000})
        for (const int64_t rows : {1, 7, 300, 100'000})
            for (const int64_t columns : {8, 1000, 1224, 72'000}) {
                if (block > columns || (block > 0 && columns % block != 0))
                    continue;
                Problem p = problem_of(rows, columns, block);
                p.batch = 5;
                const size_t least = cut_gates(p, 0).sums_bytes;
                EXPECT_EQ(least % 256, 0u);
                for (size_t room = least; room < size_t{1} << 34; room += room / 3 + 1)
                    ASSERT_LE(cut_gates(p, room).sums_bytes, room)
                        << rows << " x " << columns << ", " << block;
                EXPECT_LE(least, static_cast<size_t>(
                                     std::max<int64_t>(256, 64 * std::max<int64_t>(p.gate.block, 8))));
            }
}

// The groups' rows lie in one matrix of sums, however many groups there are.
TEST(Gate, ContiguousGroupsShareOneMatrix)
{
    Problem p = problem_of(32'768, 64, 8);
    p.groups = {address(0x8000), GroupsBy::Offsets, 0, 0, 0};
    for (const int64_t groups : {1, 600, 100'000}) {
        p.batch = groups;
        const GateCut cut = cut_gates(p, size_t{1} << 34);
        EXPECT_EQ(cut.sums_bytes, size_t{32'768 * 64 * 2 * 4});
        EXPECT_EQ(cut.problems, groups);
    }
    p.groups.by = GroupsBy::Counts;
    EXPECT_EQ(cut_gates(p, size_t{1} << 30).problems, 64) << "a matrix each";
}

// A block of columns would read all of A again.
TEST(Gate, GroupsAreCutByRows)
{
    Problem p = problem_of(131'072, 768, 0);
    p.batch = 128;
    for (const GroupsBy by : {GroupsBy::Offsets, GroupsBy::Ends, GroupsBy::Counts}) {
        p.groups = {address(0x8000), by, 1, 0, 0};
        const GateCut cut = cut_gates(p, size_t{1} << 26);
        EXPECT_EQ(cut.columns, 768);
        EXPECT_EQ(cut.rows, (int64_t{1} << 26) / (2 * 4 * 768));
        int64_t rows = 0;
        for_each_gate_piece(p, cut, [&](const GatePiece& piece) {
            const Problem part = product_of(p, cut, piece, 0, nullptr);
            const GatePass pass = pass_of(p, cut, piece, nullptr);
            EXPECT_EQ(part.groups.origin, piece.row);
            EXPECT_EQ(pass.groups, part.groups);
            EXPECT_EQ(part.groups.sizes,
                      address(0x8000 + (by == GroupsBy::Counts ? 4 * piece.problem : 0)));
            EXPECT_EQ(pass.group_count, part.batch);
            rows += piece.rows * (by == GroupsBy::Counts ? 1 : part.batch);
        });
        EXPECT_EQ(rows, 131'072 * 128);
    }
}

// The widest tiles have 80 gates, of which no 32 follow each other.
TEST(Gate, KernelsForGroupsHaveTilesThatFindTheGates)
{
    NEEDS_CUDA_BUILD();
    Problem p = problem_of(16'384, 1024, 0);
    p.k = p.a.row_stride = p.b.row_stride = 1024;
    p.batch = 8;
    p.b.batch_stride = p.n * p.k;
    p.groups = {address(0x8000), GroupsBy::Offsets, 0, 0, 0};
    const std::string prefix = "sm90_gated_grouped_";
    EXPECT_EQ(choose(h100, p).kernel, prefix + "128x160_1x2");
    for (const int64_t block : {32, 128}) {
        p.gate.block = block;
        EXPECT_EQ(choose(h100, p).kernel, prefix + "128x128_1x2") << block;
    }
    EXPECT_NE(choose(h100, p, "", (prefix + "128x160_1x2").c_str()).status, ok);
    EXPECT_EQ(choose(h100, p, "", (prefix + "64x128").c_str()).kernel, prefix + "64x128");
}

TEST(Gate, KernelsForGroupsOfFewRows)
{
    NEEDS_CUDA_BUILD();
    Problem p = problem_of(64, 1024, 0);
    p.k = p.a.row_stride = p.b.row_stride = 1024;
    p.batch = 8;
    p.b.batch_stride = p.n * p.k;
    p.groups = {address(0x8000), GroupsBy::Offsets, 0, 0, 0};
    EXPECT_EQ(choose(h100, p).kernel, "sm90_gated_grouped_splitk_64x16_occ2");
}

TEST(Gate, PartsAreFewWhereThereIsRoom)
{
    const auto pieces = [](const Problem& p, size_t room) {
        int count = 0;
        for_each_gate_piece(p, cut_gates(p, room), [&](const GatePiece&) { ++count; });
        return count;
    };
    Problem p = problem_of(4096, 4096, 0);
    EXPECT_EQ(pieces(p, size_t{1} << 27), 1);
    EXPECT_EQ(pieces(p, size_t{1} << 26), 2);
    EXPECT_EQ(pieces(p, size_t{1} << 24), 8);
    p.batch = 4;
    EXPECT_EQ(pieces(p, size_t{1} << 29), 1);
    EXPECT_EQ(pieces(p, size_t{1} << 28), 2);
    EXPECT_EQ(pieces(problem_of(4096, 4096, 32), size_t{1} << 26), 2);
}

}  // namespace
}  // namespace hg
