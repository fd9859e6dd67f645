// The handlers by call frames that the test makes, on the host and on a GPU, which may be the virtual one.
#include "arrays.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

struct Case {
    Dims batch_a, batch_b;  // as many
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    bool bias = false;  // and ReLU and aux
    Dims batch_c = {};
    float beta = 0;  // not 0: C is added, and alpha is -2
    bool symmetric = false;
};

// One product, held against sums of integers.
class Product {
public:
    Product(Cuda* cuda, CUstream_st* stream, hgemm_type_t type, hgemm_type_t type_d, const Case& c)
        : a(cuda, type, with(c.batch_a, c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k)),
          b(cuda, type, with(c.batch_b, c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n)),
          c(cuda, type, with(c.batch_c, c.m, c.n)),
          bias(cuda, HGEMM_F32, with_one(Dims(c.batch_a.size(), 1), c.n)),
          d(cuda, type_d, with(batch(c), c.m, c.n)), aux(cuda, type_d, d.dims),
          workspace(cuda, HGEMM_F16, {cuda ? int64_t{workspace_bytes} : 0}), frame(stream), case_(c)
    {
        a.fill(1);
        b.fill(2);
        bias.fill(3);
        this->c.fill(4);
        frame.set("transpose_a", c.transpose_a).set("transpose_b", c.transpose_b);
        frame.argument(xla_type(type), a.data(), a.dims).argument(xla_type(type), b.data(), b.dims);
        frame.result(xla_type(type_d), d.data(), d.dims);
        frame.set("symmetric", c.symmetric);
        if (c.beta != 0) {
            frame.argument(xla_type(type), this->c.data(), this->c.dims);
            frame.set("alpha", -2.0f).set("beta", c.beta);
        }
        if (c.bias) {
            frame.argument(xla::type_f32, bias.data(), bias.dims).set("activation", HGEMM_ACTIVATION_RELU);
            frame.result(xla_type(type_d), aux.data(), aux.dims);
        }
        // U8, as little aligned as XLA's are
        frame.result(6, static_cast<char*>(workspace.data()) + 128, {cuda ? int64_t{workspace_bytes} : 0});
    }

    void check()
    {
        d.get();
        aux.get();
        const int64_t size = case_.m * case_.n, batches = size ? count(d.dims) / size : 0;
        for (int64_t i = 0; i < batches * size; ++i) {
            const double sum = exact(i / size, i % size / case_.n, i % case_.n);
            ASSERT_EQ(d.value(i), case_.bias ? std::max(0.0, sum) : sum) << i;
            ASSERT_EQ(case_.bias ? aux.value(i) : sum, sum) << i;
        }
    }

    static Dims with_one(Dims dims, int64_t last)
    {
        dims.push_back(last);
        return dims;
    }
    static Dims with(const Dims& batch, int64_t rows, int64_t columns)
    {
        return with_one(with_one(batch, rows), columns);
    }

    Array a, b, c, bias, d, aux, workspace;
    Frame frame;

private:
    static Dims batch(const Case& c)
    {
        Dims dims = c.batch_a;
        for (size_t i = 0; i < dims.size(); ++i)
            dims[i] = c.batch_a[i] == 1 ? c.batch_b[i] : c.batch_a[i];
        return dims;
    }
    // Of an operand's batch the matrix that the i-th of D is made of.
    int64_t matrix(const Dims& own, int64_t i) const
    {
        int64_t index = 0, step = 1;
        for (size_t axis = own.size(); axis-- > 0; i /= d.dims[axis]) {
            index += own[axis] == 1 ? 0 : i % d.dims[axis] * step;
            step *= own[axis];
        }
        return index;
    }
    double exact(int64_t i, int64_t row, int64_t column)
    {
        if (case_.symmetric && row > column)
            std::swap(row, column);
        const Case& c = case_;
        const int64_t first_a = matrix(c.batch_a, i) * c.m * c.k,
                      first_b = matrix(c.batch_b, i) * c.k * c.n;
        double sum = 0;
        for (int64_t l = 0; l < c.k; ++l)
            sum += a.value(first_a + (c.transpose_a ? l * c.m + row : row * c.k + l)) *
                   b.value(first_b + (c.transpose_b ? column * c.k + l : l * c.n + column));
        if (c.beta != 0)
            sum = -2 * sum + c.beta * this->c.value((matrix(c.batch_c, i) * c.m + row) * c.n + column);
        return c.bias ? sum + bias.value(column) : sum;
    }

