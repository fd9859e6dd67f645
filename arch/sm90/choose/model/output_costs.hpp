// What D of floats and C cost beyond a D of 16-bit elements, which the model and the networks were fitted
// to.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/sm90/config.hpp"

namespace hg::sm90 {

// Microseconds for 16,384 elements of a tile: D of floats, C of 16-bit elements, C of floats. Fitted to
// tests/bench/results/h100_sm90_output_costs.csv.
struct OutputCosts {
    double floats, c, c_floats;
};
constexpr OutputCosts output_costs(Schedule schedule)
{
    return schedule == Schedule::Cooperative ? OutputCosts{1.2, 1.9, 3.55}
           : schedule == Schedule::PingPong  ? OutputCosts{0.8, 1.2, 2.7}
                                             : OutputCosts{2.6, 3.2, 3.4};
}

// Does an output take longer than one of 16-bit elements that is stored in vectors?
inline bool has_output_costs(const Facts& f)
{
    return f.problem.d.type == Type::F32 || f.output.reads_c || f.output.elements;
}

// Microseconds for a whole tile. Direct kernels were not measured: they count as split-K.
inline double output_us(const Facts& f, Schedule schedule, int tile_m, int tile_n)
{
    const OutputCosts costs = output_costs(schedule);
    double us = f.problem.d.type == Type::F32 ? costs.floats : 0.0;
    if (f.output.reads_c)
        us += f.problem.c.type == Type::F32 ? costs.c_floats : costs.c;
    return us * tile_m * tile_n / 16384.0;
}

}  // namespace hg::sm90
