// The third part of gate_rules.hpp: gradients of gated results.
#include "buffer.hpp"
#include "conformance.hpp"
#include "gate_gradient_reference.hpp"
#include "gate_rules.hpp"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace hg::test {
namespace {

// `length` gates in a line.
struct GradientCase {
    int64_t rows, length;
    hgemm_gate_t gate;
    hgemm_activation_t activation = HGEMM_ACTIVATION_NONE;
    hgemm_type_t type_product = HGEMM_BF16, type_of_d = HGEMM_BF16, type_of_product = HGEMM_BF16;
    Place product = {}, of_d = {}, of_product = {};
    bool in_place = false;
    bool fenced = false;  // behind what is read lies memory that nobody may read

    std::string print() const
    {
        const auto place = [](const Place& p) {
            return std::to_string(p.gap) + "/" + std::to_string(p.shift) + " ";
        };
        return (testing::Message() << rows << " x " << length << " gates, block " << gate.block << " limit "
                                   << gate.limit << " slope " << gate.slope << " offset " << gate.offset
                                   << " activation " << activation << ", " << name_of(type_product)
                                   << " and " << name_of(type_of_d) << " -> " << name_of(type_of_product)
                                   << ", gaps/shifts " << place(product) << place(of_d) << place(of_product)
                                   << (in_place ? "in place" : "") << (fenced ? " fenced" : ""))
            .GetString();
    }
};

// An element of a line: (row, position in the line).
using LineElement = std::function<double(int64_t, int64_t)>;

// Small numbers and, now and then, some that are far from 0.
LineElement usual_elements(uint64_t seed)
{
    return [seed](int64_t row, int64_t j) {
        const auto index = static_cast<uint64_t>(row << 32 | j);
        return normal(seed, index) * (hash(seed, index) % 16 == 0 ? 20 : 2);
    };
}

class GradientTrial {
public:
    GradientTrial(Library& library, const GradientCase& c, const LineElement& product,
                  const LineElement& of_d)
        : library_(library), c_(c), product_(make_lines(c.type_product, 2 * c.length, c.product)),
          of_d_(make_lines(c.type_of_d, c.length, c.of_d)),
          of_product_(make_lines(c.type_of_product, 2 * c.length, c.of_product))
    {
        for (int64_t i = 0; i < c.rows; ++i) {
            for (int64_t j = 0; j < 2 * c.length; ++j) {
                product_.set(0, i, j, product(i, j));
                before_.push_back(product_.get(0, i, j));
            }
            for (int64_t j = 0; j < c.length; ++j)
                of_d_.set(0, i, j, of_d(i, j));
        }
        for (Buffer* buffer : {&product_, &of_d_, &of_product_})
            buffer->upload();
    }

