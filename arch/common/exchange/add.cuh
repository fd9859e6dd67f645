// One kernel by which streams and GPUs hand each other data: it raises flags, waits for others, adds up
// parts that may lie in several GPUs, and raises flags again.
//
// Barriers: __syncthreads_and() behind the waits, __syncthreads() before the last flags are raised.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/exchange/config.hpp"
#include "arch/common/ptx/global.cuh"
#include "arch/common/ptx/system.cuh"

#include <cstdint>

namespace hg {

// Called by the CTAs that count: does the caller's come last? Then the counter is 0 again.
__device__ inline bool comes_last(uint32_t* counter)
{
    if (ptx::atomic_add_acq_rel_gpu(counter, 1) != gridDim.x - 1)
        return false;
    ptx::store_relaxed_gpu(counter, 0);
    return true;
}

__device__ inline bool has_failed(const ExchangeParams& p)
{
    return p.error && ptx::load_relaxed_gpu(p.error) != 0;
}

// Waits until a raise is not taken yet; false if that lasts too long, or something else has failed.
__device__ inline bool wait_for_raise(const ExchangeParams& p, const Flag* flag)
{
    const uint32_t target = ptx::load_relaxed_gpu(&flag->taken) + 1;
    const uint64_t start = p.limit_ns > 0 ? ptx::nanoseconds() : 0;
#pragma unroll 1
    while (static_cast<int32_t>(ptx::load_acquire_system(&flag->raised) - target) < 0)
        if (has_failed(p) || (p.limit_ns > 0 && ptx::nanoseconds() - start > p.limit_ns))
            return false;
    return true;
}

// By all threads of a CTA: true if all flags were raised. The last CTA takes the raises: by then all have
// read how many were taken.
__device__ inline bool take_flags(const ExchangeParams& p)
{
    bool raised = !has_failed(p);
    if (const auto i = static_cast<int32_t>(threadIdx.x); raised && i < p.wait_count) {
        raised = wait_for_raise(p, p.wait[i]);
        if (!raised)
            ptx::atomic_cas_relaxed_gpu(p.error, 0, p.error_code);
    }
    const bool all = __syncthreads_and(raised) != 0;
    if (p.wait_count > 0 && threadIdx.x == 0 && comes_last(&p.counters->arrived) && !has_failed(p))
#pragma unroll 1
        for (int32_t i = 0; i < p.wait_count; ++i)
            ptx::store_relaxed_gpu(&p.wait[i]->taken, ptx::load_relaxed_gpu(&p.wait[i]->taken) + 1);
    return all;
}

// Units that a thread loads before it adds: what lies in a peer takes a microsecond and more to come. As
// many as there are registers for.
template <bool Pairwise, int Width>
constexpr int units_at_once = Width == 1 ? 2 : (Pairwise ? 8 : 16) / Width;

// `Units` units of `Width` elements each.
template <int Units, int Width>
using Sums = float[Units][Width];

template <int Units, int Width>
__device__ inline void add(Sums<Units, Width>& sum, const Sums<Units, Width>& v)
{
#pragma unroll
    for (int u = 0; u < Units; ++u)
#pragma unroll
        for (int e = 0; e < Width; ++e)
            sum[u][e] = __fadd_rn(sum[u][e], v[u][e]);
}

// `load` reads the units of a part.
template <int Units, int Width, typename Load>
__device__ inline void add_in_order(const ExchangeParams& p, Sums<Units, Width>& sum, Load load)
{
    load(sum, p.parts[0]);
#pragma unroll 2
    for (int32_t r = 1; r < p.part_count; ++r) {
        Sums<Units, Width> v;
        load(v, p.parts[r]);
        add<Units, Width>(sum, v);
    }
}

// level[l] is a sum of 2^l neighbours that waits for the next as many.
template <int Units, int Width, typename Load>
__device__ inline void add_pairwise(const ExchangeParams& p, Sums<Units, Width>& sum, Load load)
{
    Sums<Units, Width> level[log2_max_exchanged];
#pragma unroll 1
    for (int32_t r = 0; r < p.part_count; ++r) {
        load(sum, p.parts[r]);
        bool waits = false;
#pragma unroll
        for (int l = 0; l < log2_max_exchanged; ++l) {
            const bool has_left = (r >> l & 1) != 0;
#pragma unroll
            for (int u = 0; u < Units; ++u)
#pragma unroll
                for (int e = 0; e < Width; ++e) {
                    if (!waits && has_left)
                        sum[u][e] = __fadd_rn(level[l][u][e], sum[u][e]);
                    else if (!waits)
                        level[l][u][e] = sum[u][e];
                }
            waits = waits || !has_left;
        }
    }
}

// Where a unit lies: its row, and its first column.
struct ExchangeUnit {
    int32_t i, j;

