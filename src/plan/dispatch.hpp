// Dispatch: which backends serve a device, and which of them runs a problem. Pure functions: none needs a
// GPU.
#pragma once

#include "src/plan/backend.hpp"

#include <span>
#include <string_view>

namespace hg {

// All backends of this build, the most specialised first: the order in which they are asked.
std::span<const Backend* const> all_backends();

// Do the backend and the kernel that options names exist? The message lists those that do.
Status check_names(const Options& options);

// The backends that serve the device and do not stand aside, in order, from options.backend on if that is
// set. Fails when there is none, or when options names a backend or a kernel that does not run on the
// device.
Status find_backends(const Device& device, const Options& options, const Backend* (&backends)[max_backends],
                     int& count);

// How many words that are 0 between kernels the backends want behind a workspace of that many bytes.
size_t counter_words(const Device& device, std::span<const Backend* const> backends, size_t workspace);

// Asks the backends in order; the first that has a kernel for the problem decides. If its plan copies
// operands or its kernel reads unaligned ones, the later backends are asked too, and the fastest prediction
// wins.
Status make_plan(const Problem& problem, const Device& device, const Options& options,
                 std::span<const Backend* const> backends, Plan& plan);

// The same for a problem that can also be served in another way: false if there is no plan, without an
// error text.
bool try_plan(const Problem& problem, const Device& device, const Options& options,
              std::span<const Backend* const> backends, Plan& plan);

// Plans with the kernel and its settings that a tuning file names, as make_plan() does with those of
// HGEMM_KERNEL. Null, or why that is not possible; then there is no error text. In batch-invariant mode the
// kernel must be of the backend that make_plan() chooses: kernels of one backend that are legal in that
// mode give the same bits.
const char* make_tuned_plan(std::string_view kernel, const Problem& problem, const Device& device,
                            const Options& options, std::span<const Backend* const> backends, Plan& plan);

}  // namespace hg
