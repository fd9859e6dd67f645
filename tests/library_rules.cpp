#include "library_rules.hpp"

#include "conformance.hpp"
#include "trial.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace hg::test {
namespace {

// A vector of `length` elements as BLAS stores it: with a negative increment, backwards.
class Vector {
public:
    Vector(Memory& memory, hgemm_type_t type, int64_t length, int64_t increment)
        : buffer(memory, type, {length, 1, std::abs(increment), 1, 0}, 3, Guard::Pads), length_(length),
          increment_(increment)
    {
    }
    double get(int64_t i) const { return buffer.get(0, line(i), 0); }
    void set(int64_t i, double value) { buffer.set(0, line(i), 0, value); }
    Buffer buffer;

private:
    int64_t line(int64_t i) const { return increment_ > 0 ? i : length_ - 1 - i; }
    int64_t length_, increment_;
};

void check_gemv_case(Library& library, GemvArgs g, uint64_t seed)
{
    const bool transposed = g.trans != HGEMM_NO_TRANS;
    const int64_t nx = transposed ? g.m : g.n, ny = transposed ? g.n : g.m;
    const auto integer = [seed](int64_t index) {
        return Trial::draw(Data::Integers, seed, static_cast<uint64_t>(index));
    };
    Memory& memory = library.memory();
    Buffer a(memory, g.type, {g.n, g.m, g.m + 3, 1, 0}, 1, Guard::Pads);
    Vector x(memory, g.type, nx, g.incx), y(memory, g.type, ny, g.incy);
    for (int64_t j = 0; j < g.n; ++j)
        for (int64_t i = 0; i < g.m; ++i)
            a.set(0, j, i, integer(j * 1000 + i));
    for (int64_t i = 0; i < nx; ++i)
        x.set(i, integer(-1 - i));
    std::vector<double> expected;
    for (int64_t i = 0; i < ny; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < nx; ++j)
            sum += (transposed ? a.get(0, i, j) : a.get(0, j, i)) * x.get(j);
        y.set(i, g.beta == 0 ? NAN : integer(1'000'000 + i));
        expected.push_back(round_to(g.type, g.alpha * sum + (g.beta == 0 ? 0 : g.beta * y.get(i))));
    }
    for (Buffer* buffer : {&a, &x.buffer, &y.buffer})
        buffer->upload();
    g.a = a.ptr();
    g.lda = a.extent().ld;
    g.x = x.buffer.ptr();
    g.y = y.buffer.ptr();
    ASSERT_EQ(library.gemv(g), HGEMM_STATUS_SUCCESS) << library.story();
    for (Buffer* buffer : {&a, &x.buffer, &y.buffer})
        buffer->download();
    EXPECT_EQ(a.damage(true) + x.buffer.damage(true) + y.buffer.damage(false), "");
    for (int64_t i = 0; i < ny; ++i)
        ASSERT_EQ(y.get(i), expected[static_cast<size_t>(i)]) << "y[" << i << "]";
}

GemmCase tall_case(hgemm_type_t type)
{
    GemmCase g;
    g.type_ab = g.type_c = g.type_d = type;
    g.aligned = type == HGEMM_F16;
    g.transa = HGEMM_TRANS;
    g.m = 700;
    g.n = 301;
    g.k = 259;
    g.beta = -1;
    g.data = Data::Normal;
    return g;
}

// The results of one run of the case.
std::vector<double> results(Library& library, const GemmCase& g)
{
    Trial trial(g, library.memory());
    trial.upload();
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << g.print() << ": " << library.story();
    trial.download();
    return trial.results(g.m);
}

// A setting may choose another kernel or another number of slices, and with it other bits: they are right,
// and the same each time.
void expect_right(Library& library, const GemmCase& g)
{
    Trial trial(g, library.memory());
    trial.upload();
    EXPECT_EQ(library.run(trial.args()), HGEMM_STATUS_SUCCESS) << g.print() << ": " << library.story();
    trial.download();
    EXPECT_EQ(trial.judge(library.arithmetic()).message, "");
    EXPECT_EQ(results(library, g), results(library, g));
}

