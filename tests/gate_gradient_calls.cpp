// The fourth part of gate_rules.hpp: what hgemm_gate_gradient() refuses.
#include "buffer.hpp"
#include "gate_rules.hpp"
#include "wrong_calls.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace hg::test {
namespace {

constexpr float endless = std::numeric_limits<float>::infinity();
constexpr int64_t too_far = int64_t{1} << 62;

// Of SiLU, with 4 rows of 32 elements.
const WrongCall<hgemm_gate_gradient_args_t> wrong_gradients[] = {
    {"(args->size) is 0", [](auto& x) { x.size = 0; }},
    {"(args->size) is 104, must be a multiple of 8 from 112 to 1024: use hgemm_gate_gradient_args_init",
     [](auto& x) { x.size = 104; }},
    {"(args->size) is 1032", [](auto& x) { x.size = 1032; }},
    {"(args->rows) is -1, must be at least 0", [](auto& x) { x.rows = -1; }},
    {"(args->columns) is -1, must be 0 to 2^30", [](auto& x) { x.columns = -1; }},
    {"(args->columns) is 1073741825, must be 0 to 2^30", [](auto& x) { x.columns = (1 << 30) + 1; }},
    {"(args->type_product) is 0, must be 1 (F16), 2 (BF16) or 3 (F32)",
     [](auto& x) { x.type_product = static_cast<hgemm_type_t>(0); }},
    {"(args->type_of_d) is 4, must be 1", [](auto& x) { x.type_of_d = static_cast<hgemm_type_t>(4); }},
    {"(args->type_of_product) is -1, must be 1",
     [](auto& x) { x.type_of_product = static_cast<hgemm_type_t>(-1); }},
    {"(args->activation) is 5, must be an hgemm_activation_t",
     [](auto& x) { x.activation = static_cast<hgemm_activation_t>(5); }},
    {"(args->activation) is -1, must be an hgemm_activation_t",
     [](auto& x) { x.activation = static_cast<hgemm_activation_t>(-1); }},
    {"(args->gate.block) is 0, must be at least 1", [](auto& x) { x.gate.block = 0; }},
    {"(args->gate.block) is 0, must be at least 1", [](auto& x) { x.columns = x.gate.block = 0; }},
    {"(args->gate.block) is -1, must be at least 0", [](auto& x) { x.gate.block = -1; }},
    {"(args->gate.block) is 5, twice of it must divide args->columns = 32",
     [](auto& x) { x.gate.block = 5; }},
    {"(args->gate.block) is 32, twice of it must divide args->columns = 32",
     [](auto& x) { x.gate.block = 32; }},
    {"(args->gate.block) is 4611686018427387904, twice of it must divide",
     [](auto& x) { x.gate.block = too_far; }},
    {"(args->gate.block) is 1, twice of it must divide args->columns = 31",
     [](auto& x) { x.columns = 31, x.gate.block = 1; }},
    {"(args->gate.limit) is -1, must be finite and at least 0", [](auto& x) { x.gate.limit = -1; }},
    {"(args->gate.limit) is inf, must be finite", [](auto& x) { x.gate.limit = endless; }},
    {"(args->gate.limit) is nan, must be finite", [](auto& x) { x.gate.limit = NAN; }},
    {"(args->gate.slope) is -2, must be finite and at least 0", [](auto& x) { x.gate.slope = -2; }},
    {"(args->gate.slope) is inf, must be finite", [](auto& x) { x.gate.slope = endless; }},
    {"(args->gate.slope) is 1.5, must be 0 without HGEMM_ACTIVATION_SILU",
     [](auto& x) { x.activation = HGEMM_ACTIVATION_RELU, x.gate.slope = 1.5f; }},
    {"(args->gate.offset) is -inf, must be finite", [](auto& x) { x.gate.offset = -endless; }},
    {"(args->ld_product) is 31, must be at least columns = 32", [](auto& x) { x.ld_product = 31; }},
    {"(args->ld_product) is 0, must be at least columns = 32", [](auto& x) { x.rows = x.ld_product = 0; }},
    {"(args->ld_product) is 0, must be at least max(1, columns) = 1",
     [](auto& x) { x.columns = x.ld_product = 0; }},
    {"(args->ld_product) is 4611686018427387904, too large", [](auto& x) { x.ld_product = too_far; }},
    {"(args->ld_of_d) is 15, must be at least columns / 2 = 16", [](auto& x) { x.ld_of_d = 15; }},
    {"(args->ld_of_d) is 4611686018427387904, too large", [](auto& x) { x.ld_of_d = too_far; }},
    {"(args->ld_of_product) is 31, must be at least columns = 32", [](auto& x) { x.ld_of_product = 31; }},
    {"(args->ld_of_product) is -32, must be at least columns = 32", [](auto& x) { x.ld_of_product = -32; }},
    {"(args->ld_of_product) is 4611686018427387904, too large", [](auto& x) { x.ld_of_product = too_far; }},
    {"(args->product) is NULL", [](auto& x) { x.product = nullptr; }},
    {"(args->product) is 0x", [](auto& x) { misalign(x.product); }},
    {"(args->of_d) is NULL", [](auto& x) { x.of_d = nullptr; }},
    {"(args->of_d) is 0x", [](auto& x) { misalign(x.of_d); }},
    {"(args->of_product) is NULL", [](auto& x) { x.of_product = nullptr; }},
    {"(args->of_product) is 0x", [](auto& x) { misalign(x.of_product); }},
    {"(args->of_product) equals args->product, so args->type_of_product must equal args->type_product",
     [](auto& x) { x.product = x.of_product, x.type_of_product = HGEMM_F16; }},
    {"(args->of_product) equals args->product, so args->ld_of_product = 40 must equal args->ld_product = "
     "32",
     [](auto& x) { x.product = x.of_product, x.ld_of_product = 40; }},
};

void check_gradient_defaults()
{
    hgemm_gate_gradient_args_init(nullptr, sizeof(hgemm_gate_gradient_args_t));
    hgemm_gate_gradient_args_t args;
    hgemm_gate_gradient_args_init(&args, sizeof args);
    EXPECT_EQ(args.size, sizeof args);
    EXPECT_TRUE(args.rows == 0 && args.columns == 0);
    EXPECT_TRUE(!args.product && !args.of_d && !args.of_product);
    EXPECT_TRUE(args.ld_product == 0 && args.ld_of_d == 0 && args.ld_of_product == 0);
    EXPECT_TRUE(args.type_product == HGEMM_F16 && args.type_of_d == HGEMM_F16);
    EXPECT_TRUE(args.type_of_product == HGEMM_F16 && args.activation == HGEMM_ACTIVATION_NONE);
    EXPECT_TRUE(args.gate.block == 0 && args.gate.limit == 0 && args.gate.slope == 0 &&
                args.gate.offset == 0);
}

}  // namespace

