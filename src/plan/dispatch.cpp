#include "src/plan/dispatch.hpp"

#include "src/base/nearest.hpp"
#include "src/base/status.hpp"
#include "src/plan/built_in.hpp"
#include "src/plan/calibration.hpp"
#include "src/plan/options.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hg {
namespace {

// Also of those that are not built in.
#define BACKEND(name, generations, images) #name,
constexpr const char* backend_names[] = {
#include "arch/backends.def"
    "host"};
#undef BACKEND

template <typename Append>
void list_names(char* text, size_t length, Append for_each)
{
    size_t used = 0;
    text[0] = '\0';
    for_each([&](const char* name) {
        if (used < length)
            used += std::snprintf(text + used, length - used, " %s", name);
    });
}

Status check_backend_name(const char* wanted)
{
    const auto is_wanted = [=](const char* name) { return !std::strcmp(name, wanted); };
    const bool known = std::ranges::any_of(backend_names, is_wanted);
    if (known && is_built_in(wanted))
        return ok;
    char names[128];
    list_names(names, sizeof names, [](auto append) {
        for (const char* name : backend_names)
            if (is_built_in(name))
                append(name);
    });
    if (known)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "backend '%s' (HGEMM_BACKEND) is not built in, known:%s",
                    wanted, names);
    return fail(HGEMM_STATUS_NOT_SUPPORTED, "unknown backend '%s' (HGEMM_BACKEND), known:%s", wanted,
                names);
}

// Null if the backend has none of that name.
const KernelInfo* find_kernel(const Backend& backend, const char* wanted)
{
    for (int i = 0; i < backend.kernel_count; ++i)
        if (!std::strcmp(backend.kernels[i].name, wanted))
            return &backend.kernels[i];
    return nullptr;
}

template <typename Append>
void for_each_kernel(Append append)
{
    for (const Backend* backend : all_backends())
        for (int i = 0; i < backend->kernel_count; ++i)
            append(backend->kernels[i].name);
}

Status list_all_kernels()
{
    char names[6144];
    list_names(names, sizeof names, [](auto append) { for_each_kernel(append); });
    return fail(HGEMM_STATUS_NOT_SUPPORTED, "kernels (HGEMM_KERNEL=?), known:%s", names);
}

Status check_kernel_name(const char* wanted)
{
    if (!std::strcmp(wanted, "?"))
        return list_all_kernels();
    bool known = false;
    NearestNames<4> nearest(wanted);
    for_each_kernel([&](const char* name) {
        known = known || !std::strcmp(name, wanted);
        nearest.offer(name);
    });
    if (known)
        return ok;
    char names[512];
    list_names(names, sizeof names, [&](auto append) { nearest.for_each(append); });
    return fail(HGEMM_STATUS_NOT_SUPPORTED,
                "unknown kernel '%s' (HGEMM_KERNEL), nearest:%s; HGEMM_KERNEL=? lists all", wanted, names);
}

// Is there such a kernel for the device, and shared memory enough for it?
bool runs_on(const Device& device, const char* kernel)
{
    for (const Backend* backend : all_backends())
        if (const KernelInfo* const found = find_kernel(*backend, kernel); found && backend->serves(device))
            return found->smem_bytes <= device.smem_per_block;
    return false;
}

// The CTAs of a cluster that finds its SMs wherever `limit` of them are free while other kernels hold the
// rest; 0: any. A cluster needs SMs of one GPC, and perhaps whole pairs (TPCs). More free SMs than there
// are pairs make that many pairs whole. `groups` are the most sets of pairs that no cluster spans: eight
// GPCs and, on an H200, four pairs on their own. A forced kernel is the user's own choice.
int largest_placed_cluster(const Device& device, const Options& options)
{
    constexpr int groups = 12;
    const int pairs = (device.sm_count + 1) / 2, whole_pairs = options.sm_limit - pairs;
    if (options.sm_limit == 0 || options.sm_limit >= device.sm_count || *options.kernel)
        return 0;
    return whole_pairs > 0 ? 2 * ((whole_pairs - 1) / groups + 1) : 1;
}