// fp16 matrices in an allocation of which only their elements are touched.
class FarMatrix {
public:
    FarMatrix(Memory& memory, int64_t ld, int64_t stride, int64_t batch)
        : memory_(memory), ld_(ld), stride_(stride),
          block_(memory, static_cast<size_t>((batch - 1) * stride + (size - 1) * ld + size) * 2,
                 Guard::Fence)
    {
    }
    static constexpr int64_t size = 70;  // lines, and elements of a line

    int64_t ld() const { return ld_; }
    int64_t stride() const { return stride_; }
    uint16_t* ptr() const { return block_.get<uint16_t>(); }
    // Puts the result of value(line, position) everywhere.
    void put(int64_t z, const std::function<double(int64_t, int64_t)>& value)
    {
        std::vector<uint16_t> line(size);
        for (int64_t i = 0; i < size; ++i) {
            for (int64_t j = 0; j < size; ++j)
                store(HGEMM_F16, &line[static_cast<size_t>(j)], value(i, j));
            memory_.copy_in(ptr() + z * stride_ + i * ld_, line.data(), size * 2);
        }
    }
    Dense get(int64_t z) const
    {
        Dense values(size, size);
        std::vector<uint16_t> line(size);
        for (int64_t i = 0; i < size; ++i) {
            memory_.copy_out(line.data(), ptr() + z * stride_ + i * ld_, size * 2);
            for (int64_t j = 0; j < size; ++j)
                values(i, j) = decode(HGEMM_F16, line[static_cast<size_t>(j)]);
        }
        return values;
    }

private:
    Memory& memory_;
    int64_t ld_, stride_;
    Block block_;
};

void check_far_case(Library& library, hgemm_op_t trans, int64_t lda, int64_t ldb, int64_t ldd,
                    int64_t stride, int64_t batch)
{
    constexpr int64_t size = FarMatrix::size;
    FarMatrix a(library.memory(), lda, stride, batch), b(library.memory(), ldb, stride, batch),
        d(library.memory(), ldd, stride, batch);
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;
    args.transa = args.transb = trans;
    args.m = args.n = args.k = size;
    args.batch_count = batch;
    args.a = a.ptr();
    args.b = b.ptr();
    args.d = d.ptr();
    args.lda = lda;
    args.ldb = ldb;
    args.ldd = ldd;
    args.stride_a = args.stride_b = args.stride_d = stride;
    const auto integer = [](uint64_t seed, int64_t i, int64_t j) {
        return Trial::draw(Data::Integers, seed, static_cast<uint64_t>(i * size + j));
    };
    for (int64_t z = 0; z < batch; ++z) {
        const auto seed = static_cast<uint64_t>(z);
        a.put(z, [&](int64_t i, int64_t j) { return integer(2 * seed, i, j); });
        b.put(z, [&](int64_t i, int64_t j) { return integer(2 * seed + 1, i, j); });
        d.put(z, [](auto...) { return NAN; });
    }
    ASSERT_EQ(library.run(args), HGEMM_STATUS_SUCCESS) << library.story();
    for (int64_t z = 0; z < batch; ++z) {
        const Dense left = a.get(z), right = b.get(z), result = d.get(z);
        const bool t = trans == HGEMM_TRANS;
        for (int64_t i = 0; i < size; ++i)
            for (int64_t j = 0; j < size; ++j) {
                double sum = 0;
                for (int64_t p = 0; p < size; ++p)
                    sum += (t ? left(p, i) : left(i, p)) * (t ? right(j, p) : right(p, j));
                ASSERT_EQ(result(i, j), sum) << "problem " << z << " row " << i << " column " << j;
            }
    }
}

}  // namespace

void check_gemv(Library& library)
{
    Random random(31);
    for (const hgemm_type_t type : halves)
        for (const hgemm_op_t trans : ops)
            for (const int64_t incx : {1, 2, -1, -3})
                for (const int64_t incy : {1, 5, -1, -2})
                    for (const float beta : {0.0f, 1.0f, -2.0f}) {
                        GemvArgs g;
                        g.type = type;
                        g.trans = trans;
                        g.m = 1 + random.below(200);
                        g.n = 1 + random.below(200);
                        g.incx = incx;
                        g.incy = incy;
                        g.alpha = random.one_in(3) ? -0.5f : 1;
                        g.beta = beta;
                        SCOPED_TRACE(testing::Message()
                                     << name_of(type) << (trans == HGEMM_TRANS ? " t" : " n") << " m "
                                     << g.m << " n " << g.n << " incx " << incx << " incy " << incy
                                     << " beta " << beta);
                        check_gemv_case(library, g, random.bits());
                        if (testing::Test::HasFatalFailure())
                            return;
                    }
}

