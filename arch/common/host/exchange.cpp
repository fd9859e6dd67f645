#include "arch/common/host/exchange.hpp"

#include "arch/common/divisor.hpp"
#include "arch/common/host/facts.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace hg {
namespace {

constexpr int64_t vector_bytes = 16;

static_assert(sizeof(Flag) == sizeof(hgemm_flag_t));
static_assert(max_exchanged == most_parts && log2_max_exchanged == log2_parts);

// Elements that a thread loads at a time: 16 bytes of a part, if all rows, and the bias, are whole aligned
// vectors.
int32_t width_of(const Exchange& what)
{
    const auto aligned = [](const void* ptr, int64_t ld, Type type) {
        return is_vector_aligned(ptr, ld, 0, bytes_of(type));
    };
    const bool parts = std::ranges::all_of(
        what.parts, [&](const void* p) { return aligned(p, what.ld_part, what.type_part); });
    const bool places =
        std::ranges::all_of(what.d, [&](const void* p) { return aligned(p, what.ldd, what.type_d); });
    const bool bias = !what.bias || aligned(what.bias, 0, what.type_bias);
    const int64_t width = vector_bytes / bytes_of(what.type_part);
    return parts && places && bias && what.columns % width == 0 ? static_cast<int32_t>(width) : 1;
}

int32_t copy_flags(std::span<hgemm_flag_t* const> flags, Flag* (&to)[max_exchanged])
{
    std::ranges::transform(flags, to, [](hgemm_flag_t* flag) { return reinterpret_cast<Flag*>(flag); });
    return static_cast<int32_t>(flags.size());
}

}  // namespace

int64_t rows_at_once(const Exchange& what)
{
    constexpr int64_t units = std::numeric_limits<int32_t>::max() / 2;
    return std::max<int64_t>(1, units / std::max<int64_t>(1, what.columns));
}

ExchangeParams pack_exchange(const Exchange& what, int64_t row, bool waits)
{
    const int64_t rows = std::min(rows_at_once(what), what.rows - row);
    ExchangeParams p{};
    p.width = width_of(what);
    const int64_t units_of_row = what.columns / p.width;
    p.units = static_cast<int32_t>(rows * units_of_row);
    p.units_of_row = divisor(static_cast<int32_t>(std::max<int64_t>(1, units_of_row)));
    std::ranges::transform(what.parts, p.parts, [&](const void* part) {
        return static_cast<const char*>(part) + row * what.ld_part * bytes_of(what.type_part);
    });
    std::ranges::transform(what.d, p.d, [&](void* d) {
        return static_cast<char*>(d) + row * what.ldd * bytes_of(what.type_d);
    });
    p.part_count = static_cast<int32_t>(what.parts.size());
    p.d_count = static_cast<int32_t>(what.d.size());
    p.ld_part = what.ld_part;
    p.ldd = what.ldd;
    p.type_part = what.type_part;
    p.type_d = what.type_d;
    p.pairwise = what.pairwise;
    p.bias = what.bias;
    p.type_bias = what.type_bias;
    p.error = what.error;
    p.error_code = what.error_code;
    p.limit_ns = static_cast<uint64_t>(what.limit_us) * 1000;
    if (waits && row == 0) {
        p.raise_count = copy_flags(what.raise, p.raise);
        p.wait_count = copy_flags(what.wait, p.wait);
    }
    if (!what.wait.empty())
        p.counters = reinterpret_cast<Flag*>(what.wait[0]);
    if (p.counters && row + rows >= what.rows)
        p.raise_after_count = copy_flags(what.raise_after, p.raise_after);
    return p;
}

}  // namespace hg
