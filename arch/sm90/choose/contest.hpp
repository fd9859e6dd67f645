// The contest: which candidate has the shortest predicted time. Exact predictions are slow, so they are
// made only of the candidates whose estimates lie within a tolerance of the best one.
#pragma once

#include "arch/sm90/choose/candidates.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/choose/model/model.hpp"

#include <limits>
#include <span>

namespace hg::sm90 {

struct Choice {
    Candidate candidate;
    Prediction prediction;
};

constexpr Choice no_choice{{}, {std::numeric_limits<double>::infinity(), Pdl::Free}};

// All arguments must outlive the contest. It takes 40 KB, and allocates nothing.
class Contest {
public:
    Contest(const Facts& facts, const Options& options, int sm_count, const KernelFactors& factors);

    // The best candidate by the model, or no_choice. by_network() may be asked about those that take less
    // than `slack` times as long.
    Choice by_model(double slack);
    // The best by the network, of those that take less than `limit` microseconds by the model, but for
    // those of many slices: the networks have seen none.
    Choice by_network(Card card, double limit);

private:
    // A candidate that may win, and its estimate, at first by the model, then by the network.
    struct Contestant {
        float us;
        int32_t clusters;
        uint8_t kernel, split;
        bool swap_ab, stream_k, pdl_off;
    };

    // What of a kernel is legal and worth a prediction.
    struct Admitted {
        int64_t clusters;
        Ways ways;
        bool is_known;
    };

    const Admitted& admitted(int kernel, bool swap_ab)
    {
        Admitted& a = admitted_[kernel][swap_ab];
        if (!a.is_known)
            a = look_up(kernel, swap_ab);
        return a;
    }
    Admitted look_up(int kernel, bool swap_ab) const;
    bool is_admitted(const Candidate& candidate);
    static Candidate candidate_of(const Contestant& contestant);
    void admit(Row& row, double limit, double& least);
    double find_contestants(double slack);
    double add_types(double us, const Candidate& candidate) const;
    double add_elements(double us, const Candidate& candidate) const;
    double add_output(double us, const Candidate& candidate) const;
    float exact_us(const Contestant& contestant) const;  // by the model
    double by_model_us(double us, const Candidate& candidate) const;
    void correct(const CorrectionEstimate& estimate, std::span<Contestant> contestants) const;
    Prediction prediction_of(const Corrected& time, const Candidate& candidate) const;

    const Facts& f_;
    const Options& o_;
    const int sm_count_;
    const KernelFactors& factors_;
    const bool has_output_costs_;
    const bool adds_output_;  // to the model's predictions; to the networks' always
    const Model model_;
    Admitted admitted_[gemm_count][2];
    Contestant contestants_[max_candidates];
    int count_ = 0;
};

}  // namespace hg::sm90
