// What the environment asks for.
#pragma once

#include "src/plan/backend.hpp"

#include <string_view>

namespace hg {

// Sets the kernel and its settings by text as HGEMM_KERNEL has it: <name>[/split=<n>][/swap_ab=0|1]
// [/stream_k=0|1][/pdl=off|late|early][/branches=<n>]. False with the first setting that is `unknown`. A
// name too long for a kernel's is cut.
bool read_kernel(std::string_view text, Options& options, std::string_view& unknown);

// HGEMM_BACKEND, and HGEMM_KERNEL with its settings.
Status read_options(Options& options);

}  // namespace hg
