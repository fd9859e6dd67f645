#include "src/tools/bench/shapes.hpp"

#include "src/tools/support/number.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hg::bench {
namespace {

struct Size {
    int64_t m, n, k, batch = 1;
};

constexpr const char* set_names[] = {"square", "llm", "grid", "odd", "mirror", "batch"};

constexpr int64_t square_sizes[] = {128,  256,  512,  1024, 1536,  2048,  3072,
                                    4096, 5120, 6144, 8192, 10240, 12288, 16384};

// n x k of layers of language models, and the tokens they are multiplied with.
constexpr std::array<int64_t, 2> llm_layers[] = {{4096, 4096},  {6144, 4096}, {4096, 14336}, {57344, 8192},
                                                 {8192, 28672}, {8192, 8192}, {32768, 512},  {7168, 16384},
                                                 {4096, 7168},  {7168, 2048}, {18432, 7168}};
constexpr int64_t llm_tokens[] = {1,   2,   4,   8,   16,   32,   48,   64,  96,
                                  128, 192, 256, 512, 1024, 2048, 4096, 8192};

constexpr int64_t grid_sizes[] = {64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384};

constexpr Size ragged_shapes[] = {
    {127, 129, 131},    {333, 777, 555},    {1000, 999, 1001},  {1023, 1025, 1023},
    {2047, 2047, 2047}, {4095, 4095, 4095}, {4097, 4097, 4097}, {50257, 100, 769},
    {3, 5001, 4099},    {8191, 8193, 1023}, {1, 4097, 4097},    {17, 11007, 4095},
    {257, 4100, 2052},  {512, 513, 8191},   {3000, 1001, 2001}, {100, 3333, 1500}};
constexpr Size even_shapes[] = {
    {1024, 1024, 1024}, {4096, 4096, 4096}, {16, 4096, 4096}, {512, 8192, 2048}, {8192, 512, 4096}};
// Batches of attention, scores and values of a prompt and of a token; of experts of a layer with few and
// with many tokens each; of small matrices; of sizes that suit nobody.
constexpr Size batches[] = {
    {128, 128, 64, 192},   {512, 512, 64, 128},   {512, 64, 512, 128},   {1024, 1024, 128, 64},
    {1024, 128, 1024, 64}, {2048, 2048, 128, 32}, {2048, 128, 2048, 32}, {1, 2048, 128, 256},
    {1, 128, 2048, 256},   {8, 4096, 128, 64},    {8, 128, 4096, 64},    {1, 4096, 4096, 8},
    {16, 4096, 4096, 8},   {64, 14336, 4096, 8},  {128, 7168, 2048, 32}, {256, 2048, 7168, 16},
    {512, 4096, 1024, 16}, {16, 16, 16, 4096},    {32, 32, 32, 4096},    {64, 64, 64, 1024},
    {128, 128, 128, 256},  {256, 256, 256, 64},   {512, 512, 512, 16},   {1024, 1024, 1024, 4},
    {2048, 2048, 2048, 4}, {77, 77, 64, 96},      {197, 197, 64, 192},   {197, 64, 197, 192},
    {63, 65, 33, 512},     {300, 301, 303, 32}};
constexpr std::array<int64_t, 2> misalignments[] = {{1, 0}, {0, 1}, {1, 3}, {4, 4}};  // offset, pad

// `count` of the list, chosen by the seed and kept in order.
std::vector<Size> sample(const std::vector<Size>& list, size_t count, uint64_t seed)
{
    std::vector<size_t> order(list.size());
    for (size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](size_t x, size_t y) { return test::hash(seed, x) < test::hash(seed, y); });
    order.resize(std::min(count, order.size()));
    std::sort(order.begin(), order.end());
    std::vector<Size> chosen;
    for (const size_t i : order)
        chosen.push_back(list[i]);
    return chosen;
}

std::vector<Size> squares()
{
    std::vector<Size> sizes;
    for (const int64_t size : square_sizes)
        sizes.push_back({size, size, size});
    return sizes;
}

std::vector<Size> llm()
{
    std::vector<Size> sizes;
    for (const int64_t tokens : llm_tokens)
        for (const auto& [n, k] : llm_layers)
            sizes.push_back({tokens, n, k});
    return sizes;
}

std::vector<Size> grid(const std::string& sampling)
{
    std::vector<Size> sizes;
    for (const int64_t m : grid_sizes)
        for (const int64_t n : grid_sizes)
            for (const int64_t k : grid_sizes)
                sizes.push_back({m, n, k});
    size_t count = 0;
    uint64_t seed = 0;
    char slash = 0;
    std::istringstream stream(sampling);
    if (!(stream >> count >> slash >> seed) || slash != '/' || count == 0)
        throw std::runtime_error("'" + sampling + "' is no sample; count/seed is wanted, such as 160/1");
    return sample(sizes, count, seed);
}

// Forty shapes from all over the map.
std::vector<Size> mirror()
{
    std::vector<Size> sizes;
    for (const auto& part : {sample(squares(), 8, 1), sample(llm(), 16, 1), sample(grid("1000/1"), 16, 7)})
        sizes.insert(sizes.end(), part.begin(), part.end());
    return sizes;
}

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

