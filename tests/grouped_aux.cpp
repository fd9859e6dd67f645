// The bits of aux and of D of gated groups.
#include "conformance.hpp"
#include "grouped_rules.hpp"
#include "handle_scopes.hpp"
#include "library_rules.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hg::test {
namespace {

// Of two matrices of the same type, the rows of groups that differ.
int64_t count_differences(const GroupedTrial& trial, const Buffer& is, const Buffer& should)
{
    const auto bytes = static_cast<size_t>(is.extent().length) * bytes_of(is.type());
    int64_t different = 0, line = 0;
    for (const int64_t group : trial.owners()) {
        const int64_t z = line / is.extent().lines, row = line % is.extent().lines;
        different += group >= 0 && std::memcmp(is.line(z, row), should.line(z, row), bytes) != 0;
        ++line;
    }
    return different;
}

// False if the gated calls are not supported.
bool expect_aux_of_groups(Library& gated, Library& plain, const GroupedCase& both)
{
    SCOPED_TRACE(both.describe());
    GroupedCase alone = both, products = both;
    alone.aux = products.aux = false;
    products.gate = {};
    products.activation = HGEMM_ACTIVATION_NONE;
    GroupedTrial with_aux(gated.memory(), both), without(gated.memory(), alone),
        ungated(plain.memory(), products);
    const hgemm_status_t status = with_aux.run(gated);
    if (status == HGEMM_STATUS_NOT_SUPPORTED)
        return false;
    EXPECT_EQ(status, HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(without.run(gated), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(ungated.run(plain), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (GroupedTrial* const trial : {&with_aux, &without, &ungated})
        trial->download();
    EXPECT_EQ(count_differences(with_aux, with_aux.aux(), ungated.d()), 0) << "rows of aux";
    EXPECT_EQ(count_differences(with_aux, with_aux.d(), without.d()), 0) << "rows of D";
    return true;
}

}  // namespace

int check_bits_of_aux(Library& gated, Library& plain, hgemm_grouping_t grouping)
{
    const InMode gated_in_mode(gated, HGEMM_MODE_BATCH_INVARIANT),
        in_mode(plain, HGEMM_MODE_BATCH_INVARIANT);
    const std::vector<GroupedCase> cases = aux_cases(grouping);
    int served = 0;
    for (size_t i = 0; i<cases.size(); i += thinning()> 1 ? 4 : 1) {
        GroupedCase g = cases[i];
        g.exact = false;
        g.k += thinning() > 1 ? 64 : 256;  // several steps of every kernel
        served += expect_aux_of_groups(gated, plain, g);
    }
    return served;
}

void check_aux_of_groups(Library& library)
{
    for (const hgemm_grouping_t grouping :
         {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED, HGEMM_GROUPED_HOST}) {
        EXPECT_GT(check_bits_of_aux(library, library, grouping), 0);
        // In parts, which have as many rows as a small workspace has room for.
        const std::vector<GroupedCase> cases = aux_cases(grouping);
        for (size_t i = 1; i<cases.size(); i += thinning()> 1 ? 6 : 2) {
            GroupedCase g = cases[i];
            g.activation = HGEMM_ACTIVATION_GELU_ERF;
            g.gate.slope = 0;
            const WithWorkspace small(library, i % 4 < 2 ? size_t{24} << 10 : size_t{90} << 10);
            EXPECT_TRUE(check_grouped(library, g));
        }
    }
}

}  // namespace hg::test
