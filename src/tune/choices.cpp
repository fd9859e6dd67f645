#include "src/tune/choices.hpp"

#include "src/plan/dispatch.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace hg {
namespace {

constexpr double within = 1.5;       // times the best prediction: further kernels are not looked at closely
constexpr size_t with_each_pdl = 2;  // so many of the best are tried with each PDL
constexpr int max_split = 60;        // of any backend

class Finder {
public:
    Finder(const Handle& handle, const Problem& problem)
        : handle_(handle), problem_(problem), options_(handle.planning_options())
    {
    }

    // Adds what the settings lead to, if that is legal and not known yet.
    bool add(const std::string& text, std::vector<KernelChoice>& choices) const
    {
        Plan plan{};
        if (make_tuned_plan(text, problem_, handle_.device, options_, handle_.served_by(), plan))
            return false;
        std::string full = text_of(plan);
        if (std::ranges::find(choices, full, &KernelChoice::text) == choices.end())
            choices.push_back({std::move(full), plan});
        return true;
    }

    // Each kernel with the settings that the library gives it.
    std::vector<KernelChoice> kernels() const
    {
        std::vector<KernelChoice> choices;
        for (const Backend* backend : handle_.served_by())
            for (int i = 0; i < backend->kernel_count; ++i)
                add(backend->kernels[i].name, choices);
        return choices;
    }

    // A kernel with all numbers of slices, orientations and stream-K.
    void add_settings(const std::string& kernel, std::vector<KernelChoice>& choices) const
    {
        for (const char* const swap_ab : {"/swap_ab=0", "/swap_ab=1"}) {
            add(kernel + swap_ab + "/stream_k=1", choices);
            for (int split = 1; split <= max_split; ++split)
                add(kernel + "/split=" + std::to_string(split) + swap_ab + "/stream_k=0", choices);
        }
    }

private:
    const Handle& handle_;
    const Problem& problem_;
    const Options options_;
};

void sort(std::vector<KernelChoice>& choices)
{
    std::ranges::stable_sort(choices, {}, [](const KernelChoice& c) { return c.plan.predicted_us; });
}

}  // namespace

std::string text_of(const Plan& plan)
{
    char settings[80];
    std::snprintf(settings, sizeof settings, "/split=%d/swap_ab=%d/stream_k=%d/pdl=%s", plan.split,
                  plan.swap_ab, plan.sm90.stream_k, name_of(plan.pdl));
    return plan.backend->kernels[plan.kernel].name + std::string(settings);
}

std::vector<KernelChoice> promising_choices(const Handle& handle, const Problem& problem, size_t most,
                                            TriedPdl pdl)
{
    const Finder finder(handle, problem);
    std::vector<KernelChoice> kernels = finder.kernels(), choices = kernels;
    sort(kernels);
    for (const KernelChoice& kernel : kernels)
        if (kernel.plan.predicted_us <= within * kernels.front().plan.predicted_us)
            finder.add_settings(kernel.plan.backend->kernels[kernel.plan.kernel].name, choices);
    sort(choices);
    const size_t best = pdl == TriedPdl::Each ? with_each_pdl : 0, more = 2 * best;
    choices.resize(std::min(choices.size(), most > more ? most - more : most));
    for (size_t i = 0; i < std::min(choices.size(), best); ++i) {
        const std::string settings = choices[i].text.substr(0, choices[i].text.rfind('/'));
        for (const char* const setting : {"/pdl=off", "/pdl=late", "/pdl=early"})
            if (choices.size() < most)
                finder.add(settings + setting, choices);
    }
    return choices;
}

}  // namespace hg
