// The one way to read the environment.
#pragma once

#include <cstdlib>

namespace hg {

// Null where the variable is not set, and in programs that have rights which their caller has not (setuid,
// setgid, file capabilities): the caller may not say where those write.
inline const char* environment(const char* name) { return secure_getenv(name); }

}  // namespace hg
