// The handlers of grouped products by call frames that the test makes, on the host and on a GPU.
#include "arrays.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

struct Groups {
    Dims batch_a, batch_b, batch_ends;  // as many
    int64_t rows, columns, n;           // of A; of the result
    std::vector<int32_t> ends;          // for each index of batch_ends
    bool of_k = false, transpose_b = false;
};

Dims joined(Dims first, const Dims& last)
{
    first.insert(first.end(), last.begin(), last.end());
    return first;
}

// Grouped products, held against sums of integers.
class GroupedProduct {
public:
    GroupedProduct(Cuda* cuda, CUstream_st* stream, hgemm_type_t type, hgemm_type_t type_d, const Groups& g)
        : groups(static_cast<int64_t>(g.ends.size()) / std::max<int64_t>(1, count(g.batch_ends))),
          a(cuda, type, joined(g.batch_a, {g.rows, g.columns})),
          b(cuda, type, joined(g.batch_b, dims_of_b(g, groups))),
          d(cuda, type_d, joined(batch(g), g.of_k ? Dims{groups, g.columns, g.n} : Dims{g.rows, g.n})),
          ends(cuda, HGEMM_F32, joined(g.batch_ends, {groups})),
          workspace(cuda, HGEMM_F16, {cuda ? int64_t{workspace_bytes} : 0}), frame(stream), groups_(g)
    {
        a.fill(1);
        b.fill(2);
        d.fill(3);
        set_ends(g.ends);
        for (int64_t i = 0; i < count(d.dims); ++i)
            before_.push_back(d.value(i));
        frame.set("of_k", g.of_k).set("transpose_b", g.transpose_b);
        frame.argument(xla_type(type), a.data(), a.dims).argument(xla_type(type), b.data(), b.dims);
        frame.argument(xla::type_s32, ends.data(), ends.dims);
        frame.result(xla_type(type_d), d.data(), d.dims);
        frame.result(6, static_cast<char*>(workspace.data()) + 128, {cuda ? int64_t{workspace_bytes} : 0});
    }

    void set_ends(const std::vector<int32_t>& values)
    {
        groups_.ends = values;
        ends.assign(values.data());
    }

    void check()
    {
        std::vector<double> want = before_;  // which rows of no group keep
        const int64_t batches = count(batch(groups_));
        for (int64_t i = 0; i < batches; ++i)
            for (int64_t group = 0; group < groups; ++group)
                groups_.of_k ? add_up_k(want.data(), i, group) : add_up_rows(want.data(), i, group);
        d.get();
        for (size_t i = 0; i < want.size(); ++i)
            ASSERT_EQ(d.value(static_cast<int64_t>(i)), want[i]) << i;
    }

    const int64_t groups;
    Array a, b, d, ends, workspace;
    Frame frame;

private:
    static Dims dims_of_b(const Groups& g, int64_t groups)
    {
        if (g.of_k)
            return {g.rows, g.n};
        return g.transpose_b ? Dims{groups, g.n, g.columns} : Dims{groups, g.columns, g.n};
    }
    static Dims batch(const Groups& g)
    {
        Dims dims = g.batch_a;
        for (size_t i = 0; i < dims.size(); ++i)
            dims[i] = std::max({g.batch_a[i], g.batch_b[i], g.batch_ends[i]});
        return dims;
    }
    // Of an array's batch the index that the i-th of D is made of.
    int64_t index(const Dims& own, int64_t i) const
    {
        int64_t found = 0, step = 1;
        for (size_t axis = own.size(); axis-- > 0; i /= d.dims[axis]) {
            found += own[axis] == 1 ? 0 : i % d.dims[axis] * step;
            step *= own[axis];
        }
        return found;
    }
    std::pair<int64_t, int64_t> range(int64_t i, int64_t group) const
    {
        const auto* const own = groups_.ends.data() + index(groups_.batch_ends, i) * groups;
        return {group == 0 ? 0 : own[group - 1], own[group]};
    }
    double value_a(int64_t i, int64_t row, int64_t column)
    {
        return a.value((index(groups_.batch_a, i) * groups_.rows + row) * groups_.columns + column);
    }

