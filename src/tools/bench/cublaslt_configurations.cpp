#include "src/tools/bench/cublaslt_functions.hpp"
#include "src/tools/bench/dynamic_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace hg::bench {

using namespace cublaslt;

namespace {

// By cublasLtMatmulTile_t and cublasLtMatmulStages_t; the kernels that are searched have no others.
constexpr const char* tile_names[] = {
    "any",    "8x8",    "8x16",    "16x8",    "8x32",    "16x16",   "32x8",    "8x64",   "16x32",
    "32x16",  "64x8",   "32x32",   "32x64",   "64x32",   "32x128",  "64x64",   "128x32", "64x128",
    "128x64", "64x256", "128x128", "256x64",  "64x512",  "128x256", "256x128", "512x64", "64x96",
    "96x64",  "96x128", "128x160", "160x128", "192x128", "128x192", "128x96",  "32x256", "256x32"};
constexpr const char* stages_names[] = {"any",   "16x1",  "16x2",  "16x3",  "16x4",  "16x5",  "16x6",
                                        "32x1",  "32x2",  "32x3",  "32x4",  "32x5",  "32x6",  "64x1",
                                        "64x2",  "64x3",  "64x4",  "64x5",  "64x6",  "128x1", "128x2",
                                        "128x3", "128x4", "128x5", "128x6", "32x10", "8x4"};

template <size_t count>
std::string name_of(const char* const (&names)[count], uint32_t id)
{
    return id < count ? names[id] : std::to_string(id);
}

// Of one number; 0 where the library does not know the capability.
template <typename T>
T capability(int (*get)(const Algorithm*, int, void*, size_t, size_t*), const Algorithm& algorithm,
             int which)
{
    T value = 0;
    size_t written = 0;
    return get(&algorithm, which, &value, sizeof value, &written) == 0 ? value : 0;
}

// Of a list of ids; an algorithm without a choice has the one that stands for "undefined".
std::vector<uint32_t> choices(int (*get)(const Algorithm*, int, void*, size_t, size_t*),
                              const Algorithm& algorithm, int which)
{
    size_t bytes = 0;
    if (get(&algorithm, which, nullptr, 0, &bytes) != 0)
        bytes = 0;
    std::vector<uint32_t> list(bytes / sizeof(uint32_t));
    if (!list.empty() && get(&algorithm, which, list.data(), bytes, &bytes) != 0)
        list.clear();
    return list.empty() ? std::vector<uint32_t>{0} : list;
}

}  // namespace

std::string CublasLt::Configuration::text() const
{
    return fmt::format("id{}/tile={}/stages={}/split={}/swizzle={}", id, name_of(tile_names, tile),
                       name_of(stages_names, stages), split, swizzle);
}

std::vector<int> CublasLt::ids(const Product& p) const
{
    const int type = type_of(p), type_d = type_d_of(p);
    std::vector<int> found(1024);  // far more than there are
    int count = 0;
    if (functions_->get_ids(handle_, compute_32f, r_32f, type, type, type_d, type_d,
                            static_cast<int>(found.size()), found.data(), &count) != 0)
        count = 0;
    found.resize(static_cast<size_t>(count));
    return found;
}

std::unique_ptr<CublasLt::Algorithms> CublasLt::configurations(const Product& product,
                                                               const std::vector<Operands>& sets,
                                                               const std::vector<int>& ids) const
{
    std::unique_ptr<Algorithms> algorithms(new Algorithms(*this));
    algorithms->describe(product);
    require_success(algorithms->point_to(sets[0]), "cublasLtMatmulDescSetAttribute");
    for (const int id : ids)
        algorithms->enumerate(product, sets, id);
    return algorithms;
}

const CublasLt::Configuration& CublasLt::Algorithms::configuration(size_t which) const
{
    return results_->configurations[which];
}

// cublasLtMatmulAlgoCheck sees no pointers: how they must be aligned is a capability of the algorithm.
void CublasLt::Algorithms::enumerate(const Product& p, const std::vector<Operands>& sets, int id)
{
    const Functions& f = *lt_.functions_;
    const int type = type_of(p), type_d = type_d_of(p);
    Algorithm initial{};
    if (f.init(lt_.handle_, compute_32f, r_32f, type, type, type_d, type_d, id, &initial) != 0)
        return;
    const std::pair<int, uint32_t> alignments[] = {
        {cap_alignment_a, alignment_of(sets, [](const Operands& o) -> const void* { return o.b; })},
        {cap_alignment_b, alignment_of(sets, [](const Operands& o) -> const void* { return o.a; })},
        {cap_alignment_d, alignment_of(sets, [](const Operands& o) -> const void* { return o.d; })}};
    for (const auto& [which, present] : alignments)
        if (capability<uint32_t>(f.get_capability, initial, which) > present)
            return;
    std::vector<int32_t> splits = {1};
    if (capability<int32_t>(f.get_capability, initial, cap_split) != 0)
        splits = {1, 2, 3, 4, 6, 8, 12, 16};
    const uint32_t last_swizzle = capability<uint32_t>(f.get_capability, initial, cap_swizzling) != 0;
    for (const uint32_t tile : choices(f.get_capability, initial, cap_tiles))
        for (const uint32_t stages : choices(f.get_capability, initial, cap_stages))
            for (const int32_t split : splits)
                for (uint32_t swizzle = 0; swizzle <= last_swizzle; ++swizzle)
                    add_if_accepted(initial, {id, tile, stages, split, swizzle});
}

// Slices of K are added in fp32: in D's type they would lose digits. What is 0, or 1 slice, is so
// initially.
void CublasLt::Algorithms::add_if_accepted(const Algorithm& initial, const Configuration& c)
{
    constexpr uint32_t in_compute_type = 2;
    const Functions& f = *lt_.functions_;
    Algorithm algorithm = initial;
    const auto set = [&](int which, const auto& value) {
        return value == 0 || f.configure(&algorithm, which, &value, sizeof value) == 0;
    };
    const bool configured =
        set(config_tile, c.tile) && set(config_stages, c.stages) && set(config_swizzling, c.swizzle) &&
        (c.split == 1 || (set(config_split, c.split) && set(config_reduction, in_compute_type)));
    HeuristicResult result{};
    if (!configured ||
        f.check(lt_.handle_, operation_, first_, second_, result_, result_, &algorithm, &result) != 0)
        return;
    if (result.state != 0 || result.workspace > workspace_bytes)
        return;
    result.algorithm = algorithm;  // the check need not fill it in
    results_->list.push_back(result);
    results_->configurations.push_back(c);
}

}  // namespace hg::bench