bool find_plan(const Problem& problem, const Device& device, Options options,
               std::span<const Backend* const> backends, Plan& plan, const char*& refusal)
{
    // Under a limit of SMs no PDL: a kernel that has started early and waits would occupy more of them.
    if (options.sm_limit > 0 && options.pdl == Pdl::Free)
        options.pdl = Pdl::Off;
    options.max_cluster = largest_placed_cluster(device, options);
    // All kernels of a backend that are legal in this mode give the same bits, so a calibration may choose
    // among them, but not among backends.
    if (device.calibration && options.mode == Mode::BatchInvariant && backends.size() > 1) {
        Device usual = device;
        usual.calibration = nullptr;
        if (!find_plan(problem, usual, options, backends, plan, refusal))
            return false;
        const Backend* const own = plan.backend;
        return find_plan(problem, device, options, {&own, 1}, plan, refusal);
    }
    bool found = false;
    for (const Backend* backend : backends) {
        Plan next{};
        next.backend = backend;
        if ((*options.kernel && !find_kernel(*backend, options.kernel)) ||
            (problem.is_grouped() &&
             !(problem.groups.of_k ? backend->takes_k_groups : backend->takes_groups)) ||
            (problem.triangle != Triangle::Whole && !backend->takes_triangles) ||
            (problem.leaves > 1 && !backend->takes_leaves) || (problem.is_gated() && !backend->takes_gates))
            continue;
        if (!backend->choose(problem, device, options, next)) {
            refusal = next.refusal;
            continue;
        }
        if (!found || next.predicted_us < plan.predicted_us)
            plan = next;
        found = options.has_plan = true;
        if (next.why == Why::Tuned)
            break;
        // A later backend that needs no copies, or no alignment, may be faster.
        if (!backend->is_compared && !next.repacks() && !backend->kernels[next.kernel].unaligned)
            break;
    }
    if (found && plan.why == Why::Model && KernelFactors(device, plan.backend->kernels).are_measured())
        plan.why = Why::Calibrated;
    return found;
}

// Resets setting `number`, which `text` names. False if it was not set.
template <size_t length>
bool take_back(int number, Options& o, char (&text)[length])
{
    switch (number) {
    case 0: std::snprintf(text, length, "with /split=%d", o.split); return std::exchange(o.split, 0) != 0;
    case 1:
        std::snprintf(text, length, "with /swap_ab=%d", o.swap_ab == SwapAb::On);
        return std::exchange(o.swap_ab, SwapAb::Free) != SwapAb::Free;
    case 2:
        std::snprintf(text, length, "with /stream_k=%d", o.stream_k == StreamK::On);
        return std::exchange(o.stream_k, StreamK::Free) != StreamK::Free;
    case 3:
        std::snprintf(text, length, "with /pdl=%s", name_of(o.pdl));
        return std::exchange(o.pdl, Pdl::Free) != Pdl::Free;
    case 4:
        std::snprintf(text, length, "in batch-invariant mode");
        return std::exchange(o.mode, Mode::Default) != Mode::Default;
    default: std::snprintf(text, length, "on %d SMs", o.sm_limit); return std::exchange(o.sm_limit, 0) != 0;
    }
}

// The first setting without which there is a plan.
template <size_t length>
bool find_obstacle(const Problem& problem, const Device& device, const Options& options,
                   std::span<const Backend* const> backends, char (&text)[length])
{
    for (int number = 0; number < 6; ++number) {
        Options without = options;
        Plan plan{};
        const char* refusal;
        if (take_back(number, without, text) &&
            find_plan(problem, device, without, backends, plan, refusal))
            return true;
    }
    return false;
}

}  // namespace

Status check_names(const Options& options)
{
    Status status = *options.backend ? check_backend_name(options.backend) : ok;
    if (status == ok && *options.kernel)
        status = check_kernel_name(options.kernel);
    return status;
}

