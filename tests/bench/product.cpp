#include "product.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hg::bench {
namespace {

constexpr int64_t square_sizes[] = {128,  256,  512,  1024, 1536,  2048,  3072,
                                    4096, 5120, 6144, 8192, 10240, 12288, 16384};

// n x k of layers of language models, and the tokens they are multiplied with.
constexpr std::array<int64_t, 2> llm_layers[] = {{4096, 4096},  {6144, 4096}, {4096, 14336}, {57344, 8192},
                                                 {8192, 28672}, {8192, 8192}, {32768, 512},  {7168, 16384},
                                                 {4096, 7168},  {7168, 2048}, {18432, 7168}};
constexpr int64_t llm_tokens[] = {1,   2,   4,   8,   16,   32,   48,   64,  96,
                                  128, 192, 256, 512, 1024, 2048, 4096, 8192};

constexpr std::array<int64_t, 3> odd_shapes[] = {
    {127, 129, 131},    {333, 777, 555},    {1000, 999, 1001}, {1023, 1025, 1023}, {2047, 2047, 2047},
    {4095, 4095, 4095}, {4097, 4097, 4097}, {50257, 100, 769}, {3, 5001, 4099},    {8191, 8193, 1023}};

std::vector<int64_t> numbers_in(std::string text)
{
    for (char& c : text)
        if (c == 'x' || c == 'X' || c == ',')
            c = ' ';
    std::istringstream stream(text);
    std::vector<int64_t> numbers;
    for (int64_t number; stream >> number;)
        numbers.push_back(number);
    return numbers;
}

Product parse_shape(const std::string& text, hgemm_type_t type, const std::string& layout)
{
    const std::vector<int64_t> sizes = numbers_in(text);
    if (sizes.size() < 3 || *std::min_element(sizes.begin(), sizes.end()) < 1)
        throw std::runtime_error("'" + text + "' is no shape; MxNxK is wanted, each at least 1");
    return {sizes[0], sizes[1], sizes[2], type, layout};
}

std::vector<Product> read_shapes(const std::string& path, hgemm_type_t type, const std::string& layout)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error("no shape set or readable file '" + path + "'; sets: square, llm, odd");
    std::vector<Product> products;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] >= '0' && line[0] <= '9')
            products.push_back(parse_shape(line, type, layout));
    return products;
}

}  // namespace

double Product::flops() const
{
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

double Product::bytes() const
{
    const auto rows = static_cast<double>(m), columns = static_cast<double>(n),
               depth = static_cast<double>(k);
    return 2 * (rows * depth + columns * depth + rows * columns);
}

std::string Product::shape() const
{
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

double floor_us(const Product& product)
{
    return std::max(product.flops() / 800e12, product.bytes() / 4.3e12) * 1e6 + 2;
}

const char* region_of(const Product& p)
{
    if ((p.m > 64 && p.m % 8 != 0) || p.n % 8 != 0 || p.k % 8 != 0)
        return "odd";
    const double floor = floor_us(p);
    if (floor < 3)
        return "tiny";
    if (p.m == 1)
        return "gemv";
    if (p.m <= 64)
        return "decode";
    if (p.m <= 512 && p.n <= 512 && p.k >= 4096)
        return "deep-K";
    if (p.m <= 512 || floor < 30)
        return "mid";
    if (p.k <= 1024 && p.m >= 4096 && p.n >= 4096)
        return "thin-K";
    return "large";
}

std::vector<Product> parse_shapes(const std::string& list, hgemm_type_t type, const std::string& layout)
{
    std::vector<Product> products;
    std::istringstream stream(list);
    for (std::string item; std::getline(stream, item, ',');)
        products.push_back(parse_shape(item, type, layout));
    return products;
}

std::vector<Product> shape_set(const std::string& name, hgemm_type_t type, const std::string& layout)
{
    std::vector<Product> products;
    if (name == "square")
        for (const int64_t size : square_sizes)
            products.push_back({size, size, size, type, layout});
    else if (name == "llm")
        for (const int64_t tokens : llm_tokens)
            for (const auto& [n, k] : llm_layers)
                products.push_back({tokens, n, k, type, layout});
    else if (name == "odd")
        for (const auto& [m, n, k] : odd_shapes)
            products.push_back({m, n, k, type, layout});
    else
        products = read_shapes(name, type, layout);
    return products;
}

}  // namespace hg::bench
