#include "src/plan/built_in.hpp"

#include "build_info.hpp"

namespace hg {

// Targets are the names of backends, a blank between them.
bool is_built_in(std::string_view backend)
{
    const std::string_view targets = build_targets;
    const size_t at = targets.find(backend);
    const size_t end = at + backend.size();
    return at != std::string_view::npos && (end == targets.size() || targets[end] == ' ');
}

const char* built_in_archs() { return build_archs; }

}  // namespace hg
