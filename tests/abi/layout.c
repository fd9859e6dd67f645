/* Prints the values of the header's constants and where the members of its structs lie: what a program that
   was compiled with an older header, or in another language, relies on. */
#include <hgemm.h>

#include <stdio.h>

#define VALUE(name)          printf("%s = %d\n", #name, (int)(name))
#define SIZE(type)           printf("%s: %zu bytes\n", #type, sizeof(type))
#define MEMBER(type, member) printf("%s.%s at %zu\n", #type, #member, offsetof(type, member))

int main(void)
{
    VALUE(HGEMM_STATUS_SUCCESS);
    VALUE(HGEMM_STATUS_NOT_INITIALIZED);
    VALUE(HGEMM_STATUS_INVALID_ARGUMENT);
    VALUE(HGEMM_STATUS_NOT_SUPPORTED);
    VALUE(HGEMM_STATUS_ALLOC_FAILED);
    VALUE(HGEMM_STATUS_NO_DEVICE);
    VALUE(HGEMM_STATUS_DRIVER_ERROR);
    VALUE(HGEMM_STATUS_LAUNCH_FAILED);
    VALUE(HGEMM_STATUS_WORKSPACE_TOO_SMALL);
    VALUE(HGEMM_STATUS_INTERNAL);
    VALUE(HGEMM_STATUS_TIMED_OUT);

    VALUE(HGEMM_ROW_MAJOR);
    VALUE(HGEMM_COL_MAJOR);

    VALUE(HGEMM_NO_TRANS);
    VALUE(HGEMM_TRANS);
    VALUE(HGEMM_CONJ_TRANS);

    VALUE(HGEMM_F16);
    VALUE(HGEMM_BF16);
    VALUE(HGEMM_F32);

    VALUE(HGEMM_MODE_DEFAULT);
    VALUE(HGEMM_MODE_BATCH_INVARIANT);
    VALUE(HGEMM_MODE_TREE);

    VALUE(HGEMM_LOG_OFF);
    VALUE(HGEMM_LOG_ERROR);
    VALUE(HGEMM_LOG_PLAN);
    VALUE(HGEMM_LOG_TRACE);

    VALUE(HGEMM_ACTIVATION_NONE);
    VALUE(HGEMM_ACTIVATION_RELU);
    VALUE(HGEMM_ACTIVATION_GELU_TANH);
    VALUE(HGEMM_ACTIVATION_GELU_ERF);
    VALUE(HGEMM_ACTIVATION_SILU);

    VALUE(HGEMM_BIAS_NONE);
    VALUE(HGEMM_BIAS_M);
    VALUE(HGEMM_BIAS_N);

    VALUE(HGEMM_UPLO_NONE);
    VALUE(HGEMM_UPPER);
    VALUE(HGEMM_LOWER);
    VALUE(HGEMM_BOTH);

    VALUE(HGEMM_GROUPED_CONTIGUOUS);
    VALUE(HGEMM_GROUPED_MASKED);
    VALUE(HGEMM_GROUPED_HOST);
    VALUE(HGEMM_GROUPED_K);

    VALUE(HGEMM_DEVICE_HOST);
    VALUE(HGEMM_DEVICE_CURRENT);

    SIZE(hgemm_gate_t);
    MEMBER(hgemm_gate_t, block);
    MEMBER(hgemm_gate_t, limit);
    MEMBER(hgemm_gate_t, slope);
    MEMBER(hgemm_gate_t, offset);
    MEMBER(hgemm_gate_t, unused);

    SIZE(hgemm_args_t);
    MEMBER(hgemm_args_t, size);
    MEMBER(hgemm_args_t, layout);
    MEMBER(hgemm_args_t, transa);
    MEMBER(hgemm_args_t, transb);
    MEMBER(hgemm_args_t, type_ab);
    MEMBER(hgemm_args_t, type_c);
    MEMBER(hgemm_args_t, type_d);
    MEMBER(hgemm_args_t, m);
    MEMBER(hgemm_args_t, n);
    MEMBER(hgemm_args_t, k);
    MEMBER(hgemm_args_t, alpha);
    MEMBER(hgemm_args_t, beta);
    MEMBER(hgemm_args_t, alpha_device);
    MEMBER(hgemm_args_t, beta_device);
    MEMBER(hgemm_args_t, a);
    MEMBER(hgemm_args_t, lda);
    MEMBER(hgemm_args_t, b);
    MEMBER(hgemm_args_t, ldb);
    MEMBER(hgemm_args_t, c);
    MEMBER(hgemm_args_t, ldc);
    MEMBER(hgemm_args_t, d);
    MEMBER(hgemm_args_t, ldd);
    MEMBER(hgemm_args_t, batch_count);
    MEMBER(hgemm_args_t, stride_a);
    MEMBER(hgemm_args_t, stride_b);
    MEMBER(hgemm_args_t, stride_c);
    MEMBER(hgemm_args_t, stride_d);
    MEMBER(hgemm_args_t, a_array);
    MEMBER(hgemm_args_t, b_array);
    MEMBER(hgemm_args_t, c_array);
    MEMBER(hgemm_args_t, d_array);
    MEMBER(hgemm_args_t, bias_mode);
    MEMBER(hgemm_args_t, bias_type);
    MEMBER(hgemm_args_t, bias);
    MEMBER(hgemm_args_t, stride_bias);
    MEMBER(hgemm_args_t, activation);
    MEMBER(hgemm_args_t, aux);
    MEMBER(hgemm_args_t, ldaux);
    MEMBER(hgemm_args_t, stride_aux);
    MEMBER(hgemm_args_t, flags);
    MEMBER(hgemm_args_t, unused);
    MEMBER(hgemm_args_t, uplo);
    MEMBER(hgemm_args_t, unused_too);
    MEMBER(hgemm_args_t, gate);

    SIZE(hgemm_grouped_args_t);
    MEMBER(hgemm_grouped_args_t, size);
    MEMBER(hgemm_grouped_args_t, grouping);
    MEMBER(hgemm_grouped_args_t, transb);
    MEMBER(hgemm_grouped_args_t, type_ab);
    MEMBER(hgemm_grouped_args_t, type_d);
    MEMBER(hgemm_grouped_args_t, group_count);
    MEMBER(hgemm_grouped_args_t, m);
    MEMBER(hgemm_grouped_args_t, n);
    MEMBER(hgemm_grouped_args_t, k);
    MEMBER(hgemm_grouped_args_t, alpha);
    MEMBER(hgemm_grouped_args_t, beta);
    MEMBER(hgemm_grouped_args_t, a);
    MEMBER(hgemm_grouped_args_t, lda);
    MEMBER(hgemm_grouped_args_t, stride_a);
    MEMBER(hgemm_grouped_args_t, b);
    MEMBER(hgemm_grouped_args_t, ldb);
    MEMBER(hgemm_grouped_args_t, stride_b);
    MEMBER(hgemm_grouped_args_t, d);
    MEMBER(hgemm_grouped_args_t, ldd);
    MEMBER(hgemm_grouped_args_t, stride_d);
    MEMBER(hgemm_grouped_args_t, offsets);
    MEMBER(hgemm_grouped_args_t, counts);
    MEMBER(hgemm_grouped_args_t, problems);
    MEMBER(hgemm_grouped_args_t, ends);
    MEMBER(hgemm_grouped_args_t, ends_i32);
    MEMBER(hgemm_grouped_args_t, offsets_i32);
    MEMBER(hgemm_grouped_args_t, counts_i32);
    MEMBER(hgemm_grouped_args_t, transa);
    MEMBER(hgemm_grouped_args_t, flags);
    MEMBER(hgemm_grouped_args_t, activation);
    MEMBER(hgemm_grouped_args_t, unused);
    MEMBER(hgemm_grouped_args_t, gate);
    MEMBER(hgemm_grouped_args_t, bias);
    MEMBER(hgemm_grouped_args_t, stride_bias);
    MEMBER(hgemm_grouped_args_t, bias_type);
    MEMBER(hgemm_grouped_args_t, unused_too);
    MEMBER(hgemm_grouped_args_t, aux);
    MEMBER(hgemm_grouped_args_t, ldaux);
    MEMBER(hgemm_grouped_args_t, stride_aux);
    SIZE(hgemm_gate_gradient_args_t);
    MEMBER(hgemm_gate_gradient_args_t, size);
    MEMBER(hgemm_gate_gradient_args_t, rows);
    MEMBER(hgemm_gate_gradient_args_t, columns);
    MEMBER(hgemm_gate_gradient_args_t, product);
    MEMBER(hgemm_gate_gradient_args_t, ld_product);
    MEMBER(hgemm_gate_gradient_args_t, of_d);
    MEMBER(hgemm_gate_gradient_args_t, ld_of_d);
    MEMBER(hgemm_gate_gradient_args_t, of_product);
    MEMBER(hgemm_gate_gradient_args_t, ld_of_product);
    MEMBER(hgemm_gate_gradient_args_t, type_product);
    MEMBER(hgemm_gate_gradient_args_t, type_of_d);
    MEMBER(hgemm_gate_gradient_args_t, type_of_product);
    MEMBER(hgemm_gate_gradient_args_t, activation);
    MEMBER(hgemm_gate_gradient_args_t, gate);

    SIZE(hgemm_route_args_t);
    MEMBER(hgemm_route_args_t, size);
    MEMBER(hgemm_route_args_t, tokens);
    MEMBER(hgemm_route_args_t, choices);
    MEMBER(hgemm_route_args_t, experts);
    MEMBER(hgemm_route_args_t, chosen);
    MEMBER(hgemm_route_args_t, chosen_i32);
    MEMBER(hgemm_route_args_t, ld);
    MEMBER(hgemm_route_args_t, ends);
    MEMBER(hgemm_route_args_t, row_of_choice);
    MEMBER(hgemm_route_args_t, choice_of_row);

    SIZE(hgemm_rows_args_t);
    MEMBER(hgemm_rows_args_t, size);
    MEMBER(hgemm_rows_args_t, tokens);
    MEMBER(hgemm_rows_args_t, choices);
    MEMBER(hgemm_rows_args_t, columns);
    MEMBER(hgemm_rows_args_t, row_of_choice);
    MEMBER(hgemm_rows_args_t, weights);
    MEMBER(hgemm_rows_args_t, ldw);
    MEMBER(hgemm_rows_args_t, a);
    MEMBER(hgemm_rows_args_t, lda);
    MEMBER(hgemm_rows_args_t, d);
    MEMBER(hgemm_rows_args_t, ldd);
    MEMBER(hgemm_rows_args_t, type_a);
    MEMBER(hgemm_rows_args_t, type_d);
    MEMBER(hgemm_rows_args_t, type_weights);
    MEMBER(hgemm_rows_args_t, unused);
    MEMBER(hgemm_rows_args_t, b);
    MEMBER(hgemm_rows_args_t, ldb);
    MEMBER(hgemm_rows_args_t, type_b);
    MEMBER(hgemm_rows_args_t, unused_too);

    SIZE(hgemm_flag_t);
    MEMBER(hgemm_flag_t, raised);
    MEMBER(hgemm_flag_t, taken);
    MEMBER(hgemm_flag_t, internal);

    SIZE(hgemm_exchange_args_t);
    MEMBER(hgemm_exchange_args_t, size);
    MEMBER(hgemm_exchange_args_t, raise);
    MEMBER(hgemm_exchange_args_t, raise_count);
    MEMBER(hgemm_exchange_args_t, wait);
    MEMBER(hgemm_exchange_args_t, wait_count);
    MEMBER(hgemm_exchange_args_t, limit_us);
    MEMBER(hgemm_exchange_args_t, error);
    MEMBER(hgemm_exchange_args_t, rows);
    MEMBER(hgemm_exchange_args_t, columns);
    MEMBER(hgemm_exchange_args_t, parts);
    MEMBER(hgemm_exchange_args_t, part_count);
    MEMBER(hgemm_exchange_args_t, ld_part);
    MEMBER(hgemm_exchange_args_t, d);
    MEMBER(hgemm_exchange_args_t, d_count);
    MEMBER(hgemm_exchange_args_t, ldd);
    MEMBER(hgemm_exchange_args_t, type_part);
    MEMBER(hgemm_exchange_args_t, type_d);
    MEMBER(hgemm_exchange_args_t, bias);
    MEMBER(hgemm_exchange_args_t, bias_type);
    MEMBER(hgemm_exchange_args_t, unused);
    MEMBER(hgemm_exchange_args_t, raise_after);
    MEMBER(hgemm_exchange_args_t, raise_after_count);

    SIZE(hgemm_blocks_t);
    MEMBER(hgemm_blocks_t, size);
    MEMBER(hgemm_blocks_t, rows);
    MEMBER(hgemm_blocks_t, first);
    MEMBER(hgemm_blocks_t, wait);
    MEMBER(hgemm_blocks_t, raise);
    MEMBER(hgemm_blocks_t, d);
    MEMBER(hgemm_blocks_t, limit_us);
    MEMBER(hgemm_blocks_t, error);

    SIZE(hgemm_tune_options_t);
    MEMBER(hgemm_tune_options_t, size);
    MEMBER(hgemm_tune_options_t, max_candidates);
    MEMBER(hgemm_tune_options_t, max_rounds);
    MEMBER(hgemm_tune_options_t, max_seconds);
    MEMBER(hgemm_tune_options_t, write);
    MEMBER(hgemm_tune_options_t, path);

    SIZE(hgemm_tune_report_t);
    MEMBER(hgemm_tune_report_t, size);
    MEMBER(hgemm_tune_report_t, candidates);
    MEMBER(hgemm_tune_report_t, wrong);
    MEMBER(hgemm_tune_report_t, failed);
    MEMBER(hgemm_tune_report_t, rounds);
    MEMBER(hgemm_tune_report_t, complete);
    MEMBER(hgemm_tune_report_t, built_in_us);
    MEMBER(hgemm_tune_report_t, before_us);
    MEMBER(hgemm_tune_report_t, now_us);
    MEMBER(hgemm_tune_report_t, gain);
    MEMBER(hgemm_tune_report_t, spread);
    MEMBER(hgemm_tune_report_t, built_in);
    MEMBER(hgemm_tune_report_t, before);
    MEMBER(hgemm_tune_report_t, now);
    MEMBER(hgemm_tune_report_t, wrong_kernels);
    MEMBER(hgemm_tune_report_t, path);
    return 0;
}
