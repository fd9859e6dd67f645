// Launches of the kernel that sorts the choices of a layer of experts. Those that move rows have no
// barriers.
#include "mutation/kernels.hpp"
#include "mutation/products.hpp"

#include "arch/common/host/experts.hpp"
#include "arch/sm80/kernels.hpp"
#include "src/plan/experts.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace mutation {
namespace {

// Copies numbers to memory of the machine.
template <typename Number>
Number* numbers_in(emu::Machine& machine, const std::vector<Number>& numbers)
{
    const size_t bytes = numbers.size() * sizeof(Number);
    void* const memory = random_halves(machine, bytes / 2, false);
    return static_cast<Number*>(std::memcpy(memory, numbers.data(), bytes));
}

// Of each choice an expert; of one in seven none.
template <typename Number>
std::vector<Number> chosen_experts(int64_t count, int64_t experts)
{
    std::vector<Number> chosen(static_cast<size_t>(count));
    for (uint64_t i = 0, random = 1; i < chosen.size(); ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        chosen[i] =
            i % 7 == 3 ? Number{-1} : static_cast<Number>((random >> 33) % static_cast<uint64_t>(experts));
    }
    return chosen;
}

// What the first of two launches leaves.
std::vector<int32_t> counts_of(const std::vector<int32_t>& chosen, int64_t ctas, int64_t experts)
{
    const hg::Route what{
        static_cast<int64_t>(chosen.size()), 1, experts, nullptr, true, 1, nullptr, nullptr, nullptr};
    const int32_t choices = hg::pack_route(what, ctas, nullptr).warp_choices * hg::route_warps;
    std::vector<int32_t> counts(static_cast<size_t>(ctas * experts));
    for (size_t i = 0; i < chosen.size(); ++i)
        if (chosen[i] >= 0)
            ++counts[i / static_cast<size_t>(choices) * static_cast<size_t>(experts) +
                     static_cast<size_t>(chosen[i])];
    return counts;
}

void set_launch(Setup& setup, const hg::KernelInfo& kernel, int64_t ctas)
{
    setup.launch.grid.x = static_cast<uint32_t>(ctas);
    setup.launch.block.x = kernel.threads;
    setup.launch.dynamic_shared = kernel.smem_bytes;
}

}  // namespace

// Shape 0: by one CTA, of numbers with gaps between tokens; warps have more choices than they load at a
// time. 1: of 64 bits, and more experts than are counted at a time; what is left out is null. 2 and 3: the
// first and the second of two launches, of two CTAs.
Setup arrange_sm80_route(emu::Machine& machine, const std::string& name, int shape)
{
    const int64_t tokens[] = {1500, 50, 300, 1200}, choices = shape == 0 ? 3 : 8, ctas = shape < 2 ? 1 : 2;
    Setup setup;
    hg::Route what{};
    what.tokens = tokens[shape];
    what.choices = choices;
    what.experts = shape == 1 || shape == 2 ? 600 : 9;
    what.ld = shape == 0 ? 5 : choices;
    what.narrow = shape != 1;
    const auto narrow = chosen_experts<int32_t>(what.tokens * what.ld, what.experts);
    what.chosen = what.narrow
                      ? static_cast<const void*>(numbers_in(machine, narrow))
                      : numbers_in(machine, chosen_experts<int64_t>(what.tokens * what.ld, what.experts));
    const auto result = [&](int64_t count) {
        return static_cast<int32_t*>(
            empty_result(machine, setup, static_cast<size_t>(count) * sizeof(int32_t)));
    };
    what.ends = result(what.experts);
    what.row_of_choice = result(what.all_choices());
    what.choice_of_row = shape == 1 ? nullptr : result(what.all_choices());
    int32_t* const counts = shape == 2 ? result(ctas * what.experts)
                                       : numbers_in(machine, counts_of(narrow, ctas, what.experts));
    hg::RouteParams params = hg::pack_route(what, ctas, counts);
    params.counts_alone = shape == 2;
    set_launch(setup, info_of(hg::sm80::kernels, name), ctas);
    set_parameters(setup, params);
    return setup;
}

}  // namespace mutation
