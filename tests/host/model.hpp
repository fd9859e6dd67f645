// A plain implementation of hgemm_gemm_ex in host memory, with fp32 sums in the order of k: what the suite
// must accept. With a defect it does what a broken kernel would: what the suite must notice.
#pragma once

#include "../engine.hpp"
#include "hgemm.h"
#include "src/tools/support/reference.hpp"

#include <span>

namespace hg::test {

#define HGEMM_DEFECTS(D)                                                                                   \
    D(none)                                                                                                \
    D(last_product_lost)                                                                                   \
    D(one_product_of_one_element_lost)                                                                     \
    D(k_step_lost)                                                                                         \
    D(odd_k_tail_lost)                                                                                     \
    D(tile_not_written)                                                                                    \
    D(tile_from_stale_stage)                                                                               \
    D(sums_in_fp16)                                                                                        \
    D(sums_in_bf16)                                                                                        \
    D(result_truncated)                                                                                    \
    D(result_rounded_through_fp16)                                                                         \
    D(ties_away_from_zero)                                                                                 \
    D(overflow_saturates)                                                                                  \
    D(subnormal_operands_flushed)                                                                          \
    D(subnormal_results_flushed)                                                                           \
    D(c_read_when_beta_is_0)                                                                               \
    D(ab_read_when_alpha_is_0)                                                                             \
    D(alpha_ignored)                                                                                       \
    D(beta_taken_as_1)                                                                                     \
    D(scalars_in_memory_ignored)                                                                           \
    D(c_taken_from_d)                                                                                      \
    D(lda_off_by_one)                                                                                      \
    D(square_a_not_transposed)                                                                             \
    D(element_behind_row_written)                                                                          \
    D(rows_stored_in_eights)                                                                               \
    D(operand_written)                                                                                     \
    D(k_read_in_eights)                                                                                    \
    D(empty_product_not_stored)                                                                            \
    D(sign_of_zero_lost)                                                                                   \
    D(batch_stride_of_a_ignored)                                                                           \
    D(negative_stride_taken_as_positive)                                                                   \
    D(first_pointer_of_array_for_all)                                                                      \
    D(bias_off_by_one)                                                                                     \
    D(bias_along_the_other_side)                                                                           \
    D(activation_before_bias)                                                                              \
    D(relu_swallows_nan)                                                                                   \
    D(activation_of_minus_infinity_is_nan)                                                                 \
    D(gelu_cancels)                                                                                        \
    D(aux_after_activation)                                                                                \
    D(order_of_sum_changes_between_runs)                                                                   \
    D(order_of_sum_depends_on_row)                                                                         \
    D(order_of_sum_depends_on_n)

enum class Defect {
#define DEFECT(name) name,
    HGEMM_DEFECTS(DEFECT)
#undef DEFECT
};
std::span<const char* const> defect_names();

class Model : public Engine {
public:
    explicit Model(Defect defect) : defect_(defect) {}
    Memory& memory() override { return memory_; }
    Arithmetic arithmetic() const override { return Arithmetic::of_cpu(); }
    hgemm_status_t run(const hgemm_args_t& args) override;

private:
    struct Strides {
        int64_t row, column;
    };
    struct Problem {
        const char *a, *b, *c;
        char *d, *aux;
        const char* bias;
    };
    bool is(Defect defect) const { return defect_ == defect; }
    bool multiplies(const hgemm_args_t& g) const;
    bool leaves_c_alone(const hgemm_args_t& g) const;
    Problem locate(const hgemm_args_t& g, int64_t z) const;
    Strides strides_a(const hgemm_args_t& g) const;
    Dense sums(const hgemm_args_t& g, const Problem& problem) const;
    void load_operands(const hgemm_args_t& g, const Problem& problem, Dense& a, Dense& b) const;
    void add(const hgemm_args_t& g, const Dense& a, const Dense& b, int64_t p, Dense& sum) const;
    void store_results(const hgemm_args_t& g, const Problem& problem, const Dense& sum) const;
    double rounded(hgemm_type_t type, double value) const;
    void put(hgemm_type_t type, void* element, double value) const;

    Defect defect_;
    HostMemory memory_;
    int runs_ = 0;
};

}  // namespace hg::test