    Case case_;
};

std::vector<Case> cases()
{
    std::vector<Case> list = {{{}, {}, 0, 5, 7, false, false},
                              {{}, {}, 5, 0, 7, false, false},
                              {{}, {}, 5, 7, 0, false, false},
                              {{}, {}, 5, 7, 0, false, false, true},
                              {{0}, {1}, 5, 7, 3, false, false}};
    for (int turned = 0; turned < 4; ++turned) {
        const bool ta = turned & 1, tb = turned & 2;
        list.push_back({{}, {}, 33, 17, 65, ta, tb});
        list.push_back({{}, {}, 64, 40, 32, ta, tb, true});
        list.push_back({{3}, {3}, 5, 9, 16, ta, tb});
        list.push_back({{3}, {1}, 5, 9, 16, ta, tb, true});
        list.push_back({{1}, {3}, 5, 9, 16, ta, tb});
        list.push_back({{2, 1}, {1, 3}, 4, 6, 5, ta, tb, true});
        list.push_back({{2, 1, 3, 1}, {1, 2, 3, 2}, 2, 3, 4, ta, tb});
        list.push_back({{}, {}, 33, 17, 25, ta, tb, false, {}, 3});
        list.push_back({{3}, {1}, 5, 9, 16, ta, tb, false, {3}, 3});
        list.push_back({{3}, {1}, 5, 9, 16, ta, tb, false, {1}, 3});
        list.push_back({{2, 1}, {1, 3}, 4, 6, 5, ta, tb, false, {2, 3}, 3});
        list.push_back({{2, 3}, {2, 3}, 4, 6, 5, ta, tb, false, {1, 3}, 3});
        list.push_back({{}, {}, 40, 40, 24, ta, tb, false, {}, 0, true});
        list.push_back({{2, 3}, {1, 3}, 12, 12, 9, ta, tb, false, {2, 1}, 3, true});
        list.push_back({{3}, {1}, 6, 6, 8, ta, tb, false, {3}, 3, true});
    }
    return list;
}

void multiply_all(Cuda* cuda, CUstream_st* stream, xla::Error* (*handler)(const xla::CallFrame*))
{
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (const hgemm_type_t type_d : {type, HGEMM_F32})
            for (const Case& c : cases()) {
                SCOPED_TRACE(testing::Message()
                             << c.m << " x " << c.n << " x " << c.k << ", batches " << c.batch_a.size()
                             << ", transposes " << c.transpose_a << c.transpose_b);
                Product product(cuda, stream, type, type_d, c);
                expect_ran(product.frame.call(handler));
                product.check();
            }
}

const Case plain{{}, {}, 8, 8, 8, false, false};

TEST(XlaHost, Products) { multiply_all(nullptr, nullptr, hgemm_xla_matmul_host); }

// In a process of its own, whose first handle reads HGEMM_LOG.
TEST(XlaHostDeathTest, ASharedMatrixMakesOneProduct)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto run = [](const Case& c) {
        setenv("HGEMM_LOG", "plan", 1);
        Product product(nullptr, nullptr, HGEMM_F16, HGEMM_F16, c);
        std::exit(product.frame.call(hgemm_xla_matmul_host) ? 1 : 0);
    };
    const Case rows{{3}, {1}, 6, 6, 8, false, true}, columns{{3}, {1}, 6, 6, 8, true, true};
    const Case symmetric{{3}, {1}, 6, 6, 8, false, true, false, {}, 0, true};
    EXPECT_EXIT(run(rows), testing::ExitedWithCode(0), R"(D\[18\]\[6\].* batch=1 )");
    EXPECT_EXIT(run(columns), testing::ExitedWithCode(0), R"(D\[6\]\[6\].* batch=3 )");
    EXPECT_EXIT(run(symmetric), testing::ExitedWithCode(0), R"(D\[6\]\[6\].* batch=3 )");
}

