// Work of a call that is divided among threads.
#pragma once

#include "src/base/status.hpp"

#include <functional>

namespace hg {

// work(0) to work(count - 1), each on a thread of its own, the last and those that no thread is to be had
// for on the calling one. All are done when it returns. Fails as one of those that failed.
Status run_side_by_side(int count, const std::function<Status(int)>& work);

}  // namespace hg