    void add_up_rows(double* want, int64_t i, int64_t group)
    {
        const Groups& g = groups_;
        const int64_t matrix = (index(g.batch_b, i) * groups + group) * g.columns * g.n;
        const auto [first, last] = range(i, group);
        for (int64_t row = first; row < last; ++row)
            for (int64_t column = 0; column < g.n; ++column) {
                double sum = 0;
                for (int64_t l = 0; l < g.columns; ++l)
                    sum += value_a(i, row, l) *
                           b.value(matrix + (g.transpose_b ? column * g.columns + l : l * g.n + column));
                want[(i * g.rows + row) * g.n + column] = sum;
            }
    }
    void add_up_k(double* want, int64_t i, int64_t group)
    {
        const Groups& g = groups_;
        const auto [first, last] = range(i, group);
        for (int64_t m = 0; m < g.columns; ++m)
            for (int64_t column = 0; column < g.n; ++column) {
                double sum = 0;
                for (int64_t row = first; row < last; ++row)
                    sum +=
                        value_a(i, row, m) * b.value((index(g.batch_b, i) * g.rows + row) * g.n + column);
                want[((i * groups + group) * g.columns + m) * g.n + column] = sum;
            }
    }

    Groups groups_;
    std::vector<double> before_;
};

std::vector<Groups> grouped_cases()
{
    std::vector<Groups> list;
    for (int form = 0; form < 3; ++form) {
        const bool of_k = form == 2, turned = form == 1;
        list.push_back({{}, {}, {}, 33, 17, 24, {7, 7, 27, 33}, of_k, turned});
        list.push_back({{}, {}, {}, 40, 64, 32, {0, 9, 30}, of_k, turned});
        list.push_back({{}, {}, {}, 0, 8, 8, {0, 0}, of_k, turned});
        list.push_back({{}, {}, {}, 8, 0, 8, {3, 8}, of_k, turned});
        list.push_back({{}, {}, {}, 8, 8, 0, {3, 8}, of_k, turned});
        list.push_back({{}, {}, {}, 8, 8, 8, {}, of_k, turned});
        list.push_back({{2}, {2}, {2}, 9, 8, 6, {2, 9, 4, 4}, of_k, turned});
        list.push_back({{2, 1}, {1, 3}, {1, 3}, 9, 8, 6, {2, 9, 4, 4, 0, 5}, of_k, turned});
        list.push_back({{1}, {1}, {3}, 9, 8, 6, {2, 9, 4, 4, 0, 5}, of_k, turned});
    }
    return list;
}

void multiply_all_groups(Cuda* cuda, CUstream_st* stream, xla::Error* (*handler)(const xla::CallFrame*))
{
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (const hgemm_type_t type_d : {type, HGEMM_F32})
            for (const Groups& g : grouped_cases()) {
                SCOPED_TRACE(testing::Message() << g.rows << " x " << g.columns << " x " << g.n
                                                << ", batches " << g.batch_a.size() << ", of k " << g.of_k
                                                << ", B transposed " << g.transpose_b);
                GroupedProduct product(cuda, stream, type, type_d, g);
                expect_ran(product.frame.call(handler));
                product.check();
            }
}

TEST(XlaHost, GroupedProducts) { multiply_all_groups(nullptr, nullptr, hgemm_xla_grouped_host); }

TEST(XlaHost, EndsBehindTheLastRow)
{
    for (const bool of_k : {false, true}) {
        GroupedProduct product(nullptr, nullptr, HGEMM_F16, HGEMM_F16, {{}, {}, {}, 8, 8, 8, {3, 9}, of_k});
        expect_refused(product.frame.call(hgemm_xla_grouped_host), xla::code_invalid_argument,
                       "has 3 and 9 for group 1");
    }
}