void check_workspace(Library& library)
{
    for (const hgemm_type_t type : halves) {
        const GemmCase g = tall_case(type);
        const std::vector<double> expected = results(library, g);
        Trial trial(g, library.memory());
        size_t bytes = ~size_t{0};
        ASSERT_EQ(hgemm_workspace_size(library.handle(), &trial.args(), &bytes), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        ASSERT_LT(bytes, size_t{1} << 32);
        if (bytes == 0)
            continue;
        // Aligned as the interface demands, with the fence right behind: no byte more is there.
        const size_t room = (bytes + 255) / 256 * 256;
        const Block workspace(library.memory(), room, Guard::Fence);
        ASSERT_EQ(hgemm_set_workspace(library.handle(), workspace.get(), bytes), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        expect_right(library, g);
        ASSERT_EQ(hgemm_set_workspace(library.handle(), workspace.get(), bytes - 1), HGEMM_STATUS_SUCCESS);
        trial.upload();
        const hgemm_status_t status = library.run(trial.args());
        trial.download();
        if (status == HGEMM_STATUS_SUCCESS) {
            EXPECT_EQ(trial.judge(library.arithmetic()).message, "");
        } else {
            EXPECT_EQ(status, HGEMM_STATUS_WORKSPACE_TOO_SMALL);
            EXPECT_EQ(trial.judge_memory(true).message, "");
        }
        ASSERT_EQ(hgemm_set_workspace(library.handle(), nullptr, 0), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(results(library, g), expected);
    }
}

void check_sm_count(Library& library)
{
    for (const hgemm_type_t type : halves) {
        const GemmCase g = tall_case(type);
        const std::vector<double> expected = results(library, g);
        for (const int count :
             thinning() > 1 ? std::vector<int>{7, 0} : std::vector<int>{1, 2, 7, 64, 1000, 0}) {
            SCOPED_TRACE(testing::Message() << "with " << count);
            ASSERT_EQ(hgemm_set_sm_count(library.handle(), count), HGEMM_STATUS_SUCCESS)
                << hgemm_last_error();
            expect_right(library, g);
        }
        EXPECT_EQ(results(library, g), expected);
    }
}

void check_threads(const MakeLibrary& make)
{
    const GemmCase g = tall_case(HGEMM_F16);
    const std::vector<double> expected = results(*make(), g);
    std::vector<std::thread> threads;
    std::vector<int> same(8);
    for (int& count : same)
        threads.emplace_back([&] {
            Cuda::get();
            const auto library = make();
            for (int repeat = 0; repeat < 10; ++repeat)
                count += results(*library, g) == expected;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(same, std::vector<int>(8, 10));
}

void check_far_offsets(Library& library)
{
    constexpr int64_t near = FarMatrix::size, far = (int64_t{1} << 25) + 8,
                      stride = (int64_t{1} << 31) + 24;
    for (const hgemm_op_t trans : ops) {
        check_far_case(library, trans, far, near, near, 0, 1);
        check_far_case(library, trans, near, far + 1, near, 0, 1);
        check_far_case(library, trans, near, near, far, 0, 1);
        check_far_case(library, trans, near, near, far + 3, 0, 1);
        check_far_case(library, trans, near, near, near, stride, 2);
    }
}

void expect_refused(Library& library, const GemmCase& g, hgemm_status_t status, const std::string& text,
                    void (*change)(hgemm_args_t&))
{
    Trial trial(g, library.memory());
    trial.upload();
    hgemm_args_t args = trial.args();
    change(args);
    EXPECT_EQ(hgemm_gemm_ex(library.handle(), &args), status) << g.print();
    EXPECT_NE(std::string(hgemm_last_error()).find(text), std::string::npos) << hgemm_last_error();
    trial.download();
    EXPECT_EQ(trial.judge_memory(true).message, "");
}

}  // namespace hg::test
