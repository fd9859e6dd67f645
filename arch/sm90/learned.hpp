// What measurements add to the cost model: small networks that say how far its prediction is off, one for
// products whose operands both are contiguous along k, one for all others. One hidden layer; they see what
// the model sees of a way, and eight numbers a kernel that were fitted with them: to an H200, and to an
// H100 once more.
#pragma once

#include "arch/sm90/model.hpp"

namespace hg::sm90 {

// What a network sees of a way. learn.py reads the names.
struct Feature {
    enum {
        predicted,
        swapped,
        slices,
        streams,
        alone,
        late,
        x_rows,
        y_rows,
        depth,
        all_clusters,
        k_tiles,
        waves,
        whole_waves,
        filled,
        load,
        used_x,
        used_y,
        x_straddles,
        y_straddles,
        x_panels,
        y_panels,
        used_panels,
        ctas,
        count
    };
};

// A way as a network sees it: `us` is the model's prediction.
void describe(const Problem& problem, const Config& config, const Way& way, Overlap overlap, double us,
              int sm_count, float (&features)[Feature::count]);

// Whose measurements hold: an H100's where memory is as much slower as its, else an H200's.
enum class Card { H100, H200 };
Card card_of(const Device& device);

// Is this a product like those that were measured, on a whole card? The rows of a batch count as one
// problem's.
bool is_learned(const Problem& problem, int sm_count);

// Products that the model expects to take longer were hardly measured on H200s; on H100s the model's
// choices of those cost 2.1 % over the fastest way, the network's 1.6.
constexpr double longest_learned_us(Card card)
{
    return card == Card::H200 ? 1000.0 : std::numeric_limits<double>::infinity();
}

// Microseconds that a way takes, by the model's prediction `us` and by measurements: where it lets the next
// kernel start early, as if alone, and late.
struct Learned {
    double early, late;
};

Learned learned_us(const Problem& problem, const Config& config, const Way& way, double us, int sm_count,
                   Card card);

}  // namespace hg::sm90
