// Matrices of more than 2^31 elements, on data that make every sum exact. No reference fits: each row of D
// is held against A (B x) modulo 2^32 (Freivalds).
#include "gpu.hpp"
#include "src/tools/support/number.hpp"
#include "src/tools/support/reference.hpp"

#include <algorithm>
#include <vector>

namespace hg::test {
namespace {

struct Shape {
    const char* name;
    int64_t m, n, k;
};

constexpr Shape shapes[] = {
    {"square", 46'400, 46'408, 48},
    {"tall", 34'000'000, 65, 8},
    {"wide", 65, 34'000'001, 8},
};

// -2 ... 2 as fp16.
std::vector<uint16_t> integers(int64_t count, uint64_t seed)
{
    static constexpr uint16_t bits[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
    std::vector<uint16_t> values(static_cast<size_t>(count));
    parallel(count, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            values[static_cast<size_t>(i)] = bits[hash(seed, static_cast<uint64_t>(i)) % 5];
    });
    return values;
}

// Every fp16 as an integer; what is none becomes a number that no sum reaches.
const std::vector<uint32_t>& integer_table()
{
    static const std::vector<uint32_t> table = [] {
        std::vector<uint32_t> t;
        for (uint32_t bits = 0; bits < 65536; ++bits) {
            const double value = decode(HGEMM_F16, bits);
            t.push_back(value == static_cast<int64_t>(std::clamp(value, -1e6, 1e6))
                            ? static_cast<uint32_t>(static_cast<int64_t>(value))
                            : 0x5eadbeef);
        }
        return t;
    }();
    return table;
}

// out = matrix * x for rows of `length` elements.
std::vector<uint32_t> multiply(const uint16_t* matrix, int64_t rows, int64_t length,
                               const std::vector<uint32_t>& x)
{
    const std::vector<uint32_t>& integer = integer_table();
    std::vector<uint32_t> out(static_cast<size_t>(rows));
    parallel(rows, length, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            uint32_t sum = 0;
            for (int64_t j = 0; j < length; ++j)
                sum += integer[matrix[i * length + j]] * x[static_cast<size_t>(j)];
            out[static_cast<size_t>(i)] = sum;
        }
    });
    return out;
}

class DeviceHuge : public testing::TestWithParam<std::tuple<const char*, Shape>> {};

TEST_P(DeviceHuge, is_right)
{
    const auto& [backend, shape] = GetParam();
    const auto [name, m, n, k] = shape;
    NEEDS_BACKEND(backend);
    NEEDS_MEMORY(8);
    const auto library = make(backend);
    Memory& memory = library->memory();
    // Row-major D = A * B, so that B x is a sum over rows of B.
    const std::vector<uint16_t> a = integers(m * k, 1), b = integers(k * n, 2);
    Block a_block(memory, a.size() * 2), b_block(memory, b.size() * 2);
    const Block d_block(memory, static_cast<size_t>(m * n) * 2, Guard::Fence);
    a_block.copy_in(a.data());
    b_block.copy_in(b.data());
    Cuda::get()->fill(d_block.get(), 0xff, d_block.bytes());
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;
    args.m = m;
    args.n = n;
    args.k = k;
    args.a = a_block.get();
    args.b = b_block.get();
    args.d = d_block.get();
    args.lda = k;
    args.ldb = args.ldd = n;
    ASSERT_EQ(library->run(args), HGEMM_STATUS_SUCCESS) << library->story();

    std::vector<uint32_t> x(static_cast<size_t>(n));
    for (size_t j = 0; j < x.size(); ++j)
        x[j] = static_cast<uint32_t>(hash(3, j));
    const std::vector<uint32_t> expected = multiply(a.data(), m, k, multiply(b.data(), k, n, x));
    const int64_t rows_at_once = std::max<int64_t>(1, (int64_t{1} << 28) / n);
    std::vector<uint16_t> d(static_cast<size_t>(rows_at_once * n));
    for (int64_t row = 0; row < m; row += rows_at_once) {
        const int64_t rows = std::min(rows_at_once, m - row);
        memory.copy_out(d.data(), d_block.get<uint16_t>() + row * n, static_cast<size_t>(rows * n) * 2);
        const std::vector<uint32_t> got = multiply(d.data(), rows, n, x);
        const auto [wrong, right] = std::mismatch(got.begin(), got.end(), expected.begin() + row);
        ASSERT_EQ(wrong, got.end()) << "row " << row + (wrong - got.begin()) << " is wrong";
    }
}

INSTANTIATE_TEST_SUITE_P(, DeviceHuge,
                         testing::Combine(testing::ValuesIn(backends), testing::ValuesIn(shapes)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param)) + "_" +
                                    std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace hg::test
