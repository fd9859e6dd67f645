#include "src/tune/sample.hpp"

#include "arch/common/types.hpp"
#include "src/tune/elements.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace hg {
namespace {

constexpr int64_t most_problems = 8, blocks = 64, lines_of_block = 8;

// Elements of a matrix, or of an operand, of problem z of the batch.
template <typename Any>
Status find_base(hgemm_stream_t stream, const Any& matrix, int64_t element_bytes, int64_t z,
                 const char*& base)
{
    base = static_cast<const char*>(matrix.ptr);
    if (!matrix.array) {
        base += z * matrix.batch_stride * element_bytes;
        return ok;
    }
    return read_values(stream, reinterpret_cast<const char* const*>(matrix.array) + z, 1, &base);
}

// Calls use(first, count) for runs of numbers that follow each other.
template <typename Use>
Status for_each_run(const std::vector<int64_t>& numbers, Use use)
{
    Status status = ok;
    for (size_t begin = 0, end; status == ok && begin < numbers.size(); begin = end) {
        for (end = begin + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;)
            ++end;
        status = use(begin, static_cast<int64_t>(end - begin));
    }
    return status;
}

double square_of(const char* element, Type type)
{
    const double value = value_of(element, type);
    return value * value;
}

// The Euclidean norms of some rows of an operand.
Status read_norms(hgemm_stream_t stream, const Operand& o, const Problem& p, int64_t z,
                  const std::vector<int64_t>& rows, std::vector<double>& norms)
{
    const char* base = nullptr;
    Status status = find_base(stream, o, 2, z, base);
    norms.assign(rows.size(), 0);
    if (status == ok && o.k_stride == 1) {
        status = for_each_run(rows, [&](size_t begin, int64_t count) {
            const Lines lines{base + 2 * rows[begin] * o.row_stride, count, p.k, o.row_stride, p.type_ab};
            return for_each_line(stream, lines, [&](int64_t i, const char* line) {
                for (int64_t k = 0; k < p.k; ++k)
                    norms[begin + static_cast<size_t>(i)] += square_of(line + 2 * k, p.type_ab);
            });
        });
    } else if (status == ok) {
        const int64_t first = rows.front(), width = (rows.back() - first) * o.row_stride + 1;
        const Lines lines{base + 2 * first * o.row_stride, p.k, width, o.k_stride, p.type_ab};
        status = for_each_line(stream, lines, [&](int64_t, const char* line) {
            for (size_t i = 0; i < rows.size(); ++i)
                norms[i] += square_of(line + 2 * (rows[i] - first) * o.row_stride, p.type_ab);
        });
    }
    for (double& norm : norms)
        norm = std::sqrt(norm);
    return status;
}

// The sizes of groups as int64_t: offsets or counts.
Status read_sizes(hgemm_stream_t stream, const Problem& p, std::vector<int64_t>& sizes)
{
    const int64_t count = p.batch + (p.groups.by == GroupsBy::Offsets ? 1 : 0);
    sizes.resize(static_cast<size_t>(count));
    Status status;
    if (p.groups.narrow) {
        std::vector<int32_t> narrow(sizes.size());
        status = read_values(stream, static_cast<const int32_t*>(p.groups.sizes), count, narrow.data());
        std::copy(narrow.begin(), narrow.end(), sizes.begin());
    } else {
        status = read_values(stream, static_cast<const int64_t*>(p.groups.sizes), count, sizes.data());
    }
    if (p.groups.by == GroupsBy::Ends)
        sizes.insert(sizes.begin(), 0);
    for (int64_t& size : sizes)
        size = std::clamp<int64_t>(size, 0, p.m);
    return status;
}

Status read_scalar(hgemm_stream_t stream, const float* device, float& value)
{
    return device ? read_values(stream, device, 1, &value) : ok;
}

// Calls use(row, columns' elements) for some rows of a matrix.
template <typename Use>
Status for_each_row(hgemm_stream_t stream, const Matrix& matrix, int64_t n, int64_t z,
                    const std::vector<int64_t>& rows, Use use)
{
    const char* base = nullptr;
    if (const Status status = find_base(stream, matrix, bytes_of(matrix.type), z, base); status != ok)
        return status;
    return for_each_run(rows, [&](size_t begin, int64_t count) {
        const Lines lines{base + bytes_of(matrix.type) * rows[begin] * matrix.ld, count, n, matrix.ld,
                          matrix.type};
        return for_each_line(
            stream, lines, [&](int64_t i, const char* line) { use(begin + static_cast<size_t>(i), line); });
    });
}

}  // namespace