    __device__ ExchangeUnit(const ExchangeParams& p, int32_t unit, int width)
        : i(p.units_of_row.quotient(unit)), j((unit - i * p.units_of_row.value) * width)
    {
    }
};

// Reads, adds the bias to, and stores a unit of one element, or of as many as have 16 bytes.
template <int Width>
struct UnitAccess;

template <>
struct UnitAccess<1> {
    __device__ static void load(float (&v)[1], const void* from, int64_t at, Type type)
    {
        v[0] = load_element(from, at, type);
    }
    __device__ static void store(const float (&v)[1], void* to, int64_t at, Type type)
    {
        store_element(v[0], to, at, type);
    }
};

template <>
struct UnitAccess<4> {
    __device__ static void load(float (&v)[4], const void* from, int64_t at, Type type)
    {
        if (type == Type::F32) {
            *reinterpret_cast<float4*>(v) =
                *reinterpret_cast<const float4*>(static_cast<const float*>(from) + at);
            return;
        }
        const uint2 bits = *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(from) + at);
        const uint32_t words[2] = {bits.x, bits.y};
#pragma unroll
        for (int e = 0; e < 4; ++e)
            v[e] = to_float(static_cast<uint16_t>(words[e / 2] >> e % 2 * 16), type);
    }
    __device__ static void store(const float (&v)[4], void* to, int64_t at, Type type)
    {
        if (type == Type::F32)
            *reinterpret_cast<float4*>(static_cast<float*>(to) + at) = make_float4(v[0], v[1], v[2], v[3]);
        else
            *reinterpret_cast<uint2*>(static_cast<uint16_t*>(to) + at) =
                make_uint2(to_bits2(v[0], v[1], type), to_bits2(v[2], v[3], type));
    }
};

template <>
struct UnitAccess<8> {
    __device__ static void load(float (&v)[8], const void* from, int64_t at, Type type)
    {
        load_vector<Type::BF16>(v, static_cast<const char*>(from) + at * device_bytes_of(type), type);
    }
    __device__ static void store(const float (&v)[8], void* to, int64_t at, Type type)
    {
        store_vector<Type::BF16>(v, static_cast<char*>(to) + at * device_bytes_of(type), type);
    }
};

// The units first, first + step, ...
template <bool Pairwise, int Width>
__device__ inline void exchange_units(const ExchangeParams& p, int32_t first, int32_t step)
{
    constexpr int Units = units_at_once<Pairwise, Width>;
    using Access = UnitAccess<Width>;
    Sums<Units, Width> sum;
    const auto load = [&](Sums<Units, Width>& v, const void* part) {
#pragma unroll
        for (int u = 0; u < Units; ++u)
            if (const int32_t unit = first + u * step; unit < p.units) {
                const ExchangeUnit at(p, unit, Width);
                Access::load(v[u], part, at.i * p.ld_part + at.j, p.type_part);
            }
    };
    if constexpr (Pairwise)
        add_pairwise<Units, Width>(p, sum, load);
    else
        add_in_order<Units, Width>(p, sum, load);
#pragma unroll
    for (int u = 0; u < Units; ++u) {
        const int32_t unit = first + u * step;
        if (unit >= p.units)
            return;
        const ExchangeUnit at(p, unit, Width);
        if (p.bias) {
            float bias[Width];
            Access::load(bias, p.bias, at.j, p.type_bias);
#pragma unroll
            for (int e = 0; e < Width; ++e)
                sum[u][e] = __fadd_rn(sum[u][e], bias[e]);
        }
#pragma unroll 1
        for (int32_t place = 0; place < p.d_count; ++place)
            Access::store(sum[u], p.d[place], at.i * p.ldd + at.j, p.type_d);
    }
}