void check_gate_gradient_refusals(Library& library)
{
    check_gradient_defaults();
    constexpr int64_t rows = 4, columns = 32;
    const auto make = [&](hgemm_type_t type, int64_t length) {
        return Buffer(library.memory(), type, Extent{rows, length, length, 1, 0}, 0, Guard::Pads);
    };
    Buffer product = make(HGEMM_BF16, columns), of_d = make(HGEMM_F32, columns / 2),
           of_product = make(HGEMM_BF16, columns);
    for (Buffer* buffer : {&product, &of_d, &of_product})
        buffer->upload();
    hgemm_gate_gradient_args_t args;
    hgemm_gate_gradient_args_init(&args, sizeof args);
    args.rows = rows;
    args.columns = args.ld_product = args.ld_of_product = columns;
    args.ld_of_d = columns / 2;
    args.product = product.ptr();
    args.of_d = of_d.ptr();
    args.of_product = of_product.ptr();
    args.type_product = args.type_of_product = HGEMM_BF16;
    args.type_of_d = HGEMM_F32;
    args.activation = HGEMM_ACTIVATION_SILU;
    args.gate.block = 8;
    expect_all_named(library, hgemm_gate_gradient, args, wrong_gradients);
    EXPECT_EQ(library.wait(HGEMM_STATUS_SUCCESS), HGEMM_STATUS_SUCCESS) << library.story();
    for (Buffer* buffer : {&product, &of_d, &of_product}) {
        buffer->download();
        EXPECT_EQ(buffer->damage(true), "");
    }
    EXPECT_EQ(library.wait(hgemm_gate_gradient(library.handle(), &args)), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
}

}  // namespace hg::test
