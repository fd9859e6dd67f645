// What measurements add to the cost model: small networks that say how far its prediction is off, one for
// products whose operands both are contiguous along k, one for all others. One hidden layer; they see what
// the model sees of a way, and eight numbers a kernel that were fitted with them.
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

// Is this a product like those that were measured: one problem, on a whole H200?
bool is_learned(const Problem& problem, int sm_count);

// Products that the model expects to take longer were hardly measured.
constexpr double longest_learned_us = 1000;

// Microseconds that a way takes, by the model's prediction `us` and by measurements: where it lets the next
// kernel start early, as if alone, and late.
struct Learned {
    double early, late;
};

Learned learned_us(const Problem& problem, const Config& config, const Way& way, double us, int sm_count);

}  // namespace hg::sm90
