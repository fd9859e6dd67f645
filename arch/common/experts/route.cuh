// Sorts choices by expert, stably: each warp counts its choices of each expert, and then knows in which
// rows they lie.
//
// Barriers: __syncthreads() between the counts of warps, sums over them, and the rows that follow from
// both.
#pragma once

#include "arch/common/experts/config.hpp"
#include "arch/common/ptx/warp.cuh"

#include <cstdint>

namespace hg {

constexpr uint32_t whole_warp = 0xffffffff;

// Choices that a lane loads at a time.
constexpr int choices_at_once = 4;
using Choices = int32_t[choices_at_once];

// Of the choices first, first + 32, ... before `end`, the experts less `begin`; -1: not one of `count`.
template <typename Number>
__device__ inline void load_experts(const RouteParams& p, int32_t first, int32_t end, int32_t begin,
                                    int32_t count, Choices& expert)
{
    Number number[choices_at_once];
#pragma unroll
    for (int i = 0; i < choices_at_once; ++i) {
        const int32_t choice = min(first + 32 * i, end - 1), token = p.choices.quotient(choice);
        const int64_t place = token * p.ld + (choice - token * p.choices.value);
        number[i] = static_cast<const Number*>(p.chosen)[place];
    }
#pragma unroll
    for (int i = 0; i < choices_at_once; ++i) {
        const int64_t place = int64_t{number[i]} - begin;
        const bool is_one = first + 32 * i < end && 0 <= place && place < count;
        expert[i] = is_one ? static_cast<int32_t>(place) : -1;
    }
}

// The lanes whose numbers are the same: -1, or less than experts_at_once.
__device__ inline uint32_t lanes_alike(int32_t number)
{
    uint32_t alike = whole_warp;
#pragma unroll
    for (int bit = 0; bit <= log2_experts_at_once; ++bit) {
        const bool is_set = (number >> bit & 1) != 0;
        const uint32_t set = __ballot_sync(whole_warp, is_set);
        alike &= is_set ? set : ~set;
    }
    return alike;
}

// Calls visit(choice, expert - first) for the warp's choices in order, 32 at a time; -1: another expert.
// `choice` is -1 where there is none.
template <typename Visit>
__device__ inline void for_each_choice(const RouteParams& p, int32_t first, int32_t count, Visit visit)
{
    const auto warp = static_cast<int32_t>(blockIdx.x * route_warps + threadIdx.x / 32);
    const int32_t begin = warp * p.warp_choices, end = min(begin + p.warp_choices, p.all_choices);
#pragma unroll 1
    for (int32_t at = begin; at < end; at += 32 * choices_at_once) {
        const int32_t own = at + static_cast<int32_t>(ptx::lane_id());
        Choices expert;
        if (p.narrow)
            load_experts<int32_t>(p, own, end, first, count, expert);
        else
            load_experts<int64_t>(p, own, end, first, count, expert);
#pragma unroll
        for (int i = 0; i < choices_at_once; ++i)
            visit(own + 32 * i < end ? own + 32 * i : -1, expert[i]);
    }
}

// The warp's choices of each expert.
__device__ inline void count_choices(const RouteParams& p, int32_t first, int32_t count, int32_t* counts)
{
    for (auto e = static_cast<int32_t>(ptx::lane_id()); e < count; e += 32)
        counts[e] = 0;
    __syncwarp();
    for_each_choice(p, first, count, [&](int32_t, int32_t expert) {
        if (expert >= 0)
            atomicAdd(counts + expert, 1);
    });
}

// Of one expert: choices in all CTAs, and in those before this one.
struct ExpertCounts {
    int32_t all, before;

    __device__ static ExpertCounts of(const RouteParams& p, int32_t expert, int32_t own)
    {
        if (!p.counts)
            return {own, 0};
        ExpertCounts sum{0, 0};
#pragma unroll 8
        for (int32_t cta = 0; cta < static_cast<int32_t>(gridDim.x); ++cta) {
            const int32_t count = p.counts[int64_t{cta} * p.experts + expert];
            sum.all += count;
            sum.before += cta < static_cast<int32_t>(blockIdx.x) ? count : 0;
        }
        return sum;
    }
};

// The sum of the values of a warp's lanes up to this one, `lane`.
__device__ inline int32_t sum_up_to(int lane, int32_t value)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int32_t other = __shfl_up_sync(whole_warp, value, step);
        value += lane >= step ? other : 0;
    }
    return value;
}

