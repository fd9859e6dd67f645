// The compiled images hold the kernels of kernels.def, as the logs of nvcc show. arch/compile.sh has read
// there that none of them is slow code.
#include "src/plan/dispatch.hpp"

#include "arch/sm80/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace hg {
namespace {

// What an entry point of sm80 has behind its type, by the kernel's family.
std::vector<std::string> sm80_suffixes(const std::string& kernel)
{
    const auto* const info = std::ranges::find(sm80::kernels, kernel, &KernelInfo::name);
    switch (sm80::configs[info - sm80::kernels].family) {
    case sm80::Family::Tile:
    case sm80::Family::Unaligned: return {"_kk", "_kn", "_mk", "_mn"};
    case sm80::Family::Grouped:
        return {"_kk",
                "_kn",
                "_mk",
                "_mn",
                "_kk_groups",
                "_kn_groups",
                "_kk_gates",
                "_kn_gates",
                "_kk_gated_groups",
                "_kn_gated_groups",
                "_mn_k_groups"};
    case sm80::Family::Rows:
    case sm80::Family::UnalignedRows: return {"_kk", "_kn"};
    case sm80::Family::Columns:
    case sm80::Family::UnalignedColumns: return {"_kk", "_mk"};
    default: return {"", "_groups", "_k_groups"};
    }
}

// The entry points of a kernel: one for each type and pair of majors. Exceptions: sm90's serve both majors
// of A, direct and gemv kernels have them for majors of A, grouped ones for majors of B, those of sm80 by
// family, sm100's one for everything.
std::vector<std::string> entries_of(const std::string& kernel, const std::vector<std::string>& types)
{
    if (kernel.starts_with("sm100_"))
        return {kernel};
    std::vector<std::string> entries;
    std::vector<std::string> majors{"_kk", "_kn", "_mk", "_mn"};
    if (kernel.starts_with("sm90_splitk_") || kernel.starts_with("sm90_tree_splitk_"))
        majors = {"_xk", "_xn"};
    if (kernel.starts_with("sm90_grouped_"))
        majors = {"_kk", "_kn", "_mn"};
    if (kernel.starts_with("sm90_grouped_splitk_"))  // an x of the problem's B
        majors = {"_xk"};
    if (kernel.starts_with("sm80_"))
        majors = sm80_suffixes(kernel);
    if (kernel.starts_with("sm90_triangle_"))
        majors = {"_kk", "_mn"};
    if (kernel.starts_with("sm90_gated_"))
        majors = {"_kk"};
    for (const char* const tile : {"_gated_128x256_2x1", "_gated_128x128_2x1", "_gated_grouped_64x128",
                                   "_gated_grouped_128x128_1x2"})
        if (kernel.ends_with(tile))  // whole panels of gates
            majors = {"_kk", "_kn"};
    if (kernel.starts_with("sm90_direct_"))
        majors = kernel.starts_with("sm90_direct_32") ? std::vector<std::string>{"_k"}
                                                      : std::vector<std::string>{"_k", "_m"};
    if (kernel.starts_with("sm90_gemv_"))
        majors = {"_m"};
    for (const std::string& type : types)
        for (const std::string& of_kernel : majors)
            entries.push_back(kernel + type + of_kernel);
    return entries;
}

// The kernels in an image, from what nvcc said, which warned of nothing.
std::set<std::string> kernels_in(const std::string& image)
{
    std::ifstream log(std::string(HGEMM_PTXAS_LOGS) + "/" + image + ".ptxas.log");
    EXPECT_TRUE(log) << image;
    std::set<std::string> kernels;
    for (std::string line; std::getline(log, line);) {
        if (const size_t at = line.find("entry function '"); at != std::string::npos)
            kernels.insert(line.substr(at + 16, line.find('\'', at + 16) - at - 16));
        EXPECT_EQ(line.find("warning #"), std::string::npos) << image << ": " << line;
    }
    return kernels;
}

std::set<std::string> entries_of_backend(const std::string& name, const std::vector<std::string>& types)
{
    std::set<std::string> kernels;
    for (const Backend* backend : all_backends())
        for (int i = 0; backend->name == name && i < backend->kernel_count; ++i)
            for (const std::string& entry : entries_of(backend->kernels[i].name, types))
                kernels.insert(entry);
    return kernels;
}

// Every kernel has its entry points, and no others are there.
TEST(Images, HaveTheirKernels)
{
    for (const std::string image : {"sm80_sm80", "sm80_sm87", "sm80_sm90", "sm80_sm100", "sm80_sm120",
                                    "sm100_sm100", "sm100_sm110", "sm120_sm120", "sm120_sm90"}) {
        const std::string backend = image.substr(0, image.find('_'));
        std::set<std::string> kernels = kernels_in(image);
        for (const char* const helper :
             {"sm80_repack", "sm80_tree", "sm80_triangle", "sm80_gate", "sm80_gate_gradient",
              "sm80_exchange", "sm80_route", "sm80_gather", "sm80_combine", "sm80_dot", "sm80_clear"})
            EXPECT_EQ(kernels.erase(helper), backend == "sm80" ? 1u : 0u) << image;
        EXPECT_EQ(kernels, entries_of_backend(backend, {"_f16", "_bf16"})) << image;
    }
}

// Those of a type are in several images, each in one of them.
TEST(Images, PartsOfSm90HaveTheirKernels)
{
    for (const std::string type : {"_f16", "_bf16"}) {
        std::set<std::string> kernels;
        for (const std::string part :
             {"_persistent", "_splitk_192", "_splitk_128", "_splitk_64", "_other"}) {
            std::set<std::string> of_part = kernels_in("sm90" + type + part);
            EXPECT_FALSE(of_part.empty()) << part;
            kernels.merge(of_part);
            EXPECT_TRUE(of_part.empty())
                << part << ": " << *of_part.begin() << " is in another part as well";
        }
        EXPECT_EQ(kernels.erase("sm90_repack"), 1u);
        EXPECT_EQ(kernels, entries_of_backend("sm90", {type})) << type;
    }
}

}  // namespace
}  // namespace hg
