// The one way to read the environment.
#pragma once

#include <cstdlib>

namespace hg {

// Null if the variable is not set, or if the program has privileges that its caller lacks (setuid, setgid,
// file capabilities): a caller must not say where such a program writes.
inline const char* environment(const char* name) { return secure_getenv(name); }

}  // namespace hg
