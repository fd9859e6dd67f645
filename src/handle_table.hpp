// HandleTable: what public handles stand for. A handle is no address but a number: the place of its object
// in the table, and which of the objects that had this place it is. So it is told without reading anything
// that the caller's handle points to whether it is one, and a destroyed one stays wrong when its place is
// another's.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>

namespace hg {

// Without a lock: a child of fork() would wait for one that another thread held. All zero bits are a table
// without objects, so that one in static memory needs no constructor and touches no page before its use.
template <typename Object, int place_bits, int generation_bits>
class HandleTable {
public:
    // A place for one more object, to be opened or given back; 0 where there is none.
    uintptr_t take()
    {
        for (uintptr_t place = 0; place < std::size(slots_); ++place) {
            std::atomic<uintptr_t>& key = slots_[place].key;
            uintptr_t last = key.load(std::memory_order_relaxed);
            const uintptr_t next = key_of((last >> generation_shift) + 1, place, closed);
            if (state_of(last) == vacant &&
                key.compare_exchange_strong(last, next, std::memory_order_acquire))
                return next;
        }
        return 0;
    }

    // The handle of an object at a place that was taken.
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
        const Slot& slot = slots_[place_of(handle)];
        const bool found = state_of(handle) == live && slot.key.load(std::memory_order_acquire) == handle;
        return found ? slot.object : nullptr;
    }

    // Takes the object out. Its place is taken still; null where the handle is no live one.
    Object* close(uintptr_t handle)
    {
        Slot& slot = slot_of(handle);
        uintptr_t expected = handle;
        if (state_of(handle) != live ||
            !slot.key.compare_exchange_strong(expected, with_state(handle, closed)))
            return nullptr;
        return slot.object;
    }

    // For the next object. A place that had as many as can be counted stays closed.
    void give_back(uintptr_t taken)
    {
        const bool exhausted = taken >> generation_shift == most_generations;
        slot_of(taken).key.store(with_state(taken, exhausted ? closed : vacant), std::memory_order_release);
    }

private:
    // A handle's lowest bits are those of no pointer to an object.
    enum State : uintptr_t { vacant = 0, closed = 1, live = 9 };
    static constexpr int state_bits = 4, generation_shift = state_bits + place_bits;
    static constexpr uintptr_t most_generations = (uintptr_t{1} << generation_bits) - 1;

    struct Slot {
        std::atomic<uintptr_t> key = 0;  // generation, place, state
        Object* object = nullptr;
    };

    static constexpr uintptr_t key_of(uintptr_t generation, uintptr_t place, State state)
    {
        return generation << generation_shift | place << state_bits | state;
    }
    static constexpr uintptr_t state_of(uintptr_t key) { return key & ((1 << state_bits) - 1); }
    static constexpr uintptr_t place_of(uintptr_t key)
    {
        return key >> state_bits & ((uintptr_t{1} << place_bits) - 1);
    }
    static constexpr uintptr_t with_state(uintptr_t key, State state)
    {
        return (key ^ state_of(key)) | state;
    }
    Slot& slot_of(uintptr_t key) { return slots_[place_of(key)]; }

    Slot slots_[uintptr_t{1} << place_bits] = {};
};

}  // namespace hg