TEST(XlaHost, Metadata)
{
    for (const auto& [minor, answer] : {std::pair{1, 1}, {3, 3}, {4, 4}, {9, 4}}) {
        xla::Metadata metadata{};
        metadata.struct_size = sizeof metadata;
        xla::MetadataExtension extension{{sizeof extension, xla::extension_metadata, nullptr}, &metadata};
        Frame frame;
        frame.extensions = &extension.base;
        frame.api.version.minor = minor;
        expect_ran(frame.call(hgemm_xla_matmul_host));
        EXPECT_EQ(metadata.api_version.major, 0);
        EXPECT_EQ(metadata.api_version.minor, answer);
        EXPECT_EQ(metadata.traits, xla::trait_command_buffer_compatible);
    }
}

TEST(XlaHost, OtherInterfacesAreRefused)
{
    const auto refused = [](const std::function<void(Frame&)>& change, const std::string& words) {
        Product product(nullptr, nullptr, HGEMM_F16, HGEMM_F16, plain);
        change(product.frame);
        expect_refused(product.frame.call(hgemm_xla_matmul_cuda), xla::code_failed_precondition, words);
    };
    refused([](Frame& frame) { frame.api.version.major = 1; }, "this is 1.4");
    refused([](Frame& frame) { frame.api.struct_size -= sizeof(void*); }, "JAX 0.6.2 or newer is wanted");
    refused([](Frame& frame) { frame.stage = 0; }, "where XLA executes");
}

TEST(XlaHost, WrongArrays)
{
    const auto refused = [](const std::string& words, int type_b, Dims a, Dims b, Dims d) {
        std::vector<char> memory(4096);
        Frame frame;
        frame.argument(xla::type_f16, memory.data(), std::move(a))
            .argument(type_b, memory.data(), std::move(b));
        frame.result(xla::type_f16, memory.data(), std::move(d)).result(6, nullptr, {0});
        expect_refused(frame.call(hgemm_xla_matmul_host), xla::code_invalid_argument, words);
    };
    refused("b: a and b", xla::type_bf16, {4, 5}, {5, 6}, {4, 6});
    refused("b: its elements", 12, {4, 5}, {5, 6}, {4, 6});
    refused("b: its shape", xla::type_f16, {4, 5}, {4, 6}, {4, 6});
    refused("a: its shape", xla::type_f16, {3, 5}, {5, 6}, {4, 6});
    refused("a: must have as many", xla::type_f16, {4, 5}, {1, 5, 6}, {1, 4, 6});
    refused("a: its leading", xla::type_f16, {2, 4, 5}, {3, 5, 6}, {3, 4, 6});
    refused("d: has 1", xla::type_f16, {4}, {4}, {4});
    refused("overlaps args->a", xla::type_f16, {4, 4}, {4, 4}, {4, 4});
}

TEST(XlaHost, WrongC)
{
    const auto refused = [](const std::string& words, Dims dims, const Case& wrong) {
        Product product(nullptr, nullptr, HGEMM_F16, HGEMM_F16, wrong);
        if (!dims.empty())
            product.frame.argument(xla::type_f16, product.c.data(), std::move(dims));
        expect_refused(product.frame.call(hgemm_xla_matmul_host), xla::code_invalid_argument, words);
    };
    refused("c: its shape", {8, 7}, plain);
    refused("bias: its shape", {1, 8, 8}, plain);
    refused("c: its leading", {2, 8, 8}, {{3}, {3}, 8, 8, 8, false, false});
    refused("args->uplo", {}, {{}, {}, 8, 7, 8, false, false, false, {}, 0, true});
    refused("args->uplo", {}, {{}, {}, 8, 8, 8, false, false, true, {}, 0, true});
    Product product(nullptr, nullptr, HGEMM_F16, HGEMM_F16, plain);
    product.frame.set("beta", 1.0f);
    expect_refused(product.frame.call(hgemm_xla_matmul_host), xla::code_invalid_argument, "args->c");
}

