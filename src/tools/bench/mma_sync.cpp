#include "src/tools/bench/mma_sync.hpp"

#include "src/tools/bench/autotune.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hg::bench {
namespace {

// cutlass_80_* and cutlass_75_* by the names of their kernels on an H100 and an H200. No document says what
// an id stands for, on these GPUs or on others.
constexpr int mma_sync_ids[] = {21, 23, 24};
constexpr int known_cc = 90;

}  // namespace

MmaSync mma_sync_candidates(const CublasLt* lt, int cc, const Product& product,
                            const std::vector<Operands>& sets)
{
    MmaSync found;
    if (cc != known_cc)
        found.why_none = fmt::format("the algorithm ids {} are known on compute capability 9.0 alone, this "
                                     "GPU has {}.{}",
                                     fmt::join(mma_sync_ids, " "), cc / 10, cc % 10);
    else if (!lt)
        found.why_none = "there is no cuBLASLt, or it does not compute this output";
    if (!found.why_none.empty())
        return found;
    const std::vector<int> present = lt->ids(product);
    std::vector<int> ids;
    for (const int id : mma_sync_ids)
        if (std::find(present.begin(), present.end(), id) != present.end())
            ids.push_back(id);
    found.algorithms = lt->configurations(product, sets, ids);
    for (const int id : mma_sync_ids) {
        int count = 0;
        for (size_t i = 0; i < found.algorithms->count(); ++i)
            count += found.algorithms->configuration(i).id == id;
        const bool absent = std::find(ids.begin(), ids.end(), id) == ids.end();
        found.tried += (found.tried.empty() ? "" : " ") +
                       (absent ? fmt::format("{}:absent", id) : fmt::format("{}:{}", id, count));
    }
    if (found.algorithms->count() == 0)
        found.why_none = "cuBLASLt accepts no configuration of the algorithms, " + found.tried;
    return found;
}

MmaSync find_mma_sync(BenchDevice& device, const Product& product, const std::vector<Operands>& sets,
                      const Expectation& expectation)
{
    MmaSync found = mma_sync_candidates(device.cublaslt_for(product), device.cuda().cc(), product, sets);
    if (!found.why_none.empty())
        return found;
    const CublasLt::Algorithms& algorithms = *found.algorithms;
    const auto is_right = [&](size_t which) {
        bool ran = false;
        const auto multiply = [&](const Operands& operands) { ran = algorithms.multiply(which, operands); };
        const Verdict verdict =
            device.check(expectation, sets[0], device.max_slices(product), multiply, Tanh::Approximate);
        return ran && verdict.right();
    };
    found.fastest = fastest_of_many(device.timer(), sets, algorithms, is_right);
    if (found.fastest < 0)
        found.why_none = "no configuration of the algorithms runs and is right, " + found.tried;
    return found;
}

// Slow ones take several times the floor, and three launches each.
double mma_sync_search_us(double ideal_us)
{
    constexpr double configurations = 1250, launches = 3, slowdown = 4, overhead_us = 300;
    return configurations * (launches * slowdown * ideal_us + overhead_us);
}

}  // namespace hg::bench
