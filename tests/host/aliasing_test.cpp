// Outputs that overlap operands, or each other, are refused where the checks can find it; legal calls are
// served.
#include "../library.hpp"
#include "message.hpp"

#include "hgemm.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace hg::test {
namespace {

// A row-major GEMM of 4 x 6 x 5 with matrices anywhere in one piece of memory, rows 16 elements apart.
class Aliasing : public testing::Test {
protected:
    static constexpr int64_t m = 4, n = 6, k = 5, ld = 16;

    Aliasing()
    {
        hgemm_args_init(&args, sizeof args);
        args.layout = HGEMM_ROW_MAJOR;
        args.m = m;
        args.n = n;
        args.k = k;
        args.lda = args.ldb = args.ldc = args.ldd = args.ldaux = ld;
        args.a = at(0);
        args.b = at(100);
        args.d = at(300);
    }
    uint16_t* at(int64_t element) { return &memory[static_cast<size_t>(element)]; }
    void served(const char* what)
    {
        EXPECT_EQ(hgemm_gemm_ex(library.handle(), &args), HGEMM_STATUS_SUCCESS)
            << what << ": " << hgemm_last_error();
    }
    void refused(const std::string& text)
    {
        memory.assign(memory.size(), 0x1234);
        expect_invalid(hgemm_gemm_ex(library.handle(), &args), 2, text);
        EXPECT_EQ(memory, std::vector<uint16_t>(memory.size(), 0x1234)) << "something was written";
    }