template <bool Pairwise, int Width>
__device__ inline void exchange_all(const ExchangeParams& p)
{
    const auto threads = static_cast<int32_t>(gridDim.x) * exchange_threads;
#pragma unroll 1
    for (auto unit = static_cast<int32_t>(blockIdx.x * exchange_threads + threadIdx.x); unit < p.units;
         unit += units_at_once<Pairwise, Width> * threads)
        exchange_units<Pairwise, Width>(p, unit, threads);
}

// One part, as it is: by 16 bytes, of which a thread has room for more than where it adds.
__device__ inline bool is_copy(const ExchangeParams& p)
{
    return p.part_count == 1 && !p.bias && p.type_part == p.type_d && p.width > 1;
}

__device__ inline void copy_all(const ExchangeParams& p)
{
    constexpr int units = 8;
    const int32_t bytes = device_bytes_of(p.type_d);
    const auto step = static_cast<int32_t>(gridDim.x) * exchange_threads;
#pragma unroll 1
    for (auto first = static_cast<int32_t>(blockIdx.x * exchange_threads + threadIdx.x); first < p.units;
         first += units * step) {
        uint4 v[units];
#pragma unroll
        for (int u = 0; u < units; ++u)
            if (const int32_t unit = first + u * step; unit < p.units) {
                const ExchangeUnit at(p, unit, p.width);
                v[u] = *reinterpret_cast<const uint4*>(static_cast<const char*>(p.parts[0]) +
                                                       (at.i * p.ld_part + at.j) * bytes);
            }
#pragma unroll
        for (int u = 0; u < units; ++u)
            if (const int32_t unit = first + u * step; unit < p.units) {
                const ExchangeUnit at(p, unit, p.width);
#pragma unroll 1
                for (int32_t place = 0; place < p.d_count; ++place)
                    *reinterpret_cast<uint4*>(static_cast<char*>(p.d[place]) +
                                              (at.i * p.ldd + at.j) * bytes) = v[u];
            }
    }
}

template <int Width>
__device__ inline void exchange_of_width(const ExchangeParams& p)
{
    if (p.pairwise)
        exchange_all<true, Width>(p);
    else
        exchange_all<false, Width>(p);
}

// What lies before it is seen by who takes the flag: in this thread, in threads that it has synchronised
// with, and in kernels before this one on the stream.
__device__ inline void raise(Flag* flag) { ptx::add_release_system(&flag->raised, 1); }

// The whole kernel.
__device__ inline void exchange(const ExchangeParams& p)
{
    const auto thread = static_cast<int32_t>(threadIdx.x);
    if (blockIdx.x == 0 && thread < p.raise_count && !has_failed(p))
        raise(p.raise[thread]);
    if (!take_flags(p))
        return;
    if (is_copy(p))
        copy_all(p);
    else if (p.width == 8)
        exchange_of_width<8>(p);
    else if (p.width == 4)
        exchange_of_width<4>(p);
    else
        exchange_of_width<1>(p);
    if (p.raise_after_count == 0)
        return;
    __syncthreads();
    if (thread == 0 && comes_last(&p.counters->stored))
#pragma unroll 1
        for (int32_t i = 0; i < p.raise_after_count; ++i)
            raise(p.raise_after[i]);
}

}  // namespace hg
