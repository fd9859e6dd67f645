// The kernels and settings that are worth measuring for a problem, by what the library expects of them.
#pragma once

#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace hg {

// The plan's kernel with all its settings, as HGEMM_KERNEL and tuning files have it.
std::string text_of(const Plan& plan);

struct KernelChoice {
    std::string text;
    Plan plan;
};

// With each kind of programmatic dependent launch, which shows only in launches right behind each other, or
// with the library's own one alone.
enum class TriedPdl { Own, Each };

// Of all backends of the handle, the best predictions first: `most` choices at most, each of which a tuning
// file may name for that problem.
std::vector<KernelChoice> promising_choices(const Handle& handle, const Problem& problem, size_t most,
                                            TriedPdl pdl);

}  // namespace hg
