// No exception leaves through a C function, and no call of the program fails because of us.
#pragma once

namespace hg::shim {

// What `work` returns, or `otherwise` where it ran out of memory.
template <typename Result, typename Work>
Result quietly(Result otherwise, const Work& work) noexcept
{
    try {
        return work();
    } catch (...) {
        return otherwise;
    }
}

// For work that may as well be left undone. Tells whether it was done.
template <typename Work>
bool quietly(const Work& work) noexcept
{
    return quietly(false, [&] {
        work();
        return true;
    });
}

}  // namespace hg::shim
