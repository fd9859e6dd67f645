#include "src/tools/bench/baseline.hpp"

#include <stdexcept>

namespace hg::bench {

std::string baseline_of(const Machine& machine)
{
    const auto found = machine.find("baseline");
    return found == machine.end() ? cublas_baseline : found->second;
}

std::string best_title(const std::string& baseline)
{
    if (baseline == cublas_baseline)
        return "best of cuBLASLt";
    return baseline == mma_sync_baseline ? "mma.sync of cuBLASLt" : baseline;
}

void require_same_baseline(const std::string& path, const Machine& of_file, const std::string& wanted)
{
    const std::string before = baseline_of(of_file);
    if (before != wanted)
        throw std::runtime_error(path + " has the baseline " + before + ", and --resume would add " +
                                 wanted);
}

}  // namespace hg::bench
