// The pass that gates sums. Each thread reads gates and their up elements, and writes D and aux.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/gate/config.hpp"
#include "arch/common/groups.cuh"

#include <cstdint>

namespace hg {

// Where a unit's first element is: in the line of sums, and in D.
struct GateUnit {
    int32_t z, i, j;
    int64_t place;

    __device__ GateUnit(const GateParams& p, int32_t unit, int width)
    {
        z = p.units_of_problem.quotient(unit);
        const int32_t rest = unit - z * p.units_of_problem.value;
        i = p.units_of_row.quotient(rest);
        j = (rest - i * p.units_of_row.value) * width;
        place = j;
        if (p.block.value != 0)
            place += int64_t{p.block.quotient(j)} * p.block.value;
    }
};

// Does a group own row i of matrix z? Contiguous groups lie behind each other.
__device__ inline bool is_owned(const GateParams& p, int32_t z, int32_t i)
{
    if (!p.groups.sizes)
        return true;
    if (p.groups.masked())
        return i < GroupRows::of(p.groups, z, p.rows).count;
    const GroupRows first = GroupRows::of(p.groups, 0, p.rows);
    const GroupRows last = GroupRows::of(p.groups, p.group_count - 1, p.rows);
    return i >= first.first && i < last.first + last.count;
}

__device__ inline void gate_vector(const GateParams& p, const GateUnit& at)
{
    constexpr Type usual = Type::BF16;
    const float* const from = p.sums + at.z * p.problem_stride + at.i * p.ld + at.place;
    const int64_t bytes = device_bytes_of(p.type_d);
    float gates[8], others[8];
    load_vector<usual>(gates, from, Type::F32);
    load_vector<usual>(others, from + p.apart, Type::F32);
    if (p.aux) {
        char* const aux =
            static_cast<char*>(p.aux) + (at.z * p.stride_aux + at.i * p.ldaux + at.place) * bytes;
        store_vector<usual>(gates, aux, p.type_d);
        store_vector<usual>(others, aux + p.aux_apart * bytes, p.type_d);
    }
    with_gate_function(p.activation, p.gate.slope, [&](auto activation) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            gates[e] = gated(gates[e], others[e], p.gate, activation);
    });
    store_vector<usual>(gates, static_cast<char*>(p.d) + (at.z * p.stride_d + at.i * p.ldd + at.j) * bytes,
                        p.type_d);
}

__device__ inline void gate_element(const GateParams& p, const GateUnit& at)
{
    const float* const from = p.sums + at.z * p.problem_stride + at.i * p.ld + at.place;
    float gate = from[0];
    const float other = from[p.apart];
    if (p.aux) {
        const int64_t place = at.z * p.stride_aux + at.i * p.ldaux + at.place;
        store_element(gate, p.aux, place, p.type_d);
        store_element(other, p.aux, place + p.aux_apart, p.type_d);
    }
    with_gate_function(p.activation, p.gate.slope,
                       [&](auto activation) { gate = gated(gate, other, p.gate, activation); });
    void* const d = problem_base(p.d, p.d_array, at.z, p.stride_d * device_bytes_of(p.type_d));
    store_element(gate, d, at.i * p.ldd + at.j, p.type_d);
}

// The whole kernel.
__device__ inline void apply_gates(const GateParams& p)
{
    const auto threads = static_cast<int32_t>(gridDim.x) * gate_threads;
#pragma unroll 1
    for (auto unit = static_cast<int32_t>(blockIdx.x * gate_threads + threadIdx.x); unit < p.units;
         unit += threads) {
        const GateUnit at(p, unit, p.vectors ? epilogue_vector : 1);
        if (!is_owned(p, at.z, at.i))
            continue;
        if (p.vectors)
            gate_vector(p, at);
        else
            gate_element(p, at);
    }
}

}  // namespace hg
