// What measurements add to the cost model: small networks that say how far its prediction is off, one for
// TN (both operands contiguous along K), one for all other layouts. One hidden layer; they see what the
// model sees of a candidate, and eight numbers a kernel that were fitted with them: to an H200, and to an
// H100 once more. A kernel without such numbers is judged by the model alone.
#pragma once

#include "arch/sm90/choose/model.hpp"

namespace hg::sm90 {

// What a network sees of a candidate. learn.py reads the names.
struct Feature {
    enum {
        predicted,
        swap_ab,
        slices,
        stream_k,
        pdl_off,
        late,
        a_rows,
        b_rows,
        depth,
        all_clusters,
        k_tiles,
        waves,
        whole_waves,
        filled,
        load,
        used_m,
        used_n,
        a_misalignment,
        b_misalignment,
        a_panels,
        b_panels,
        used_panels,
        ctas,
        count
    };
};

// A candidate as a network sees it: `us` is the model's prediction.
void describe(const Problem& problem, const Config& config, const Candidate& candidate, Pdl pdl, double us,
              int sm_count, float (&features)[Feature::count]);

// Whose measurements hold: an H100's where memory is as much slower as its, else an H200's.
enum class Card { H100, H200 };
Card card_of(const Device& device);

// Is this a product like those that were measured, on a whole card? The rows of a batch count as one
// problem's.
bool has_correction(const Problem& problem, int sm_count);

// Products that the model expects to take longer were hardly measured on H200s; on H100s the model's
// choices of those cost 2.1 % over the fastest way, the network's 1.6.
constexpr double max_corrected_us(Card card)
{
    return card == Card::H200 ? 1000.0 : std::numeric_limits<double>::infinity();
}

// Microseconds that a candidate takes, by the model's prediction `us` and by measurements: where it lets
// the next kernel start early, as if alone, and late.
struct Corrected {
    double early, late;
};

Corrected corrected_us(const Problem& problem, const Config& config, const Candidate& candidate, double us,
                       int sm_count, Card card);

}  // namespace hg::sm90
