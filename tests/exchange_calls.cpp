// The second half of exchange_rules.hpp: products in blocks, and refusals.
#include "conformance.hpp"
#include "exchange_parts.hpp"
#include "exchange_rules.hpp"
#include "handle_scopes.hpp"
#include "trial.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace hg::test {
namespace {

GemmCase block_case(unsigned form)
{
    GemmCase g;
    g.layout = form & 1 ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = form & 2 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.transb = form & 4 ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.type_ab = halves[form % 2];
    g.type_c = g.type_d = form & 2 ? HGEMM_F32 : halves[form % 2];
    g.in_place = form != 3;
    g.m = 50;
    g.n = form == 5 ? 0 : 40;
    g.k = 72;
    g.beta = form & 4 ? 0.5f : 0.0f;
    g.bias = form % 3 == 0 ? HGEMM_BIAS_M : form % 3 == 1 ? HGEMM_BIAS_N : HGEMM_BIAS_NONE;
    g.activation = HGEMM_ACTIVATION_RELU;
    g.aux = form % 2 == 0;
    g.aligned = form < 4;
    g.data = Data::Wide;
    g.seed = form + 1;
    return g;
}

void expect_blocks(Library& library, const GemmCase& g, int64_t rows, int64_t first)
{
    const int count = static_cast<int>((g.m + rows - 1) / rows);
    Flags waits(library, count), raises(library, count);
    Trial trial(g, library.memory());
    trial.upload();
    hgemm_exchange_args_t ready = default_exchange();
    ready.raise = waits.array();
    ready.raise_count = count;
    ASSERT_EQ(run(library, ready), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    hgemm_blocks_t blocks;
    hgemm_blocks_init(&blocks, sizeof blocks);
    blocks.rows = rows;
    blocks.first = first;
    blocks.wait = waits.array();
    blocks.raise = raises.array();
    ASSERT_EQ(library.wait(hgemm_gemm_blocks(library.handle(), &trial.args(), &blocks)),
              HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "");
    waits.expect(1, 1);
    raises.expect(1, 0);
}

// Each block's D somewhere else, in the order of the blocks backwards.
void expect_places(Library& library)
{
    GemmCase g = block_case(1);
    g.beta = 0;
    g.aux = false;
    g.type_d = HGEMM_F32;
    constexpr int64_t rows = 16;
    const int64_t count = (g.m + rows - 1) / rows, block_bytes = rows * g.n * 4;
    Trial trial(g, library.memory());
    trial.upload();
    ASSERT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << library.story();
    trial.download();
    const Block there(library.memory(), static_cast<size_t>(count * block_bytes));
    std::vector<void*> d;
    for (int64_t i = 0; i < count; ++i)
        d.push_back(there.get<char>() + (count - 1 - i) * block_bytes);
    hgemm_args_t args = trial.args();
    args.d = nullptr;
    args.ldd = g.n;
    hgemm_blocks_t blocks;
    hgemm_blocks_init(&blocks, sizeof blocks);
    blocks.rows = rows;
    blocks.d = d.data();
    ASSERT_EQ(library.wait(hgemm_gemm_blocks(library.handle(), &args, &blocks)), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    std::vector<float> values(static_cast<size_t>(count * rows * g.n));
    there.copy_out(values.data());
    for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j) {
            const int64_t row = (count - 1 - i / rows) * rows + i % rows;
            EXPECT_NEAR(values[static_cast<size_t>(row * g.n + j)], trial.result(0, i, j),
                        1e-5 * (1 + std::fabs(trial.result(0, i, j))));
        }
}

}  // namespace

void check_blocks(Library& library)
{
    for (unsigned form = 0; form < 8; ++form) {
        SCOPED_TRACE(block_case(form).print());
        expect_blocks(library, block_case(form), form % 2 == 0 ? 16 : 50, 0);
        expect_blocks(library, block_case(form), 24, 1 + form % 2);
    }
    expect_places(library);
}

void check_late_blocks(Library& library)
{
    const GemmCase g = block_case(0);
    const Flags waits(library, 3), raises(library, 3);
    ErrorWord error(library);
    hgemm_exchange_args_t ready = default_exchange();
    ready.raise = waits.array();
    ready.raise_count = 1;
    ASSERT_EQ(run(library, ready), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    Trial trial(g, library.memory());
    trial.upload();
    hgemm_blocks_t blocks;
    hgemm_blocks_init(&blocks, sizeof blocks);
    blocks.rows = 20;
    blocks.wait = waits.array();
    blocks.raise = raises.array();
    blocks.limit_us = 20;
    blocks.error = error.get();
    ASSERT_EQ(library.wait(hgemm_gemm_blocks(library.handle(), &trial.args(), &blocks)),
              HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    EXPECT_EQ(error.status(), HGEMM_STATUS_TIMED_OUT);
    EXPECT_NE(std::string(hgemm_last_error()).find("the flag of block 1 was not raised in time"),
              std::string::npos)
        << hgemm_last_error();
    EXPECT_EQ(raises.read(0).raised, 1u);
    EXPECT_EQ(raises.read(1).raised + raises.read(2).raised, 0u);
}

namespace {

// The same flag twice.
hgemm_flag_t* const* same_flags(hgemm_flag_t* flag)
{
    static hgemm_flag_t* flags[2];
    flags[0] = flags[1] = flag;
    return flags;
}

// hgemm_exchange() with one thing wrong.
struct WrongExchange {
    const char* message;
    void (*spoil)(hgemm_exchange_args_t&);
};

hgemm_flag_t* const no_flags[] = {nullptr};
hgemm_flag_t* const odd_flags[] = {reinterpret_cast<hgemm_flag_t*>(uintptr_t{8})};
const void* const no_parts[] = {nullptr};
const WrongExchange wrong_exchanges[] = {
    {"(args->size) is 0", [](auto& x) { x.size = 0; }},
    {"(args->raise_count) is -1, must be 0 to 64", [](auto& x) { x.raise_count = -1; }},
    {"(args->raise) is NULL, must be an array of 1 pointers", [](auto& x) { x.raise = nullptr; }},
    {"(args->raise[0]) is NULL", [](auto& x) { x.raise = no_flags; }},
    {"(args->wait_count) is 65, must be 0 to 64", [](auto& x) { x.wait_count = 65; }},
    {"(args->wait[0]) is 0x8, must be aligned to 16 bytes", [](auto& x) { x.wait = odd_flags; }},
    {"(args->wait[1]) is", [](auto& x) { x.wait = same_flags(x.wait[0]), x.wait_count = 2; }},
    {"(args->limit_us) is -1", [](auto& x) { x.limit_us = -1; }},
    {"(args->error) is NULL, must point to a uint32_t", [](auto& x) { x.limit_us = 1; }},
    {"(args->d_count) is 65, must be 0 to 64", [](auto& x) { x.d_count = 65; }},
    {"(args->rows) is -1", [](auto& x) { x.rows = -1; }},
    {"(args->columns) is -1, must be 0 to 2^30", [](auto& x) { x.columns = -1; }},
    {"(args->type_part) is 4", [](auto& x) { x.type_part = static_cast<hgemm_type_t>(4); }},
    {"(args->type_d) is 0", [](auto& x) { x.type_d = static_cast<hgemm_type_t>(0); }},
    {"(args->ld_part) is 1, must be at least columns = 512", [](auto& x) { x.ld_part = 1; }},
    {"(args->ldd) is 511, must be at least columns = 512", [](auto& x) { x.ldd = 511; }},
    {"(args->part_count) is 0, must be 1 to 64", [](auto& x) { x.part_count = 0; }},
    {"(args->parts[0]) is NULL", [](auto& x) { x.parts = no_parts; }},
    {"(args->bias_type) is 7",
     [](auto& x) { x.bias = x.parts[0], x.bias_type = static_cast<hgemm_type_t>(7); }},
    {"(args->d) is NULL", [](auto& x) { x.d = nullptr; }},
    {"(args->raise_after_count) is 65", [](auto& x) { x.raise_after_count = 65; }},
};

struct WrongBlocks {
    int argument;
    const char* message;
    void (*spoil)(hgemm_args_t&, hgemm_blocks_t&);
};

const WrongBlocks wrong_blocks[] = {
    {3, "(blocks->size) is 1", [](auto&, auto& b) { b.size = 1; }},
    {3, "(blocks->rows) is 0, must be at least 1", [](auto&, auto& b) { b.rows = 0; }},
    {3, "(blocks->first) is 3, must be 0 to 2", [](auto&, auto& b) { b.first = 3; }},
    {3, "(blocks->limit_us) is -5", [](auto&, auto& b) { b.limit_us = -5; }},
    {2, "(args->batch_count) is 2, must be 1 in blocks", [](auto& g, auto&) { g.batch_count = 2; }},
    {2, "(args->b_array) is", [](auto& g, auto&) { g.b_array = no_parts; }},
    {2, "(args->uplo) is 121, must be 0 in blocks", [](auto& g, auto&) { g.uplo = HGEMM_UPPER; }},
    {2, "(args->gate.block) is 1, must be 0 in blocks", [](auto& g, auto&) { g.gate.block = 1; }},
    {2, "(args->m) is -1", [](auto& g, auto&) { g.m = -1; }},
    {2, "(args->lda) is 1", [](auto& g, auto&) { g.lda = 1; }},
};

void expect_refused(hgemm_status_t status, int argument, const char* message)
{
    EXPECT_EQ(status, HGEMM_STATUS_INVALID_ARGUMENT) << message;
    EXPECT_EQ(hgemm_last_error_argument(), argument) << message;
    EXPECT_NE(std::string(hgemm_last_error()).find(message), std::string::npos)
        << hgemm_last_error() << " instead of " << message;
}

}  // namespace

void check_exchange_refusals(Library& library)
{
    const Flags flags(library, 3);
    const Copy copy(library);
    for (const WrongExchange& wrong : wrong_exchanges) {
        hgemm_exchange_args_t args = default_exchange();
        args.raise = flags.array();
        args.raise_count = 1;
        args.wait = flags.array();
        args.wait_count = 1;
        copy.add_to(args);
        wrong.spoil(args);
        expect_refused(hgemm_exchange(library.handle(), &args), 2, wrong.message);
    }
    expect_refused(hgemm_exchange(library.handle(), nullptr), 2, "(args) is NULL");
    expect_refused(hgemm_read_error(library.handle(), nullptr), 2, "(error) is NULL");
    {
        const InMode in_mode(library, HGEMM_MODE_TREE);
        hgemm_exchange_args_t args = default_exchange();
        copy.add_to(args);
        args.part_count = 3;
        expect_refused(hgemm_exchange(library.handle(), &args), 2, "must be a power of two");
    }
    Trial trial(block_case(0), library.memory());
    trial.upload();
    for (const WrongBlocks& wrong : wrong_blocks) {
        hgemm_args_t args = trial.args();
        hgemm_blocks_t blocks;
        hgemm_blocks_init(&blocks, sizeof blocks);
        blocks.rows = 20;
        blocks.raise = flags.array();
        wrong.spoil(args, blocks);
        expect_refused(hgemm_gemm_blocks(library.handle(), &args, &blocks), wrong.argument, wrong.message);
    }
    trial.download();
    EXPECT_EQ(trial.judge_memory(true).message, "");
    flags.expect(0, 0);
    EXPECT_TRUE(copy.is_untouched());
}

}  // namespace hg::test
