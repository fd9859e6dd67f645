// Random questions for the planner: a device, a product that the argument checks let through, options.
#pragma once

#include "backend.hpp"

#include <cstdint>
#include <span>

namespace hg::planning {

// Numbers as a function of a seed and an index, so that any question can be asked again alone.
class Random {
public:
    Random(uint64_t seed, uint64_t index) : state_(seed * 0x9e3779b97f4a7c15u ^ index * 0xd1342543de82ef95u)
    {
    }

    uint64_t next();
    int64_t below(int64_t end) { return static_cast<int64_t>(next() % static_cast<uint64_t>(end)); }
    bool one_in(int64_t times) { return below(times) == 0; }
    template <typename T, size_t Count>
    T pick(const T (&values)[Count])
    {
        return values[below(Count)];
    }

private:
    uint64_t state_;
};

// One of each kind that is served, and parts of some.
std::span<const Device> devices();

// Draws until the argument checks agree; with beta = 1 and groups in some.
Problem draw_problem(Random& random);

// Some of them force a kernel, its settings or a backend, or bound the multiprocessors.
Options draw_options(Random& random, const Device& device);

}  // namespace hg::planning