TEST(XlaHost, BatchInvariantProducts)
{
    Product product(nullptr, nullptr, HGEMM_F16, HGEMM_F16, plain);
    product.frame.set("batch_invariant", 1);
    expect_ran(product.frame.call(hgemm_xla_matmul_host));
    product.check();
}

// The first test: the handle is created while the stream is recorded, as XLA may do.
TEST_F(DeviceXla, AGraphFromTheFirstCallOn)
{
    Product product(cuda, stream, HGEMM_BF16, HGEMM_BF16, {{}, {}, 40, 24, 96, false, true, true});
    CUgraphExec_st* const graph =
        cuda->capture(stream, [&] { expect_ran(product.frame.call(hgemm_xla_matmul_cuda)); });
    for (uint64_t seed = 5; seed < 7; ++seed) {
        product.a.fill(seed);
        cuda->launch(graph, other);
        product.check();
    }
    cuda->destroy(graph);
}

TEST_F(DeviceXla, Products) { multiply_all(cuda, stream, hgemm_xla_matmul_cuda); }

TEST_F(DeviceXla, BitsOfARowWithAnyNumberOfRows)
{
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16}) {
        const auto rows = [&](int64_t m, bool as_batch) {
            const Case c =
                as_batch ? Case{{m}, {1}, 1, 72, 200, false, true} : Case{{}, {}, m, 72, 200, false, true};
            Product product(cuda, stream, type, type, c);
            product.a.fill_normal(7);
            product.b.fill_normal(8);
            product.frame.set("batch_invariant", 1);
            expect_ran(product.frame.call(hgemm_xla_matmul_cuda));
            return product.d.get();
        };
        const std::vector<char> whole = rows(70, false);
        for (int64_t m = 1; m < 70; m += m < 10 ? 1 : 9) {
            const std::vector<char> part = rows(m, m % 2 == 0);
            EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << m << " rows";
        }
    }
}

TEST_F(DeviceXla, NeitherHandlesNorMemoryFromTheSecondCallOn)
{
    Product product(cuda, stream, HGEMM_F16, HGEMM_F16, {{}, {}, 16, 512, 640, false, false});
    expect_ran(product.frame.call(hgemm_xla_matmul_cuda));
    cuda->wait();
    const size_t before = cuda->free_bytes();
    int lines = 0;  // of the log of handles that are created from now on
    const hgemm_logger_t count_line = [](void* counter, const char*) { ++*static_cast<int*>(counter); };
    ASSERT_EQ(hgemm_set_logger(HGEMM_LOG_PLAN, count_line, &lines), HGEMM_STATUS_SUCCESS);
    for (CUstream_st* each : {stream, other, stream}) {
        product.frame.context.stream = each;
        expect_ran(product.frame.call(hgemm_xla_matmul_cuda));
    }
    EXPECT_EQ(cuda->free_bytes(), before);
    EXPECT_EQ(lines, 0);
    ASSERT_EQ(hgemm_set_logger(HGEMM_LOG_OFF, nullptr, nullptr), HGEMM_STATUS_SUCCESS);
    product.check();
}

TEST_F(DeviceXla, Threads)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, mine = i % 2 ? stream : other] {
            cuda->make_current(cuda->context());
            Product product(cuda, mine, HGEMM_F16, HGEMM_F16, {{2}, {1}, 24, 32, 64, false, false, true});
            for (int call = 0; call < 5; ++call)
                expect_ran(product.frame.call(hgemm_xla_matmul_cuda));
            product.check();
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST_F(DeviceXla, Refusals)
{
    Product device(cuda, stream, HGEMM_F16, HGEMM_F16, plain);
    device.frame.context.device = 99;
    expect_refused(device.frame.call(hgemm_xla_matmul_cuda), xla::code_internal, "NO_DEVICE");
    Product silent(cuda, stream, HGEMM_F16, HGEMM_F16, plain);
    silent.frame.api.stream_get = [](xla::StreamGetArgs*) { return new xla::Error{13, "no stream"}; };
    expect_refused(silent.frame.call(hgemm_xla_matmul_cuda), xla::code_internal, "which stream");
}

}  // namespace
}  // namespace hg::test