// The sum of the values of threads before this one; `all`: of all threads.
__device__ inline int32_t sum_before(int32_t value, int32_t (&sums)[route_warps], int32_t& all)
{
    const auto lane = static_cast<int>(ptx::lane_id()), warp = static_cast<int>(threadIdx.x / 32);
    const int32_t sum = sum_up_to(lane, value);
    if (lane == 31)
        sums[warp] = sum;
    __syncthreads();
    const int32_t of_warps = sum_up_to(lane, sums[lane]);
    all = __shfl_sync(whole_warp, of_warps, 31);
    const int32_t before = __shfl_sync(whole_warp, of_warps, (warp + 31) % 32);
    return sum - value + (warp > 0 ? before : 0);
}

__device__ inline int32_t sum_of_warps(const RouteShared& shared, int32_t expert)
{
    int32_t sum = 0;
#pragma unroll 8
    for (int warp = 0; warp < route_warps; ++warp)
        sum += shared.places[warp][expert];
    return sum;
}

// From each warp's counts to where its first rows are. Returns how many rows these experts have.
__device__ inline int32_t find_places(const RouteParams& p, int32_t first, int32_t count, int32_t row,
                                      RouteShared& shared)
{
    const auto e = static_cast<int32_t>(threadIdx.x);
    const bool has_expert = e < count;
    const ExpertCounts counts =
        has_expert ? ExpertCounts::of(p, first + e, sum_of_warps(shared, e)) : ExpertCounts{0, 0};
    int32_t all;
    const int32_t begin = row + sum_before(counts.all, shared.sums, all);
    if (has_expert) {
        int32_t place = begin + counts.before;
#pragma unroll 8
        for (int warp = 0; warp < route_warps; ++warp) {
            const int32_t own = shared.places[warp][e];
            shared.places[warp][e] = place;
            place += own;
        }
        if (blockIdx.x == 0)
            p.ends[first + e] = begin + counts.all;
    }
    return all;
}

// Writes the rows of the warp's choices, and takes them from `places`.
__device__ inline void place_choices(const RouteParams& p, int32_t first, int32_t count, int32_t* places)
{
    for_each_choice(p, first, count, [&](int32_t choice, int32_t expert) {
        const uint32_t alike = lanes_alike(expert);
        const int before = __popc(alike & ((1u << ptx::lane_id()) - 1));
        const int32_t row = expert >= 0 ? places[expert] + before : -1;
        __syncwarp();
        if (expert >= 0 && before == 0)
            places[expert] = row + __popc(alike);
        __syncwarp();
        if (row >= 0) {
            p.row_of_choice[choice] = row;
            if (p.choice_of_row)
                p.choice_of_row[row] = choice;
        } else if (choice >= 0 && first == 0) {
            p.row_of_choice[choice] = -1;  // until its expert's turn comes
        }
    });
}

// The whole kernel.
__device__ inline void route(const RouteParams& p, RouteShared& shared)
{
    int32_t* const own = shared.places[threadIdx.x / 32];
    int32_t rows = 0;
#pragma unroll 1
    for (int32_t first = 0; first < p.experts; first += experts_at_once) {
        const int32_t count = min(experts_at_once, p.experts - first);
        count_choices(p, first, count, own);
        __syncthreads();
        if (p.counts_alone) {
            if (const auto e = static_cast<int32_t>(threadIdx.x); e < count)
                p.counts[int64_t{blockIdx.x} * p.experts + first + e] = sum_of_warps(shared, e);
        } else {
            rows += find_places(p, first, count, rows, shared);
            __syncthreads();
            place_choices(p, first, count, own);
        }
        __syncthreads();
    }
    const auto threads = static_cast<int32_t>(gridDim.x * route_threads);
    if (!p.counts_alone && p.choice_of_row)
        for (auto row = static_cast<int32_t>(rows + blockIdx.x * route_threads + threadIdx.x);
             row < p.all_choices; row += threads)
            p.choice_of_row[row] = -1;
}

}  // namespace hg
