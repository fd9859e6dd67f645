// The candidates of sm90: which may run, and which of them are worth a prediction.
#pragma once

#include "arch/common/host/pack.hpp"
#include "arch/sm90/choose/model/model.hpp"
#include "arch/sm90/kernels.hpp"
#include "src/plan/backend.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace hg::sm90 {

// A set of ways to share a kernel's work: bit i, K is cut into i slices; `stream_k_way`, stream-K.
using Ways = uint64_t;
constexpr int stream_k_way = 63;
static_assert(max_slices < stream_k_way);

// How a kernel may run; none if it does not serve the problem. `options.workspace` is without the room for
// copies.
Ways legal_ways(const Facts& facts, int kernel, bool swap_ab, int64_t clusters, const Options& options,
                int sm_count);
// May its clusters, as many as these, share the K tiles of the last waves?
bool can_stream_k(const Problem& problem, const Config& config, int64_t clusters, const Options& options,
                  int sm_count);
// Of legal ways those with pdl_off, or those without.
Ways ways_with(bool pdl_off, Ways ways, int kernel, int64_t clusters, const Options& options, int sm_count);

bool is_legal(const Facts& facts, const Candidate& candidate, const Options& options, int sm_count);

// Of legal ways those that are worth a prediction.
Ways worthy_ways(const Problem& problem, Ways ways, int kernel, int64_t clusters, const Options& options,
                 int sm_count);

// The most that there are.
constexpr int max_candidates = [] {
    int count = 0;
    for (int kernel = 0; kernel < gemm_count; ++kernel)
        count += std::popcount(legal_splits[kernel]) + (configs[kernel].is_split() ? 0 : 1);
    return count * 4;  // with and without swap_ab and PDL
}();

}  // namespace hg::sm90
