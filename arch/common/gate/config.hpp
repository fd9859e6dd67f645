// The pass that gates sums, and that of gradients: configuration and parameters. Host and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/types.hpp"

#include <cstdint>

namespace hg {

constexpr int gate_threads = 256, gate_ctas_per_sm = 4;

// As GatePass. A unit is what a thread gates at a time: a vector of eight elements of a row of D, or one
// element.
struct GateParams {
    const float* sums;
    void* d;
    void* const* d_array;  // see problem_base(); null with `vectors`
    void* aux;             // null: no aux
    int64_t ld, problem_stride, apart;
    int64_t ldd, stride_d, ldaux, stride_aux, aux_apart;
    Divisor units_of_row, units_of_problem;
    Divisor block;  // value 0: gates lie side by side
    int32_t units;  // of all problems
    bool vectors;
    Gate gate;
    Activation activation;
    Type type_d;
    Groups groups;  // rows that no group owns stay as they are
    int32_t group_count;
    int64_t rows;  // of a problem
};

// As GateGradient. A unit is what a thread computes at a time: eight gates and their up elements, or one.
struct GateGradientParams {
    const void *product, *of_d;
    void* of_product;
    int64_t ld_product, ld_of_d, ld_of_product;
    Divisor units_of_row;
    Divisor block;  // gates that lie together
    int32_t units;
    bool vectors;
    bool alternate;  // a gate, its up element, the next gate: vectors have four of each
    Gate gate;
    Activation activation;
    Type type_product, type_of_d, type_of_product;
};

}  // namespace hg
