// Random questions for the planner: a device, a problem that passes the argument checks, options.
#pragma once

#include "src/plan/backend.hpp"

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

// One device of each kind that is served, and a MIG slice of one.
std::span<const Device> devices();

// Draws until the argument checks agree; with beta = 1 and groups in some.
Problem draw_problem(Random& random);

// Some force a kernel, its options or a backend, or limit the SMs.
Options draw_options(Random& random, const Device& device);

}  // namespace hg::planning
