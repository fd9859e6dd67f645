// The cost model of sm90: how long a candidate takes.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/choose/model/lanes.hpp"
#include "arch/sm90/choose/model/occupancy.hpp"
#include "arch/sm90/kernels.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/calibration.hpp"

#include <array>
#include <cstdint>

namespace hg::sm90 {

// The largest offset, as a fraction of 128 bytes, at which a row of an operand begins behind a 128-byte
// line of L2. A TMA request of 128 bytes that is not aligned to such a line reads two.
double misalignment(const Operand& operand);

// A batch with less than 140 flops a byte: its time is mostly that between two tiles, which single GEMMs
// hide. predict() has other constants for it.
bool is_low_intensity_batch(const Problem& problem);

// Cycles a K tile of the port of a GPC to L2; 0 where tiles cannot be placed by GPC.
double port_cycles(const Problem& problem, const Candidate& candidate, int sm_count);

struct Prediction {
    double us;
    Pdl pdl;
};

// An operand of the MMA.
struct Side {
    double rows, bytes;
    double weight;  // of its bytes from L2: misaligned ones cost more
    bool is_mn, is_narrow;
};
struct Sides {
    Side a, b;
};

// Of a problem, for all kernels.
struct ProblemNumbers {
    int sm_count;
    bool low_intensity, by_element;  // is_low_intensity_batch(); is D stored element by element?
    double batch, output;            // `output`: bytes of D
    double k_tiles[max_slices + 1];  // of the longest slice, by slices
};

// Kernels that follow each other in the table and have one schedule.
struct KernelEight {
    int first, count;
};
constexpr void cut_to_eights(auto visit)
{
    for (int first = 0, next = 0; first < gemm_count; first = next) {
        while (next < gemm_count && next < first + Lanes::count &&
               configs[next].schedule == configs[first].schedule)
            ++next;
        visit(KernelEight{first, next - first});
    }
}
constexpr int eights_count = [] {
    int count = 0;
    cut_to_eights([&](KernelEight) { ++count; });
    return count;
}();
constexpr auto eights = [] {
    std::array<KernelEight, eights_count> all{};
    int i = 0;
    cut_to_eights([&](KernelEight eight) { all[i++] = eight; });
    return all;
}();

// Which candidates are estimated.
struct Asked {
    int most_slices;
    bool with_pdl, without_pdl;  // with both, of those without PDL only what can be placed by GPC
    float limit;                 // microseconds; rows in which nothing takes less may be left out
};

// Eight kernels, and what none of their candidates falls below, in microseconds.
struct OrderedEight {
    float least_us;
    bool swap_ab;
    const KernelEight* eight;
};

// Candidates with kernels from `kernel` on that differ in nothing else.
struct Row {
    float us[Lanes::count];  // infinite where there is no such kernel
    float least;
    uint8_t kernel, split;
    bool swap_ab, stream_k, pdl_off;
    bool is_bound;  // the times are lower bounds: some tiles can be placed by GPC
};
// Of legal_splits[].
constexpr int max_global_ways = few_slices + (max_slices - few_slices) / 4;
constexpr int max_rows = 2 * 2 * [] {
    int count = 0;
    for (const KernelEight& eight : eights) {
        const Config& c = configs[eight.first];
        count += c.is_global() ? max_global_ways : c.is_split() ? max_cluster : 2;
    }
    return count;
}();

// The model of a problem, which must outlive it.
class Model {
public:
    // More than the share by which estimate() differs from predict().
    static constexpr double tolerance = 3e-4;

    Model(const Facts& facts, int sm_count);
    Prediction predict(const Candidate& candidate, const Factors& factors) const;
    // All kernels with and without swap_ab, those first that may be the fastest.
    void order_eights(const KernelFactors& factors, OrderedEight (&ordered)[2 * eights_count]) const;
    // About what predict() says of the candidates of eight kernels, legal or not, each in a thirtieth of
    // the time. Returns the number of rows.
    int estimate(const OrderedEight& next, const Asked& asked, const KernelFactors& factors,
                 Row* rows) const;

    // Replaces lower bounds below `limit` by estimates.
    void refine(Row& row, float limit, const KernelFactors& factors) const;

private:
    const Problem& problem_;
    ProblemNumbers numbers_;
    Sides sides_[2];  // by swap_ab
};

inline Prediction predict(const Facts& facts, const Candidate& candidate, int sm_count,
                          const Factors& factors = {})
{
    return Model(facts, sm_count).predict(candidate, factors);
}

}  // namespace hg::sm90
