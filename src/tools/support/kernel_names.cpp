#include "src/tools/support/kernel_names.hpp"

#include "hgemm.h"
#include "src/tools/support/environment.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace hg::test {

namespace {

bool takes_groups(const std::string& kernel) { return kernel.find("_grouped_") != std::string::npos; }
// They serve nothing else.
bool is_of_some_results(const std::string& kernel)
{
    for (const char* const kind : {"_triangle_", "_gated_", "_tree_"})
        if (kernel.find(kind) != std::string::npos)
            return true;
    return false;
}

// Has it one of the comma-separated parts of HGEMM_TEST_KERNELS in it?
bool is_asked_for(const std::string& kernel)
{
    const char* const parts = std::getenv("HGEMM_TEST_KERNELS");
    std::istringstream list(parts ? parts : "");
    bool found = !parts;
    for (std::string part; std::getline(list, part, ',');)
        found = found || kernel.find(part) != std::string::npos;
    return found;
}

// The message that refuses a wrong name lists the right ones.
std::vector<std::string> names_of(bool grouped)
{
    const Variable variable("HGEMM_KERNEL", "?");
    hgemm_handle_t handle = nullptr;
    if (hgemm_create_on(&handle, HGEMM_DEVICE_HOST) == HGEMM_STATUS_SUCCESS)
        throw std::runtime_error("HGEMM_KERNEL=? was accepted");
    const std::string text = hgemm_last_error();
    const std::string before = "known:";
    const size_t at = text.find(before);
    if (at == std::string::npos)
        throw std::runtime_error("no kernel names in: " + text);
    std::istringstream rest(text.substr(at + before.size()));
    std::vector<std::string> names;
    for (std::string name; rest >> name;)
        if (is_asked_for(name) && takes_groups(name) == grouped && !is_of_some_results(name))
            names.push_back(name);
    return names;
}

}  // namespace

std::vector<std::string> kernel_names()
{
    const std::vector<std::string> names = names_of(false);
    if (names.empty() && names_of(true).empty())
        throw std::runtime_error(std::string("no kernel has HGEMM_TEST_KERNELS in its name: ") +
                                 std::getenv("HGEMM_TEST_KERNELS"));
    return names;
}

std::vector<std::string> grouped_kernel_names() { return names_of(true); }

bool names_all_kernels() { return !std::getenv("HGEMM_TEST_KERNELS"); }

bool shares_k_among_warps(const std::string& kernel)
{
    return kernel.find("_direct_") != std::string::npos || kernel.find("_gemv_") != std::string::npos;
}

bool wants_rows_side_by_side(const std::string& kernel)
{
    return kernel.find("_gemv_") != std::string::npos;
}

}  // namespace hg::test
