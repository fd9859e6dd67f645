// Gradients of gated results whose rows take several launches.
#include "../library.hpp"
#include "gpu.hpp"
#include "src/tools/support/number.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace hg::test {
namespace {

class DeviceGateGradient : public testing::TestWithParam<const char*> {};

// In place. The product is 0, and the gradient of D is too but for one element of each row, in a column of
// its own. An offset of 1 makes that the gradient of its gate.
TEST_P(DeviceGateGradient, in_several_launches)
{
    NEEDS_BACKEND(GetParam());
    NEEDS_MEMORY(10);
    const auto library = make(GetParam());
    constexpr int64_t length = int64_t{1} << 20, rows = (1 << 10) + 77, block = 32;
    constexpr size_t bytes_of_line = static_cast<size_t>(length) * sizeof(uint16_t);
    Memory& memory = library->memory();
    const Block product(memory, static_cast<size_t>(rows) * 2 * bytes_of_line),
        of_d(memory, static_cast<size_t>(rows) * bytes_of_line);
    memory.fill(product.get(), 0, product.bytes());
    memory.fill(of_d.get(), 0, of_d.bytes());
    const auto column = [](int64_t row) { return row * 937 % length; };
    const auto number = [](int64_t row) { return static_cast<double>(row % 100 + 1); };
    for (int64_t row = 0; row < rows; ++row) {
        const auto bits = static_cast<uint16_t>(encode(HGEMM_F16, number(row)));
        memory.copy_in(of_d.get<uint16_t>() + row * length + column(row), &bits, sizeof bits);
    }
    hgemm_gate_gradient_args_t args;
    hgemm_gate_gradient_args_init(&args, sizeof args);
    args.rows = rows;
    args.columns = args.ld_product = args.ld_of_product = 2 * length;
    args.product = args.of_product = product.get();
    args.of_d = of_d.get();
    args.ld_of_d = length;
    args.gate.block = block;
    args.gate.offset = 1;
    ASSERT_EQ(library->wait(hgemm_gate_gradient(library->handle(), &args)), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error() << library->story();
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t place = column(row) + column(row) / block * block;
        uint16_t bits[block + 1] = {};
        memory.copy_out(bits, product.get<uint16_t>() + row * 2 * length + place, sizeof bits);
        ASSERT_EQ(decode(HGEMM_F16, bits[0]), number(row)) << "row " << row;
        ASSERT_EQ(bits[block], 0) << "row " << row << ", the up element";
    }
}

INSTANTIATE_TEST_SUITE_P(, DeviceGateGradient, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
