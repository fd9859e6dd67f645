// Objects that are created when first needed and never destroyed: the program may call while libraries
// load, and while the process ends.
#pragma once

#include <atomic>

namespace hg {

// Unlike a function's static variable it has no lock that a forked child could inherit locked. Several
// threads may create one at the same time; one of these stays.
template <typename T>
class Lazy {
public:
    T& get()
    {
        T* const made = object_.load(std::memory_order_acquire);
        return made ? *made : make();
    }

    bool is_made() const { return object_.load(std::memory_order_acquire); }

    // For a forked child, where threads of the parent may hold the object's locks: the next get() creates
    // another.
    void leave_behind() { object_.store(nullptr, std::memory_order_release); }

private:
    T& make()
    {
        auto* const fresh = new T;
        T* other = nullptr;
        if (object_.compare_exchange_strong(other, fresh, std::memory_order_acq_rel))
            return *fresh;
        delete fresh;
        return *other;
    }

    std::atomic<T*> object_ = nullptr;
};

}  // namespace hg
