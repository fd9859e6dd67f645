// What this build was made for.
#pragma once

#include <string_view>

namespace hg {

// Does it have the kernels of the backend with that name?
bool is_built_in(std::string_view backend);
// The GPUs that it has kernels for, as HGEMM_ARCHS names them.
const char* built_in_archs();

}  // namespace hg