namespace {

Status fail_unserved(const Device& device)
{
    const int major = device.cc / 10, minor = device.cc % 10;
    if (device.cc < 80)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "%s has compute capability %d.%d, 8.0 is the lowest served",
                    device.name, major, minor);
    return fail(HGEMM_STATUS_NOT_SUPPORTED,
                "%s has compute capability %d.%d, this libhgemm was built for GPUs %s alone (HGEMM_ARCHS)",
                device.name, major, minor, built_in_archs());
}

}  // namespace

Status find_backends(const Device& device, const Options& options, const Backend* (&backends)[max_backends],
                     int& count)
{
    count = 0;
    if (*options.kernel && !runs_on(device, options.kernel))
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "kernel '%s' (HGEMM_KERNEL) does not run on %s",
                    options.kernel, device.name);
    bool reached = !*options.backend;
    for (const Backend* backend : all_backends()) {
        const bool named = *options.backend && !std::strcmp(backend->name, options.backend);
        if (named && !backend->serves(device))
            return fail(HGEMM_STATUS_NOT_SUPPORTED, "backend '%s' (HGEMM_BACKEND) does not run on %s",
                        options.backend, device.name);
        reached = reached || named;
        const bool wanted = named || find_kernel(*backend, options.kernel);
        if (backend->stands_aside && backend->stands_aside(device) && !wanted)
            continue;
        if (reached && backend->serves(device) && count < max_backends)
            backends[count++] = backend;
    }
    return count > 0 ? ok : fail_unserved(device);
}

size_t counter_words(const Device& device, std::span<const Backend* const> backends, size_t workspace)
{
    size_t words = 0;
    for (const Backend* backend : backends)
        if (backend->counter_words)
            words = std::max(words, backend->counter_words(device, workspace));
    return words;
}

Status make_plan(const Problem& problem, const Device& device, const Options& options,
                 std::span<const Backend* const> backends, Plan& plan)
{
    const char* refusal = problem.is_grouped() ? "no kernel for groups whose sizes lie on the device; "
                                                 "HGEMM_GROUPED_HOST is served"
                          : problem.is_gated() ? "no kernel has gates"
                                               : "no backend";
    if (find_plan(problem, device, options, backends, plan, refusal))
        return ok;
    char setting[48];
    const bool obstacle = find_obstacle(problem, device, options, backends, setting);
    if (obstacle && !*options.kernel)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no kernel serves this problem %s", setting);
    if (obstacle)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "kernel %s (HGEMM_KERNEL) serves this problem, but not %s",
                    options.kernel, setting);
    if (*options.kernel)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "kernel %s (HGEMM_KERNEL) cannot serve this problem: %s",
                    options.kernel, refusal);
    return fail(HGEMM_STATUS_NOT_SUPPORTED, "%s", refusal);
}

bool try_plan(const Problem& problem, const Device& device, const Options& options,
              std::span<const Backend* const> backends, Plan& plan)
{
    const char* refusal;
    return find_plan(problem, device, options, backends, plan, refusal);
}

const char* make_tuned_plan(std::string_view kernel, const Problem& problem, const Device& device,
                            const Options& options, std::span<const Backend* const> backends, Plan& plan)
{
    Options forced = options;
    std::string_view unknown;
    if (!read_kernel(kernel, forced, unknown))
        return "the kernel has an unknown setting";
    if (!runs_on(device, forced.kernel))
        return "the library has no such kernel for the device";
    const char* refusal = "no backend of the handle has the kernel";
    if (!find_plan(problem, device, forced, backends, plan, refusal))
        return refusal;
    if (plan.workspace > options.workspace)
        return "the workspace is too small";
    Plan own{};
    if (options.mode == Mode::BatchInvariant &&
        (!find_plan(problem, device, options, backends, own, refusal) || own.backend != plan.backend))
        return "the kernel is of another backend, and the mode is batch-invariant";
    plan.why = Why::TunedHere;
    return nullptr;
}

}  // namespace hg
