// The correction networks: by what factor the cost model's prediction is off. One network for TN (both
// operands contiguous along K), one for all other layouts, each with one hidden layer. Inputs are features
// of the candidate and eight fitted numbers of its kernel. An H100 has biases and kernel numbers of its
// own. A kernel without numbers is judged by the model alone.
#pragma once

#include "arch/sm90/choose/model.hpp"

namespace hg::sm90 {

// Inputs of a network. learn.py reads the names.
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

// Computes the features of a candidate; `us` is the model's prediction.
void describe(const Problem& problem, const Config& config, const Candidate& candidate, Pdl pdl, double us,
              int sm_count, float (&features)[Feature::count]);

// Whose measurements are used: an H100's where the bandwidth of memory is like its, else an H200's.
enum class Card { H100, H200 };
Card card_of(const Device& device);

// Is this a problem like those that were measured (no low-intensity batch), on a whole card?
bool has_correction(const Problem& problem, int sm_count);

// Problems that the model expects to take longer are left to the model: few were measured on H200s.
constexpr double max_corrected_us(Card card)
{
    return card == Card::H200 ? 1000.0 : std::numeric_limits<double>::infinity();
}

// Corrected time in microseconds, from the model's prediction `us`. `early` is also that of a candidate
// with pdl_off.
struct Corrected {
    double early, late;
};

Corrected corrected_us(const Problem& problem, const Config& config, const Candidate& candidate, double us,
                       int sm_count, Card card);

}  // namespace hg::sm90
