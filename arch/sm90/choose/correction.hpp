// The correction networks: by what factor the cost model's prediction is off. One network for TN (both
// operands contiguous along K), one for all other layouts, each with one hidden layer. Inputs are features
// of the candidate and eight fitted numbers of its kernel. An H100 has biases and kernel numbers of its
// own. A kernel without numbers is judged by the model alone.
#pragma once

#include "arch/sm90/choose/model/model.hpp"
#include "src/plan/problem.hpp"

#include <limits>
#include <span>

namespace hg::sm90 {

// Of a network.
constexpr int hidden_units = 64;

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
void describe(const Problem& problem, const Candidate& candidate, Pdl pdl, double us, int sm_count,
              float (&features)[Feature::count]);

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

Corrected corrected_us(const Problem& problem, const Candidate& candidate, double us, int sm_count,
                       Card card);

// About corrected_us(), within a share of `tolerance`, in a fraction of its time. Its sums are the
// network's in another order.
class CorrectionEstimate {
public:
    static constexpr double tolerance = 1e-3;

    // The problem must outlive it.
    CorrectionEstimate(const Problem& problem, int sm_count, Card card);
    // Of up to eight candidates, all split-K or none, all stream-K or none. `us`: the model's predictions,
    // eight numbers, as `early` and `late` are.
    void operator()(std::span<const Candidate> candidates, const float* us, float* early,
                    float* late) const;

private:
    const Problem& p_;
    int sm_count_;
    Card card_;
    // Inputs of the hidden layer, as far as operands determine them, by swap_ab.
    float of_operands_[2][hidden_units];
};

}  // namespace hg::sm90
