#include "product.hpp"

#include <fmt/format.h>

namespace hg::bench {

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

double Product::intensity() const { return flops() / bytes(); }

std::string Product::shape() const
{
    return fmt::format("{}x{}x{}{}{}", m, n, k, offset > 0 ? fmt::format("@{}", offset) : "",
                       pad > 0 ? fmt::format("+{}", pad) : "");
}

}  // namespace hg::bench