    Library library{nullptr};
    std::vector<uint16_t> memory = std::vector<uint16_t>(4000, 0x3c00);
    hgemm_args_t args;
};

TEST_F(Aliasing, of_d_and_a_or_b_is_refused)
{
    const std::string of_a = "(args->d) overlaps args->a, must lie apart from it",
                      of_b = "(args->d) overlaps args->b";
    args.d = at(0);
    refused(of_a);
    args.d = at(4);
    refused(of_a);
    args.d = at(3 * ld + 4);
    refused(of_a);
    args.d = at(100);
    refused(of_b);
    args.type_d = HGEMM_F32;
    args.ldd = 9;
    args.d = at(100 + 2 * ld + 4);
    refused(of_b);
}

TEST_F(Aliasing, of_what_only_lies_between_each_other_is_served)
{
    args.b = at(500);
    args.d = at(5);
    served("D beside A, in the same lines");
    args.d = at(ld - n);
    served("D at the end of A's lines");
    args.d = at(4 * ld);
    served("D behind A");
    args.alpha = 0;
    args.d = at(0);
    served("A, which is not read");
    args.alpha = 1;
    args.m = 0;
    served("nothing is written");
}

TEST_F(Aliasing, of_c_and_d_is_all_or_nothing)
{
    args.beta = 1;
    args.c = args.d;
    served("C is D");
    args.c = at(300 + n);
    served("C beside D");
    for (const int64_t shift : {1, 5, -5, 16, -16}) {
        args.c = at(300 + shift);
        refused("(args->c) overlaps args->d, must lie apart from it");
    }
    args.beta = 0;
    served("C, which is not read");
}

TEST_F(Aliasing, of_aux_is_refused)
{
    args.aux = args.d;
    refused("(args->aux) overlaps args->d");
    args.aux = at(2);
    refused("(args->aux) overlaps args->a");
    args.aux = at(100 + ld);
    refused("(args->aux) overlaps args->b");
    args.aux = at(300 + n);
    served("aux beside D");
    args.beta = 1;
    args.c = at(400);
    args.aux = at(400 + ld);
    refused("(args->aux) overlaps args->c");
    args.beta = 0;
    served("aux over a C that is not read");
}

TEST_F(Aliasing, of_a_bias_is_refused)
{
    args.bias_mode = HGEMM_BIAS_N;
    args.bias_type = args.type_d;
    args.bias = args.d;
    refused("(args->d) overlaps args->bias, must lie apart from it");
    args.alpha = 0;  // it is read all the same
    refused("(args->d) overlaps args->bias");
    args.alpha = 1;
    args.aux = at(500);
    args.ldaux = ld;
    args.bias = at(500 + ld);
    refused("(args->aux) overlaps args->bias");
    args.bias = at(400);
    served("a bias behind D");
}

TEST_F(Aliasing, of_batches_is_refused)
{
    args.batch_count = 3;
    args.stride_a = m * ld;
    args.stride_b = 0;
    args.stride_d = m * ld;
    args.b = at(1000);
    args.d = at(2 * m * ld + 5);
    served("D beside the last A");
    args.d = at(2 * m * ld + 4);
    refused("(args->d) overlaps args->a");
    args.stride_d = -m * ld;
    refused("(args->d) overlaps args->a");
    // Problems of a batch that share rows of D.
    args.d = at(300);
    args.stride_d = n;
    args.ldd = 3 * n;
    served("side by side");
    args.ldd = 3 * n - 1;
    refused(
        "(args->stride_d) is 6, must separate the outputs of 3 problems: those of problems 0 and 2 share "
        "elements");
    args.stride_d = ld;
    args.ldd = 3 * ld;
    served("line by line");
    args.stride_d = 2 * ld;
    served("lines taken in turns");
    args.stride_d = 6 * ld;
    refused("(args->stride_d) is 96, must separate the outputs of 3 problems");
}

TEST_F(Aliasing, is_told_by_the_functions_with_prototypes)
{
    const auto expect = [&](hgemm_status_t status, int position, const std::string& text) {
        expect_invalid(status, position, text);
    };
    hgemm_handle_t h = library.handle();
    expect(hgemm_nn(h, 4, 4, 4, 1, at(0), 4, at(100), 4, 0, at(15), 4), 11,
           "hgemm_nn: argument 11 (C) overlaps A, must lie apart from it");
    expect(bgemm_tt(h, 4, 4, 4, 1, at(0), 4, at(100), 4, 0, at(100), 4), 11, "(C) overlaps B");
    expect(hgemm(h, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 4, 4, 4, 1, at(0), 4, at(100), 4, 0,
                 at(0), 4),
           14, "hgemm: argument 14 (C) overlaps A");
    expect(hgemm_strided_batched(h, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 4, 4, 4, 1, at(0), 4, 16,
                                 at(100), 4, 16, 0, at(200), 4, 8, 2),
           18,
           "hgemm_strided_batched: argument 18 (stride_c) is 8, must separate the outputs of 2 problems");
    expect(hgemm_strided_batched(h, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, 4, 4, 4, 1, at(0), 4, 16,
                                 at(100), 4, 16, 0, at(116), 4, 16, 2),
           16, "(C) overlaps B");
    EXPECT_EQ(hgemm_nn(h, 4, 4, 4, 1, at(0), 4, at(100), 4, 1, at(16), 4), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
}

TEST_F(Aliasing, of_vectors_is_refused)
{
    hgemm_handle_t h = library.handle();
    expect_invalid(hgemv_n(h, 5, 4, 1, at(0), 8, at(100), 1, 0, at(7), 1), 10,
                   "hgemv_n: argument 10 (y) overlaps A, must lie apart from it");
    expect_invalid(bgemv_t(h, 5, 4, 1, at(0), 8, at(100), -2, 0, at(108), 3), 10,
                   "bgemv_t: argument 10 (y) overlaps x, must lie apart from it");
    EXPECT_EQ(bgemv_t(h, 5, 4, 1, at(0), 8, at(100), 2, 0, at(101), 2), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    EXPECT_EQ(hgemv_n(h, 5, 4, 1, at(0), 8, at(100), 1, 0, at(5), -8), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
    EXPECT_EQ(hgemv_n(h, 5, 4, 0, at(0), 8, at(100), 1, 0, at(0), 1), HGEMM_STATUS_SUCCESS)
        << hgemm_last_error();
}

}  // namespace
}  // namespace hg::test
