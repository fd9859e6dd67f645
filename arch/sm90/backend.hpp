#pragma once

#include "src/backend.hpp"

namespace hg {

extern const Backend sm90_backend;

}  // namespace hg