TEST(XlaHost, WrongArraysOfGroups)
{
    const auto refused = [](const std::string& words, bool of_k, Dims a, Dims b, Dims ends, Dims d,
                            int type_ends = xla::type_s32, bool transpose_b = false) {
        std::vector<char> memory(4096);
        Frame frame;
        frame.set("of_k", of_k).set("transpose_b", transpose_b);
        frame.argument(xla::type_f16, memory.data(), std::move(a))
            .argument(xla::type_f16, memory.data(), std::move(b))
            .argument(type_ends, memory.data(), std::move(ends));
        frame.result(xla::type_f16, memory.data(), std::move(d)).result(6, nullptr, {0});
        expect_refused(frame.call(hgemm_xla_grouped_host), xla::code_invalid_argument, words);
    };
    refused("ends: its elements", false, {4, 5}, {2, 5, 6}, {2}, {4, 6}, xla::type_f32);
    refused("ends: has 0", false, {4, 5}, {2, 5, 6}, {}, {4, 6});
    refused("ends: its leading", false, {3, 4, 5}, {3, 2, 5, 6}, {2, 2}, {3, 4, 6});
    refused("a: has 3", false, {1, 4, 5}, {2, 5, 6}, {2}, {4, 6});
    refused("a: has 2147483648 rows", false, {int64_t{1} << 31, 5}, {2, 5, 6}, {2}, {4, 6});
    refused("b: has 2", false, {4, 5}, {5, 6}, {2}, {4, 6});
    refused("b: its shape", false, {4, 5}, {3, 5, 6}, {2}, {4, 6});
    refused("b: its shape", false, {4, 5}, {2, 5, 6}, {2}, {4, 6}, xla::type_s32, true);
    refused("d: has 3", false, {4, 5}, {2, 5, 6}, {2}, {1, 4, 6});
    refused("d: its shape", false, {4, 5}, {2, 5, 6}, {2}, {3, 6});
    refused("b: has 3", true, {4, 5}, {2, 4, 6}, {2}, {2, 5, 6});
    refused("b: its shape", true, {4, 5}, {5, 6}, {2}, {2, 5, 6});
    refused("d: its shape", true, {4, 5}, {4, 6}, {2}, {3, 5, 6});
    refused("transpose_b: ", true, {4, 5}, {4, 6}, {2}, {2, 5, 6}, xla::type_s32, true);
}

TEST_F(DeviceXla, GroupedProducts) { multiply_all_groups(cuda, stream, hgemm_xla_grouped_cuda); }

// The sizes are those that lie in memory when the graph runs.
TEST_F(DeviceXla, AGraphOfGroups)
{
    for (const bool of_k : {false, true}) {
        GroupedProduct product(cuda, stream, HGEMM_BF16, HGEMM_F32,
                               {{}, {}, {}, 40, 24, 32, {9, 40}, of_k});
        CUgraphExec_st* const graph =
            cuda->capture(stream, [&] { expect_ran(product.frame.call(hgemm_xla_grouped_cuda)); });
        for (const int32_t end : {9, 0, 40}) {
            product.set_ends({end, 40});
            cuda->launch(graph, other);
            product.check();
        }
        cuda->destroy(graph);
    }
}

TEST_F(DeviceXla, BitsOfARowInAGroupOfAnySize)
{
    const auto rows = [&](int64_t m, int32_t end) {
        GroupedProduct product(cuda, stream, HGEMM_F16, HGEMM_F16, {{}, {}, {}, m, 200, 72, {end}});
        product.a.fill_normal(7);
        product.b.fill_normal(8);
        product.frame.set("batch_invariant", 1);
        expect_ran(product.frame.call(hgemm_xla_grouped_cuda));
        return product.d.get();
    };
    const std::vector<char> whole = rows(70, 70);
    for (int32_t m = 1; m < 70; m += m < 10 ? 1 : 9)
        for (const int64_t all : {int64_t{m}, int64_t{70}}) {
            const std::vector<char> part = rows(all, m);
            EXPECT_TRUE(std::equal(part.begin(), part.begin() + m * 72 * 2, whole.begin())) << m << " rows";
        }
}

}  // namespace
}  // namespace hg::test
