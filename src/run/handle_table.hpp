// HandleTable: the objects behind public handles. A handle is a number, not an address: the index of a
// slot, and the slot's generation, which counts the objects that were in it. So an invalid handle is
// recognised without reading through it, and a destroyed one stays invalid when its slot is used again.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>

namespace hg {

// Lock-free: a forked child would wait forever for a lock that another thread of the parent held. All bits
// zero is an empty table, so that one in static memory needs no constructor and touches no page until used.
template <typename Object, int index_bits, int generation_bits>
class HandleTable {
public:
    // Takes a free slot, to be opened or given back; 0 if there is none.
    uintptr_t take()
    {
        for (uintptr_t index = 0; index < std::size(slots_); ++index) {
            std::atomic<uintptr_t>& key = slots_[index].key;
            uintptr_t last = key.load(std::memory_order_relaxed);
            const uintptr_t next = key_of((last >> generation_shift) + 1, index, closed);
            if (state_of(last) == vacant &&
                key.compare_exchange_strong(last, next, std::memory_order_acquire))
                return next;
        }
        return 0;
    }

    // Puts the object into the slot that was taken and returns its handle.
    uintptr_t open(uintptr_t taken, Object* object)
    {
        Slot& slot = slot_of(taken);
        slot.object = object;
        const uintptr_t handle = with_state(taken, live);
        slot.key.store(handle, std::memory_order_release);
        return handle;
    }

    // The object of a live handle, else null.
    Object* find(uintptr_t handle) const
    {
        const Slot& slot = slots_[index_of(handle)];
        const bool found = state_of(handle) == live && slot.key.load(std::memory_order_acquire) == handle;
        return found ? slot.object : nullptr;
    }

    // Takes the object out; null if the handle is not live. The slot stays taken until it is given back.
    Object* close(uintptr_t handle)
    {
        Slot& slot = slot_of(handle);
        uintptr_t expected = handle;
        if (state_of(handle) != live ||
            !slot.key.compare_exchange_strong(expected, with_state(handle, closed)))
            return nullptr;
        return slot.object;
    }

    // Frees the slot for another object. A slot whose generations are used up stays closed.
    void give_back(uintptr_t taken)
    {
        const bool exhausted = taken >> generation_shift == max_generations;
        slot_of(taken).key.store(with_state(taken, exhausted ? closed : vacant), std::memory_order_release);
    }

private:
    // The lowest bits of a live handle are 9: no pointer to an aligned object has them.
    enum State : uintptr_t { vacant = 0, closed = 1, live = 9 };
    static constexpr int state_bits = 4, generation_shift = state_bits + index_bits;
    static constexpr uintptr_t max_generations = (uintptr_t{1} << generation_bits) - 1;

    struct Slot {
        std::atomic<uintptr_t> key = 0;  // generation, index, state
        Object* object = nullptr;
    };

    static constexpr uintptr_t key_of(uintptr_t generation, uintptr_t index, State state)
    {
        return generation << generation_shift | index << state_bits | state;
    }
    static constexpr uintptr_t state_of(uintptr_t key) { return key & ((1 << state_bits) - 1); }
    static constexpr uintptr_t index_of(uintptr_t key)
    {
        return key >> state_bits & ((uintptr_t{1} << index_bits) - 1);
    }
    static constexpr uintptr_t with_state(uintptr_t key, State state)
    {
        return (key ^ state_of(key)) | state;
    }
    Slot& slot_of(uintptr_t key) { return slots_[index_of(key)]; }

    Slot slots_[uintptr_t{1} << index_bits] = {};
};

}  // namespace hg