Size parse_shape(const std::string& text)
{
    const std::vector<int64_t> sizes = numbers_in(text);
    if (sizes.size() < 3 || sizes.size() > 4 || *std::min_element(sizes.begin(), sizes.end()) < 1)
        throw std::runtime_error("'" + text +
                                 "' is no shape; MxNxK or MxNxKxBATCH is wanted, each at least 1");
    return {sizes[0], sizes[1], sizes[2], sizes.size() == 4 ? sizes[3] : 1};
}

std::vector<std::string> cells_of(const std::string& line)
{
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');)
        cells.push_back(cell);
    return cells;
}

// Where m, n, k and, if there is such a column, batch stand in a CSV file's heading.
std::vector<size_t> columns_of(const std::string& heading)
{
    const std::vector<std::string> names = cells_of(heading);
    std::vector<size_t> columns;
    for (const char* name : {"m", "n", "k", "batch"}) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found != names.end())
            columns.push_back(static_cast<size_t>(found - names.begin()));
        else if (columns.size() < 3)
            throw std::runtime_error("no columns m, n and k in '" + heading + "'");
    }
    return columns;
}

std::vector<Size> read_shapes(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error("cannot read " + path);
    std::vector<Size> sizes;
    std::vector<size_t> columns = {0, 1, 2};
    bool first = true;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        const bool heading = first && (line[0] < '0' || line[0] > '9');
        first = false;
        if (heading) {
            columns = columns_of(line);
            continue;
        }
        const std::vector<std::string> cells = cells_of(line);
        std::string text = line;
        if (cells.size() > *std::max_element(columns.begin(), columns.end())) {
            text.clear();
            for (const size_t column : columns)
                text += cells[column] + "x";
        }
        sizes.push_back(parse_shape(text));
    }
    return sizes;
}

// A file named after a set counts as that set.
std::string set_of_file(const std::string& path)
{
    const std::string stem = std::filesystem::path(path).stem();
    for (const char* name : set_names)
        if (stem.find(name) != std::string::npos)
            return name;
    return stem;
}

// B can only be A if both are stored in one way.
Product checked(Product product)
{
    const bool same = product.m == product.n && product.a_along_k() == product.b_along_k();
    if (product.output.has(Output::Symmetric) && !same)
        throw std::runtime_error(
            "a symmetric output needs as many rows as columns, and layout tn or nt; this is " +
            product.shape() + " " + product.layout);
    if (product.output.has(Output::Gated) && product.n % 2 != 0)
        throw std::runtime_error("a gated output needs an even number of columns; this is " +
                                 product.shape());
    return product;
}

struct Lists {
    const Selection& selection;
    hgemm_type_t type;
    std::vector<Product> products;

    void add(const std::vector<Size>& sizes, const std::vector<std::string>& layouts,
             const std::string& set)
    {
        add(sizes, layouts, set, selection.offset, selection.pad);
    }
    void add(const std::vector<Size>& sizes, const std::vector<std::string>& layouts,
             const std::string& set, int64_t offset, int64_t pad)
    {
        for (const std::string& layout : layouts)
            for (const auto& [m, n, k, batch] : sizes)
                for (const std::string& output : selection.outputs)
                    products.push_back(
                        checked({m, n, k, type, layout, offset, pad, set, Output(output), batch}));
    }
    void add_set(const std::string& name);
};

void Lists::add_set(const std::string& name)
{
    const std::vector<std::string>& layouts = selection.layouts;
    if (name == "all") {
        for (const char* each : set_names)
            add_set(each);
    } else if (name == "square") {
        add(squares(), layouts, name);
    } else if (name == "llm") {
        add(llm(), layouts, name);
    } else if (name == "grid") {
        add(grid(selection.sample), layouts, name);
    } else if (name == "batch") {
        add({std::begin(batches), std::end(batches)}, layouts, name);
    } else if (name == "mirror") {
        add(mirror(), {"nn", "nt", "tt"}, name);
    } else if (name == "odd") {
        add({std::begin(ragged_shapes), std::end(ragged_shapes)}, layouts, name);
        for (const auto& [offset, pad] : misalignments)
            add({std::begin(even_shapes), std::end(even_shapes)}, layouts, name, offset, pad);
    } else {
        throw std::runtime_error("no set '" + name +
                                 "'; square, llm, grid, odd, mirror, batch and all are known");
    }
}

}  // namespace

std::vector<Product> select(const Selection& selection)
{
    std::vector<Size> spelled;
    std::istringstream stream(selection.shapes);
    for (std::string item; std::getline(stream, item, ',');)
        spelled.push_back(parse_shape(item));
    std::vector<Product> products;
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16}) {
        if (selection.dtype != "both" && selection.dtype != test::name_of(type))
            continue;
        Lists lists{selection, type, {}};
        lists.add(spelled, selection.layouts, "list");
        for (const std::string& path : selection.files)
            lists.add(read_shapes(path), selection.layouts, set_of_file(path));
        for (const std::string& set : selection.sets)
            lists.add_set(set);
        products.insert(products.end(), lists.products.begin(), lists.products.end());
    }
    return products;
}

}  // namespace hg::bench
