#include "arch/host/passes/exchange.hpp"

#include "src/base/convert.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>

namespace hg {
namespace {

constexpr int64_t sums_at_once = 256;  // elements of a row that are added up at a time

void raise_flags(std::span<hgemm_flag_t* const> flags)
{
    for (hgemm_flag_t* const flag : flags)
        std::atomic_ref(flag->raised).fetch_add(1, std::memory_order_release);
}

bool has_failed(const Exchange& what)
{
    return what.error && std::atomic_ref(*what.error).load(std::memory_order_relaxed) != 0;
}

// False if it lasts too long, or something else has failed.
bool wait_for_raise(const Exchange& what, hgemm_flag_t& flag)
{
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const std::atomic_ref raised(flag.raised);
    const uint32_t target = flag.taken + 1;
    while (static_cast<int32_t>(raised.load(std::memory_order_acquire) - target) < 0) {
        if (has_failed(what))
            return false;
        if (what.limit_us > 0 && Clock::now() - start > std::chrono::microseconds(what.limit_us)) {
            uint32_t none = 0;
            std::atomic_ref(*what.error).compare_exchange_strong(none, what.error_code);
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

bool take_flags(const Exchange& what)
{
    for (hgemm_flag_t* const flag : what.wait)
        if (!wait_for_raise(what, *flag))
            return false;
    for (hgemm_flag_t* const flag : what.wait)
        ++flag->taken;
    return true;
}

using Sums = float[log2_parts + 1][sums_at_once];

void load(const Exchange& what, size_t part, int64_t from, int64_t count, float* values)
{
    to_float(what.type_part, what.parts[part], from, 1, count, values);
}

// Of elements from `from` on, to sums[0].
void add_in_order(const Exchange& what, int64_t from, int64_t count, Sums& sums)
{
    load(what, 0, from, count, sums[0]);
    for (size_t r = 1; r < what.parts.size(); ++r) {
        load(what, r, from, count, sums[1]);
        for (int64_t e = 0; e < count; ++e)
            sums[0][e] += sums[1][e];
    }
}

// sums[l] is a sum of 2^l neighbours that waits for the next as many.
void add_pairwise(const Exchange& what, int64_t from, int64_t count, Sums& sums)
{
    float* const sum = sums[log2_parts];
    for (size_t r = 0; r < what.parts.size(); ++r) {
        load(what, r, from, count, sum);
        int level = 0;
        for (; (r >> level & 1) != 0; ++level)
            for (int64_t e = 0; e < count; ++e)
                sum[e] = sums[level][e] + sum[e];
        if (level < log2_parts)
            std::copy(sum, sum + count, sums[level]);
    }
    std::copy(sum, sum + count, sums[0]);
}

void add_rows(const Exchange& what, int64_t begin, int64_t end)
{
    Sums sums;
    for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < what.columns; j += sums_at_once) {
            const int64_t count = std::min(sums_at_once, what.columns - j);
            if (what.pairwise)
                add_pairwise(what, i * what.ld_part + j, count, sums);
            else
                add_in_order(what, i * what.ld_part + j, count, sums);
            if (what.bias) {
                to_float(what.type_bias, what.bias, j, 1, count, sums[1]);
                for (int64_t e = 0; e < count; ++e)
                    sums[0][e] += sums[1][e];
            }
            for (void* const d : what.d)
                from_float(what.type_d, sums[0], count, d, i * what.ldd + j, 1);
        }
}

}  // namespace

void exchange(Pool& pool, const Exchange& what, int threads)
{
    // Fewer elements are not worth a second thread.
    constexpr int64_t elements_of_part = int64_t{1} << 14;
    if (has_failed(what))
        return;
    raise_flags(what.raise);
    if (!take_flags(what))
        return;
    const auto parts = std::clamp<int64_t>(what.rows * what.columns / elements_of_part, 1, threads);
    pool.parallel_for(static_cast<int>(parts), what.rows,
                      [&](int64_t begin, int64_t end) { add_rows(what, begin, end); });
    raise_flags(what.raise_after);
}

}  // namespace hg
