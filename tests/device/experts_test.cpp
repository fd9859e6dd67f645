// Layers of experts in graphs, and rows that take several launches.
#include "../conformance.hpp"
#include "../experts_parts.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hg::test {
namespace {

class DeviceExperts : public testing::TestWithParam<const char*> {};

// Experts change between a graph's launches. So many choices are counted in a workspace.
TEST_P(DeviceExperts, graphs)
{
    NEEDS_BACKEND(GetParam());
    Cuda& cuda = *Cuda::get();
    const auto library = make(GetParam());
    ASSERT_EQ(hgemm_set_workspace_per_stream(library->handle(), size_t{64} << 20), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    const Stream stream;
    ASSERT_EQ(hgemm_set_stream(library->handle(), stream), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    const bool is_slow = thinning() > 1;
    for (const bool multiplies : is_slow ? std::vector<bool>{false} : std::vector<bool>{false, true}) {
        ExpertLayer layer(*library, {1200, 8, 40, 24, multiplies});
        CUgraphExec_st* const graph = cuda.capture(stream, [&] { layer.start(library->handle()); });
        for (uint64_t seed = 1; seed < (is_slow ? 3 : 6); ++seed) {
            layer.renew(seed);
            cuda.launch(graph, stream);
            cuda.wait(stream);
            layer.expect_right();
        }
        cuda.destroy(graph);
        layer.renew(7);
        layer.start(library->handle());
        cuda.wait(stream);
        layer.expect_right();
    }
}

// fp16 rows of so many columns that each token is served by a launch of its own; all elements of a row are
// the same.
class LongRows {
public:
    static constexpr int64_t tokens = 2, choices = 2, all_choices = tokens * choices,
                             columns = (int64_t{1} << 29) + 8;

    LongRows(Library& library, bool gathers)
        : library_(library), memory_(library.memory()), gathers_(gathers),
          rows_a_(gathers ? tokens : all_choices), rows_d_(gathers ? all_choices : tokens),
          a_(memory_, bytes_of_rows(rows_a_)), d_(memory_, bytes_of_rows(rows_d_)),
          weights_(memory_, sizeof weights), index_(memory_, sizeof row_of_choice)
    {
        for (int64_t i = 0; i < rows_a_; ++i)
            memory_.fill(a_.get<char>() + bytes_of_rows(i), byte_of(i), bytes_of_rows(1));
        memory_.fill(d_.get(), 0xff, bytes_of_rows(rows_d_));
        weights_.copy_in(weights);
        index_.copy_in(row_of_choice);
    }
    void expect_right(bool weighted)
    {
        hgemm_rows_args_t args = default_rows();
        args.tokens = tokens;
        args.choices = args.ldw = choices;
        args.columns = args.lda = args.ldd = columns;
        args.row_of_choice = index_.get<int32_t>();
        args.weights = weighted ? weights_.get() : nullptr;
        args.type_weights = HGEMM_F32;
        args.a = a_.get();
        args.d = d_.get();
        const auto function = gathers_ ? hgemm_gather_rows : hgemm_combine_rows;
        ASSERT_EQ(library_.wait(function(library_.handle(), &args)), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error() << library_.story();
        for (int64_t row = 0; row < rows_d_; ++row)
            for (const int64_t column : {int64_t{0}, columns / 2, columns - 1}) {
                uint16_t bits = 0;
                memory_.copy_out(&bits, d_.get<uint16_t>() + row * columns + column, sizeof bits);
                EXPECT_EQ(bits, wanted(row, weighted)) << "row " << row << " column " << column;
            }
    }

private:
    static constexpr float weights[all_choices] = {1, 2, 4, 8};
    static constexpr int32_t row_of_choice[all_choices] = {3, 0, -1, 1};
    static constexpr size_t bytes_of_rows(int64_t rows) { return static_cast<size_t>(rows * columns * 2); }
    static unsigned char byte_of(int64_t row) { return static_cast<unsigned char>(0x30 + row); }

    // The bits of all elements of a row of D. A row that no choice has keeps its own.
    uint32_t wanted(int64_t row, bool weighted) const
    {
        double sum = 0;
        bool is_written = !gathers_;
        for (int64_t choice = 0; choice < all_choices; ++choice) {
            const int64_t token = choice / choices, place = row_of_choice[choice];
            if (place < 0 || row != (gathers_ ? place : token))
                continue;
            const double element = decode(HGEMM_F16, 0x101u * byte_of(gathers_ ? token : place));
            sum += (weighted ? weights[choice] : 1) * element;
            is_written = true;
        }
        return is_written ? encode(HGEMM_F16, sum) : 0xffff;
    }

    Library& library_;
    Memory& memory_;
    bool gathers_;
    int64_t rows_a_, rows_d_;
    Block a_, d_, weights_, index_;
};

TEST_P(DeviceExperts, rows_in_several_launches)
{
    NEEDS_BACKEND(GetParam());
    NEEDS_MEMORY(16);
    const auto library = make(GetParam());
    for (const bool gathers : {false, true})
        for (const bool weighted : {false, true})
            LongRows(*library, gathers).expect_right(weighted);
}

// So many tokens of so many columns that a launch does not serve all. Each token has one element, in a
// column of its own, and all have one row.
TEST_P(DeviceExperts, dots_in_several_launches)
{
    NEEDS_BACKEND(GetParam());
    NEEDS_MEMORY(8);
    const auto library = make(GetParam());
    constexpr int64_t columns = int64_t{1} << 20, tokens = (1 << 10) + 77;
    constexpr auto bytes_of_row = static_cast<size_t>(columns) * sizeof(uint16_t);
    Memory& memory = library->memory();
    const Block a(memory, static_cast<size_t>(tokens) * bytes_of_row), b(memory, bytes_of_row);
    Block d(memory, static_cast<size_t>(tokens) * sizeof(float)),
        index(memory, static_cast<size_t>(tokens) * sizeof(int32_t));
    memory.fill(a.get(), 0, a.bytes());
    memory.fill(b.get(), 0x3c, b.bytes());
    memory.fill(d.get(), 0xff, d.bytes());
    memory.fill(index.get(), 0, index.bytes());
    const auto number = [](int64_t token) { return static_cast<double>(token % 100 - 50); };
    for (int64_t token = 0; token < tokens; ++token) {
        const auto bits = static_cast<uint16_t>(encode(HGEMM_F16, number(token)));
        memory.copy_in(a.get<uint16_t>() + token * columns + token * 937 % columns, &bits, sizeof bits);
    }
    hgemm_rows_args_t args = default_rows();
    args.tokens = tokens;
    args.choices = args.ldd = 1;
    args.columns = args.lda = args.ldb = columns;
    args.row_of_choice = index.get<int32_t>();
    args.a = a.get();
    args.b = b.get();
    args.d = d.get();
    args.type_d = HGEMM_F32;
    ASSERT_EQ(library->wait(hgemm_dot_rows(library->handle(), &args)), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error() << library->story();
    std::vector<float> results(static_cast<size_t>(tokens));
    d.copy_out(results.data());
    for (int64_t token = 0; token < tokens; ++token)
        ASSERT_EQ(results[static_cast<size_t>(token)], number(token) * decode(HGEMM_F16, 0x3c3c))
            << "token " << token;
}

INSTANTIATE_TEST_SUITE_P(, DeviceExperts, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