std::vector<int64_t> spread_over(int64_t count, int64_t blocks, int64_t size)
{
    std::vector<int64_t> numbers;
    if (count <= blocks * size) {
        numbers.resize(static_cast<size_t>(count));
        std::iota(numbers.begin(), numbers.end(), int64_t{0});
        return numbers;
    }
    for (int64_t block = 0; block < blocks; ++block)
        for (int64_t i = 0; i < size; ++i)
            numbers.push_back(block * (count - size) / (blocks - 1) + i);
    return numbers;
}

// Twice the error bound of one result (tests/README.md#error-bound), with the steps of the tensor cores
// that take the shortest, and 32 slices of K. No activation is steeper than 1.13; relu alone is exact.
double allowed_difference(int64_t k, Activation activation, double products, double added)
{
    const double steps = std::ceil(static_cast<double>(k) / 8);
    const double before = 2 * (steps * 5.5 * 0x1p-23 * products + 36 * 0x1p-24 * (products + added));
    if (activation == Activation::None || activation == Activation::Relu)
        return before;
    return 1.13 * before + 0x1p-19 * (products + added);
}

bool is_close(Type type, float x, float y, double allowed)
{
    if (!(allowed < 1e30) || (std::isnan(x) && std::isnan(y)))
        return true;
    // What lies beyond the largest number was rounded to infinity.
    const double largest = type == Type::F16 ? 65520 : 0x1p128;
    const auto bounded = [&](float value) {
        return std::isinf(value) ? std::copysign(largest, value) : static_cast<double>(value);
    };
    const double unit = type == Type::F16 ? 0x1p-11 : type == Type::BF16 ? 0x1p-8 : 0x1p-24;
    const double least = type == Type::F16 ? 0x1p-24 : 0x1p-126;
    const double a = bounded(x), b = bounded(y);
    return std::fabs(a - b) <= allowed + unit * (std::fabs(a) + std::fabs(b)) + least;
}

// Problems of a batch, or groups that are not empty.
Status Sample::choose_parts(hgemm_stream_t stream, const Problem& p)
{
    struct Rows {
        int64_t problem, first, count;
    };
    std::vector<Rows> problems;
    std::vector<int64_t> sizes;
    if (const Status status = p.is_grouped() ? read_sizes(stream, p, sizes) : ok; status != ok)
        return status;
    const std::vector<int64_t> numbers =
        p.is_grouped() ? spread_over(p.batch, 1, p.batch) : spread_over(p.batch, most_problems, 1);
    for (const int64_t z : numbers) {
        const auto i = static_cast<size_t>(z);
        const Rows rows = p.groups.contiguous() ? Rows{z, sizes[i], sizes[i + 1] - sizes[i]}
                          : p.groups.masked()   ? Rows{z, 0, sizes[i]}
                                                : Rows{z, 0, p.m};
        if (rows.count > 0)
            problems.push_back(rows);
    }
    for (const int64_t i : spread_over(static_cast<int64_t>(problems.size()), most_problems, 1)) {
        const Rows& rows = problems[static_cast<size_t>(i)];
        Part part{rows.problem, spread_over(rows.count, blocks, lines_of_block), {}, {}};
        for (int64_t& row : part.rows)
            row += rows.first;
        parts_.push_back(std::move(part));
    }
    return ok;
}