    void expect_right()
    {
        SCOPED_TRACE(c_.print());
        const hgemm_gate_gradient_args_t args = make_args();
        ASSERT_EQ(library_.wait(hgemm_gate_gradient(library_.handle(), &args)), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error() << library_.story();
        for (Buffer* buffer : {&product_, &of_d_, &of_product_})
            buffer->download();
        EXPECT_EQ(product_.damage(!c_.in_place) + of_d_.damage(true) + of_product_.damage(c_.in_place), "");
        for (int64_t i = 0; i < c_.rows; ++i)
            for (int64_t j = 0; j < c_.length; ++j) {
                const int64_t place = place_of_gate(c_.gate.block, j);
                const double gate = before(i, place), up = before(i, place + c_.gate.block),
                             of_d = of_d_.get(0, i, j);
                const GradientOfGate wanted = differentiate_gate(c_.gate, c_.activation, gate, up, of_d);
                const std::string from = "row " + std::to_string(i) + " gate " + std::to_string(j) + ": " +
                                         std::to_string(gate) + ", " + std::to_string(up) + ", " +
                                         std::to_string(of_d);
                ASSERT_EQ(fault(i, place, wanted.of_gate), "") << from << ", of the gate";
                ASSERT_EQ(fault(i, place + c_.gate.block, wanted.of_up), "")
                    << from << ", of the up element";
            }
    }

    // All elements of the result, one line after the other.
    std::vector<double> results() const
    {
        std::vector<double> all;
        for (int64_t i = 0; i < c_.rows; ++i)
            for (int64_t j = 0; j < 2 * c_.length; ++j)
                all.push_back(result().get(0, i, j));
        return all;
    }

private:
    Buffer make_lines(hgemm_type_t type, int64_t length, const Place& place) const
    {
        return Buffer(library_.memory(), type, Extent{c_.rows, length, length + place.gap, 1, 0},
                      place.shift, c_.fenced ? Guard::Fence : Guard::Pads);
    }
    double before(int64_t i, int64_t place) const
    {
        return before_[static_cast<size_t>(2 * i * c_.length + place)];
    }
    const Buffer& result() const { return c_.in_place ? product_ : of_product_; }

    hgemm_gate_gradient_args_t make_args() const
    {
        hgemm_gate_gradient_args_t args;
        hgemm_gate_gradient_args_init(&args, sizeof args);
        args.rows = c_.rows;
        args.columns = 2 * c_.length;
        args.product = product_.ptr();
        args.ld_product = product_.extent().ld;
        args.of_d = of_d_.ptr();
        args.ld_of_d = of_d_.extent().ld;
        args.of_product = result().ptr();
        args.ld_of_product = result().extent().ld;
        args.type_product = c_.type_product;
        args.type_of_d = c_.type_of_d;
        args.type_of_product = result().type();
        args.activation = c_.activation;
        args.gate = c_.gate;
        args.gate.unused = 0xffffffff;
        return args;
    }

    // "" if the element is a possible one. No NaN that was there before is.
    std::string fault(int64_t i, int64_t place, const Estimate& wanted) const
    {
        const hgemm_type_t type = result().type();
        uint32_t bits = 0;
        std::memcpy(&bits, result().line(0, i) + static_cast<size_t>(place) * bytes_of(type),
                    bytes_of(type));
        const double got = decode(type, bits);
        return bits != sentinel(type) && matches(type, got, wanted.value, wanted.error)
                   ? ""
                   : (testing::Message() << got << " instead of " << wanted.value << " +- " << wanted.error)
                         .GetString();
    }

    Library& library_;
    GradientCase c_;
    Buffer product_, of_d_, of_product_;
    std::vector<double> before_;  // the product
};

void expect_gradient(Library& library, const GradientCase& c, uint64_t seed)
{
    GradientTrial(library, c, usual_elements(2 * seed), usual_elements(2 * seed + 1)).expect_right();
}

constexpr hgemm_activation_t all_activations[] = {HGEMM_ACTIVATION_NONE, HGEMM_ACTIVATION_RELU,
                                                  HGEMM_ACTIVATION_GELU_TANH, HGEMM_ACTIVATION_GELU_ERF,
                                                  HGEMM_ACTIVATION_SILU};

// Without a block: nothing else; a limit; an offset; as gpt-oss has it, which is of SiLU.
constexpr hgemm_gate_t numbers_of_gates[] = {
    {}, {0, 3, 0, 0, 0}, {0, 0, 0, -0.5f, 0}, {0, 7, 1.702f, 1, 0}};

bool has_numbers(hgemm_activation_t activation, const hgemm_gate_t& gate)
{
    return gate.slope == 0 || activation == HGEMM_ACTIVATION_SILU;
}

// A block of 0 is the whole length.
GradientCase gradient_case(int64_t rows, int64_t length, int64_t block, size_t form)
{
    GradientCase c{rows, length, {}};
    c.activation = all_activations[form % 5];
    const hgemm_gate_t& gate = numbers_of_gates[form / 3 % 4];
    if (has_numbers(c.activation, gate))
        c.gate = gate;
    c.gate.block = block != 0 ? block : length;
    return c;
}

// Of two thirds of the cases lines begin at multiples of 16 bytes, if they have whole vectors.
void draw_places(GradientCase& c, Random& random)
{
    constexpr int64_t wide_gaps[] = {0, 8, 16, 4};
    const bool is_aligned = !random.one_in(3);
    for (Place* const place : {&c.product, &c.of_d, &c.of_product}) {
        place->gap = is_aligned ? random.pick(wide_gaps) : random.below(4);
        place->shift = is_aligned ? 0 : random.below(2);
    }
    c.fenced = random.one_in(2);
}

// Lengths that a block divides: of one gate, of odd numbers, of whole vectors, and of more than a CTA or a
// part of a line has.
std::vector<int64_t> lengths_for(int64_t block)
{
    if (block <= 1)
        return {1, 7, 8, 40, 264, 1031};
    return {block, 5 * block, 264, 264 * block};
}

// All types with all blocks; the rest in turn.
void check_gradients_of_types(Library& library)
{
    Random random(17);
    size_t form = 0;
    for (const hgemm_type_t product : types)
        for (const hgemm_type_t of_d : types)
            for (const hgemm_type_t of_product : types)
                for (const int64_t block : {0, 1, 8, 24, 3}) {
                    const std::vector<int64_t> lengths = lengths_for(block);
                    ++form;
                    GradientCase c = gradient_case(1 + random.below(5), random.pick(lengths), block, form);
                    c.type_product = product;
                    c.type_of_d = of_d;
                    c.type_of_product = of_product;
                    draw_places(c, random);
                    if (thinning() > 1 && form % 6 != 0)
                        continue;
                    expect_gradient(library, c, form);
                    c.in_place = product == of_product;
                    if (c.in_place)
                        expect_gradient(library, c, form);
                }
}

}  // namespace

void check_gate_gradients(Library& library)
{
    check_gradients_of_types(library);
    // All activations with all numbers, in vectors and in elements. fp32 shows what other types hide.
    for (const hgemm_activation_t activation : all_activations)
        for (const hgemm_gate_t& gate : numbers_of_gates)
            for (const int64_t block : {1, 3, 8, 264}) {
                if (!has_numbers(activation, gate) || (thinning() > 1 && block > 3))
                    continue;
                GradientCase c{
                    thinning() > 1 ? 1 : 7, 264, gate, activation, HGEMM_F32, HGEMM_F32, HGEMM_F32};
                c.gate.block = block;
                expect_gradient(library, c, 1000);
            }
    // On one SM every thread has several units.
    const bool is_slow = thinning() > 1;
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 1), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (const int64_t length : {520, 131})
        expect_gradient(library, gradient_case(is_slow ? 9 : 200, length, 0, 4), 1001);
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (const int64_t block : is_slow ? std::vector<int64_t>{} : std::vector<int64_t>{0, 1, 32, 3})
        expect_gradient(library, gradient_case(300, 1056, block, 4), 1002);
    // Of nothing.
    for (const auto& [rows, columns] : {std::pair{0, 16}, {3, 0}}) {
        hgemm_gate_gradient_args_t args;
        hgemm_gate_gradient_args_init(&args, sizeof args);
        args.rows = rows;
        args.columns = columns;
        args.ld_product = args.ld_of_d = args.ld_of_product = 16;
        args.gate.block = 8;
        EXPECT_EQ(hgemm_gate_gradient(library.handle(), &args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    }
}

namespace {

// No product of two of them, of a gradient and another, leaves the range of fp32.
constexpr float special_gates[] = {NAN, INFINITY, -INFINITY, 0.0f, 1.5f, -1.5f, 5.0f, 0x1p100f, -0x1p100f};
constexpr float special_ups[] = {NAN, INFINITY, -INFINITY, 0.0f, 1.5f, -7.0f, 5.0f, -0x1p100f};
constexpr float special_gradients[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, -1.5f, 0x1p20f};
constexpr int64_t of_gates = std::size(special_gates), of_ups = std::size(special_ups),
                  of_gradients = std::size(special_gradients);
constexpr int64_t all_triples = of_gates * of_ups * of_gradients;
static_assert(all_triples % 24 == 0, "whole vectors, and blocks of 3");

void expect_special_gradients(Library& library, const GradientCase& c)
{
    const auto product = [&](int64_t, int64_t place) {
        const int64_t block = c.gate.block, gate = place / (2 * block) * block + place % block;
        return place / block % 2 == 0 ? special_gates[gate % of_gates]
                                      : special_ups[gate / of_gates % of_ups];
    };
    const auto of_d = [](int64_t, int64_t j) { return special_gradients[j / (of_gates * of_ups)]; };
    GradientTrial(library, c, product, of_d).expect_right();
}

}  // namespace

void check_gate_gradient_values(Library& library)
{
    const std::vector<hgemm_gate_t> gates{
        {}, {0, 5, 0, 0, 0}, {0, 0, 0, -0.5f, 0}, {0, 5, 1.702f, 1, 0}, {0, 0, FLT_MAX, 0, 0}};
    for (const hgemm_activation_t activation : all_activations)
        for (const hgemm_gate_t& gate : gates)
            for (const int64_t block : {int64_t{1}, int64_t{3}, all_triples})
                for (const hgemm_type_t type : {HGEMM_F32, HGEMM_BF16}) {
                    if (!has_numbers(activation, gate) ||
                        (thinning() > 1 && (type == HGEMM_BF16 || block == 1)))
                        continue;
                    GradientCase c{1, all_triples, gate, activation, type, type, type};
                    c.gate.block = block;
                    expect_special_gradients(library, c);
                }
}

void check_gate_gradient_bits(Library& library)
{
    for (const int64_t block : {0, 1, 3})
        for (size_t form = 0; form < 5; ++form) {
            GradientCase c = gradient_case(5, 264, block, form);
            c.type_of_d = HGEMM_F32;
            const LineElement product = usual_elements(3), of_d = usual_elements(4);
            GradientTrial apart(library, c, product, of_d), again(library, c, product, of_d);
            c.in_place = true;
            GradientTrial in_place(library, c, product, of_d);
            for (GradientTrial* const trial : {&apart, &again, &in_place})
                trial->expect_right();
            EXPECT_EQ(again.results(), apart.results()) << c.print();
            EXPECT_EQ(in_place.results(), apart.results()) << c.print();
        }
}

}  // namespace hg::test
