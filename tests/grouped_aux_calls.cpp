// What grouped calls refuse of aux.
#include "buffer.hpp"
#include "library_rules.hpp"
#include "wrong_calls.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace hg::test {
namespace {

using Groups = hgemm_grouped_args_t;

constexpr int64_t distant = int64_t{1} << 62;

// Of contiguous and of masked groups.
const WrongCall<Groups> wrong_aux[] = {
    {"(args->aux) is 0x", [](auto& x) { x.gate.block = 0; }},
    {"must be NULL without args->gate.block", [](auto& x) { x.gate.block = 0; }},
    {"(args->aux) is 0x", [](auto& x) { misalign(x.aux); }},
    {"(args->aux) is 0x", [](auto& x) { x.type_d = HGEMM_F32, x.aux = static_cast<char*>(x.aux) + 2; }},
    {"(args->ldaux) is 7, must be at least n = 8", [](auto& x) { x.ldaux = 7; }},
    {"(args->ldaux) is 0, must be at least n = 8", [](auto& x) { x.ldaux = 0; }},
    {"(args->ldaux) is -8, must be at least n = 8", [](auto& x) { x.ldaux = -8; }},
    {"(args->ldaux) is 4611686018427387904, too large", [](auto& x) { x.ldaux = distant; }},
    {"(args->aux) overlaps args->a", [](auto& x) { x.aux = const_cast<void*>(x.a); }},
    {"(args->aux) overlaps args->b", [](auto& x) { x.aux = const_cast<void*>(x.b); }},
    {"(args->aux) overlaps args->d", [](auto& x) { x.aux = x.d; }},
    {"(args->aux) overlaps args->bias", [](auto& x) { x.bias = x.aux, x.bias_type = HGEMM_F16; }},
};

const WrongCall<Groups> wrong_masked_aux[] = {
    {"(args->stride_aux) is 0, must separate the outputs of 2 groups", [](auto& x) { x.stride_aux = 0; }},
    {"(args->stride_aux) is 4611686018427387904, too large: 2 groups",
     [](auto& x) { x.stride_aux = distant; }},
    {"(args->stride_aux) is -4611686018427387904, too large: 2 groups",
     [](auto& x) { x.stride_aux = -distant; }},
};

// Two groups, of 2 and 3 rows, of 8 columns.
class AuxCalls {
public:
    explicit AuxCalls(Library& library)
        : library_(library), a_(make(10)), b_(make(16)), d_(make(10)), aux_(make(10)),
          sizes_(library.memory(), sizeof sizes)
    {
        for (Buffer* buffer : {&a_, &b_})
            for (int64_t i = 0; i < buffer->extent().lines; ++i)
                for (int64_t j = 0; j < 8; ++j)
                    buffer->set(0, i, j, 1);
        for (Buffer* buffer : {&a_, &b_, &d_, &aux_})
            buffer->upload();
        sizes_.copy_in(sizes);
    }

    Groups args(hgemm_grouping_t grouping) const
    {
        Groups g;
        hgemm_grouped_args_init(&g, sizeof g);
        g.grouping = grouping;
        g.group_count = 2;
        g.m = 5;
        g.n = g.k = g.lda = g.ldb = g.ldd = g.ldaux = 8;
        g.a = a_.ptr();
        g.b = b_.ptr();
        g.d = d_.ptr();
        g.aux = aux_.ptr();
        g.stride_b = 64;
        g.stride_a = g.stride_d = g.stride_aux = 40;
        g.gate.block = 4;
        const auto* const numbers = sizes_.get<int64_t>();
        if (grouping == HGEMM_GROUPED_MASKED)
            g.counts = numbers + 1;
        else
            g.offsets = numbers;
        return g;
    }
    // Nothing was written by what was refused.
    void expect_untouched()
    {
        EXPECT_EQ(library_.wait(HGEMM_STATUS_SUCCESS), HGEMM_STATUS_SUCCESS) << library_.story();
        for (Buffer* buffer : {&a_, &b_, &d_, &aux_}) {
            buffer->download();
            EXPECT_EQ(buffer->damage(true), "");
        }
    }
    // The last row of aux that is written is line `last` of its memory.
    void expect_served(const Groups& g, int64_t last)
    {
        EXPECT_EQ(library_.wait(hgemm_grouped_ex(library_.handle(), &g)), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
        aux_.download();
        EXPECT_EQ(aux_.get(0, 0, 0), 8);
        EXPECT_EQ(aux_.get(0, last, 7), 8);
    }

private:
    static constexpr int64_t sizes[] = {0, 2, 5};  // as counts: 2 and 5

    Buffer make(int64_t lines) const
    {
        return Buffer(library_.memory(), HGEMM_F16, Extent{lines, 8, 8, 1, 0}, 0, Guard::Pads);
    }

    Library& library_;
    Buffer a_, b_, d_, aux_;
    Block sizes_;
};

}  // namespace

void check_aux_refusals(Library& library)
{
    AuxCalls calls(library);
    const Groups contiguous = calls.args(HGEMM_GROUPED_CONTIGUOUS),
                 masked = calls.args(HGEMM_GROUPED_MASKED);
    expect_all_named(library, hgemm_grouped_ex, contiguous, wrong_aux);
    expect_all_named(library, hgemm_grouped_ex, masked, wrong_aux);
    expect_all_named(library, hgemm_grouped_ex, masked, wrong_masked_aux);
    Groups of_k = contiguous;
    of_k.grouping = HGEMM_GROUPED_K;
    of_k.transb = HGEMM_NO_TRANS;
    of_k.gate.block = 0;
    expect_named(library, hgemm_grouped_ex, &of_k, "must be NULL without args->gate.block");
    calls.expect_untouched();
    // Contiguous groups have no use for a stride.
    Groups g = contiguous;
    g.stride_aux = distant;
    calls.expect_served(g, 4);
    calls.expect_served(masked, 9);
}

}  // namespace hg::test