// By the Cauchy-Schwarz inequality: the sum of |a b| is at most the product of the norms.
Status Sample::read_products(hgemm_stream_t stream, const Problem& p, Part& part) const
{
    part.products.assign(part.rows.size() * columns_.size(), 0);
    if (p.k == 0)
        return ok;
    float alpha = p.alpha;
    std::vector<double> rows, columns;
    Status status = read_scalar(stream, p.alpha_device, alpha);
    if (status == ok)
        status = read_norms(stream, p.a, p, part.problem, part.rows, rows);
    if (status == ok)
        status = read_norms(stream, p.b, p, part.problem, columns_, columns);
    if (status != ok)
        return status;
    auto product = part.products.begin();
    for (const double row : rows)
        for (const double column : columns)
            *product++ = static_cast<float>(std::fabs(alpha) * row * column);
    return ok;
}

Status Sample::read_added(hgemm_stream_t stream, const Problem& p, Part& part) const
{
    const bool has_c = p.c.exists(), has_bias = p.bias.along != BiasAlong::None;
    if (has_c || has_bias)
        part.added.assign(part.rows.size() * columns_.size(), 0);
    float beta = p.beta;
    Status status = has_c ? read_scalar(stream, p.beta_device, beta) : ok;
    if (status == ok && has_c)
        status = for_each_row(stream, p.c, p.n, part.problem, part.rows, [&](size_t row, const char* line) {
            for (size_t j = 0; j < columns_.size(); ++j)
                part.added[row * columns_.size() + j] =
                    std::fabs(beta * value_of(line + bytes_of(p.c.type) * columns_[j], p.c.type));
        });
    if (status != ok || !has_bias)
        return status;
    const int64_t element = bytes_of(p.bias.type);
    const bool by_row = p.bias.along == BiasAlong::Rows;
    const auto* const base =
        static_cast<const char*>(p.bias.ptr) + part.problem * p.bias.batch_stride * element;
    const Lines whole{base, 1, by_row ? p.m : p.n, 0, p.bias.type};
    return for_each_line(stream, whole, [&](int64_t, const char* line) {
        auto added = part.added.begin();
        for (const int64_t row : part.rows)
            for (const int64_t column : columns_)
                *added++ += std::fabs(value_of(line + element * (by_row ? row : column), p.bias.type));
    });
}

Status Sample::read(const Handle& handle, const Problem& p)
{
    type_ = p.d.type;
    outputs_ = {p.activation};
    if (p.aux.ptr)
        outputs_.push_back(Activation::None);
    k_ = p.k;
    exact_ = handle.options.mode == Mode::BatchInvariant;
    columns_ = spread_over(p.n, blocks, lines_of_block);
    Status status = choose_parts(handle.stream, p);
    for (Part& part : parts_) {
        if (status == ok)
            status = read_products(handle.stream, p, part);
        if (status == ok)
            status = read_added(handle.stream, p, part);
    }
    return status;
}

Status Sample::results(const Handle& handle, const Problem& p, std::vector<float>& values) const
{
    values.clear();
    const auto take = [&](const Matrix& matrix, const Part& part) {
        return for_each_row(
            handle.stream, matrix, p.n, part.problem, part.rows, [&](size_t, const char* line) {
                for (const int64_t column : columns_)
                    values.push_back(value_of(line + bytes_of(matrix.type) * column, matrix.type));
            });
    };
    Status status = ok;
    for (const Part& part : parts_) {
        if (status == ok)
            status = take(p.d, part);
        if (status == ok && p.aux.ptr)
            status = take(p.aux, part);
    }
    return status;
}

bool Sample::agree(const std::vector<float>& x, const std::vector<float>& y) const
{
    const auto is_same = [](float a, float b) {
        return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
    };
    if (exact_)
        return std::ranges::equal(x, y, is_same);
    size_t at = 0;
    for (const Part& part : parts_)
        for (const Activation activation : outputs_)
            for (size_t i = 0; i < part.products.size(); ++i, ++at) {
                const double added = part.added.empty() ? 0 : part.added[i],
                             allowed = allowed_difference(k_, activation, part.products[i], added);
                if (!is_close(type_, x[at], y[at], allowed))
                    return false;
            }
    return true;
}

}  // namespace hg
