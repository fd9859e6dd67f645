#include "product.hpp"

#include <cmath>

namespace hg::fuzz {
namespace {

void spoil(Input& input, hgemm_args_t& g)
{
    constexpr float numbers[] = {-1, NAN, INFINITY, -INFINITY};
    switch (input.below(8)) {
    case 0:
    case 1: g.gate.block = draw_odd_integer(input); break;
    case 2: g.gate.limit = input.pick(numbers); break;
    case 3: g.gate.slope = input.pick(numbers); break;
    case 4: g.gate.offset = input.pick(numbers); break;
    case 5: g.gate.block = 0; break;
    case 6: g.activation = HGEMM_ACTIVATION_RELU; break;
    default: g.uplo = HGEMM_UPPER; break;
    }
}

}  // namespace

bool draw_gates(Input& input, Product& p)
{
    hgemm_args_t& g = p.g;
    const int64_t line = p.line();
    if (p.is_array() || p.is_null || g.size < sizeof g || !input.one_in(4))
        return false;
    constexpr float limits[] = {0, 2, 0, 8}, slopes[] = {0, 2, 0.5f, 1}, offsets[] = {0, 1, 0, -2};
    const int64_t blocks[] = {line / 2, 1, 2, line / 4};
    const int64_t block = input.pick(blocks);
    if (g.uplo != HGEMM_UPLO_NONE || block < 1 || line % (2 * block) != 0)
        return false;
    g.gate.block = block;
    g.gate.limit = input.pick(limits);
    g.gate.offset = input.pick(offsets);
    if (g.activation == HGEMM_ACTIVATION_SILU)
        g.gate.slope = input.pick(slopes);
    g.gate.unused = input.byte();
    // C as narrow as D is refused.
    if (!p.separate_c && p.reads_c() && !g.beta_device && !input.one_in(4))
        g.beta = 0;
    if (input.one_in(8))
        spoil(input, g);
    return true;
}

}  // namespace hg::fuzz
