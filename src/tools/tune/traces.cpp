#include "src/tools/tune/traces.hpp"

#include "src/tools/bench/shapes.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_set>

namespace hg::bench {
namespace {

constexpr const char* command = "trace hgemm-bench compare ";

// Throws std::runtime_error for options that are none.
std::vector<Product> products_of(const std::string& options, int64_t offset, int64_t pad)
{
    Selection selection;
    selection.offset = offset;
    selection.pad = pad;
    std::istringstream words(options);
    for (std::string name, value; words >> name >> value;) {
        if (name == "--shapes")
            selection.shapes = value;
        else if (name == "--dtype")
            selection.dtype = value;
        else if (name == "--layout")
            selection.layouts = {value};
        else if (name == "--output")
            selection.outputs = {value};
        else
            throw std::runtime_error("unknown option " + name);
    }
    const bool is_layout = selection.layouts[0].size() == 2 &&
                           selection.layouts[0].find_first_not_of("nt") == std::string::npos;
    std::vector<Product> products = select(selection);
    if (!is_layout || products.empty())
        throw std::runtime_error("no product");
    return products;
}

}  // namespace

Traced read_traces(std::istream& log, int64_t offset, int64_t pad)
{
    Traced traced;
    std::unordered_set<std::string> seen;  // a program repeats itself
    for (std::string line; std::getline(log, line);) {
        const size_t found = line.find(command);
        if (found == line.npos)
            continue;
        const std::string options = line.substr(found + std::string(command).size());
        if (!seen.insert(options).second)
            continue;
        try {
            for (const Product& product : products_of(options, offset, pad))
                if (std::ranges::find(traced.products, product) == traced.products.end())
                    traced.products.push_back(product);
        } catch (const std::runtime_error&) {
            ++traced.not_understood;
        }
    }
    return traced;
}

}  // namespace hg::bench
