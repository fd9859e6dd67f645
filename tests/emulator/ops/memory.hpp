// What loads, stores and atomics share.
#pragma once

#include "core/modifiers.hpp"
#include "core/state.hpp"

namespace emu {

enum class Order : uint8_t { Weak, Relaxed, Acquire, Release, AcquireRelease };

// Memory operands as Op::imm remembers them.
enum MemorySlot { memory_space, memory_cluster, memory_order, memory_scope, memory_first_free };

// ".global", ".shared::cluster", ...; none is generic. Sets the space slots.
void take_space(Modifiers& m, Op& op);
// ".relaxed.gpu" and the like; loads, stores and atomics differ in what is allowed. Sets the scope slot.
Order take_order(Modifiers& m, Op& op);
void take_scope(Modifiers& m, Op& op);
void ignore_cache_hints(Modifiers& m);
// A symbol of another space than the one named: .param variables of device functions are local.
void fix_space(const ptx::Operand& address, Op& op);

// Where the lane's address leads, checked.
Location locate(Exec& x, int lane, int bytes, int alignment);

// The same for an access of all executing lanes, noted with the checker and in the statistics.
void locate_all(Exec& x, Location (&at)[warp_lanes], int bytes, int alignment, Access kind);

// Order between threads by way of a location.
void before_store(Exec& x, Order order, const Location& at, int lane);
void after_load(Exec& x, Order order, const Location& at, int lane);

void add_atomic(DecoderTable&);   // memory_atomic.cpp
void add_address(DecoderTable&);  // memory_address.cpp: cvta, isspacep, prefetch, fence

}  // namespace emu
