// No exception leaves through a C function, and no call of the program fails because of the shim.
#pragma once

namespace hg::shim {

// Returns what `work` returns, or `otherwise` if it ran out of memory.
template <typename Result, typename Work>
Result quietly(Result otherwise, const Work& work) noexcept
{
    try {
        return work();
    } catch (...) {
        return otherwise;
    }
}

// Does work that is not essential. Returns whether it was done.
template <typename Work>
bool quietly(const Work& work) noexcept
{
    return quietly(false, [&] {
        work();
        return true;
    });
}

}  // namespace hg::shim
