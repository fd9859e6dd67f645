// Handles that hgemm.torch has created and shares with this extension; they live as long as the process.
#pragma once

#include <atomic>

#include "hgemm.h"

namespace hgemm_torch {

struct Key {
    int device;
    void* stream;
    bool batch_invariant;

    bool operator==(const Key&) const = default;
};

// One call at a time uses a handle: that which took it.
struct Shared {
    const Key key;
    const hgemm_handle_t handle;
    std::atomic<bool> taken{true};
    Shared* next = nullptr;

    bool take() { return !taken.exchange(true, std::memory_order_acquire); }
    void give_back() { taken.store(false, std::memory_order_release); }

    // One that nobody uses, taken; null if there is none.
    static Shared* take(const Key& key);
};

}  // namespace hgemm_torch
