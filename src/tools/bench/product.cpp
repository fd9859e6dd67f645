#include "src/tools/bench/product.hpp"

#include "src/tools/support/number.hpp"

#include <fmt/format.h>

namespace hg::bench {

double Product::flops() const
{
    const double columns =
        output.has(Output::Symmetric) ? static_cast<double>(n + 1) / 2 : static_cast<double>(n);
    return 2.0 * static_cast<double>(rows()) * columns * static_cast<double>(k);
}

double Product::bytes() const
{
    const auto problems = static_cast<double>(batch), rows = static_cast<double>(m),
               columns = static_cast<double>(n), depth = static_cast<double>(k),
               columns_of_d = static_cast<double>(this->columns());
    const auto element = static_cast<double>(test::bytes_of(type_d()));
    const auto passes = static_cast<double>(results() + output.has(Output::Beta));
    const double rows_read = output.has(Output::Symmetric) ? rows : rows + columns;
    return problems * (2 * rows_read * depth + passes * element * rows * columns_of_d) +
           (output.has(Output::Bias) ? 2 * columns : 0);
}

double Product::intensity() const { return flops() / bytes(); }

std::string Product::shape() const
{
    return fmt::format("{}x{}x{}{}{}{}{}", m, n, k, batch > 1 ? fmt::format("x{}", batch) : "",
                       offset > 0 ? fmt::format("@{}", offset) : "", pad > 0 ? fmt::format("+{}", pad) : "",
                       output.plain() ? "" : " " + output.text());
}

}  // namespace hg::bench
