#include "src/check/exchange.hpp"

#include "src/check/host_memory.hpp"
#include "src/check/request.hpp"
#include "src/plan/exchange.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace hg {
namespace {

constexpr uintptr_t flag_alignment = 16;

// A member of a struct that is argument `position`, as messages call it.
struct Member {
    int position;
    const char* name;
};

Status check_aligned(const Member& member, const void* ptr, uintptr_t alignment, Pointers pointers)
{
    if (reinterpret_cast<uintptr_t>(ptr) % alignment != 0)
        return fail_argument(member.position, member.name, "is %p, must be aligned to %zu bytes", ptr,
                             static_cast<size_t>(alignment));
    return pointers == Pointers::OnHost ? check_host_memory(member.position, member.name, ptr) : ok;
}

// Names an entry of an array as long as it lives.
class Entry {
public:
    Entry(const Member& array, int64_t index)
    {
        std::snprintf(text_, sizeof text_, "%s[%" PRId64 "]", array.name, index);
    }
    const char* text() const { return text_; }

private:
    char text_[64];
};

enum class Nulls { Refused, Allowed };

bool is_aligned(const void* ptr, uintptr_t alignment)
{
    return ptr && reinterpret_cast<uintptr_t>(ptr) % alignment == 0;
}

Status check_flags(const Member& member, hgemm_flag_t* const* flags, int64_t count, Nulls nulls,
                   Pointers pointers)
{
    for (int64_t i = 0; i < count; ++i) {
        if (flags[i] ? is_aligned(flags[i], flag_alignment) && pointers != Pointers::OnHost
                     : nulls == Nulls::Allowed)
            continue;
        const Entry entry(member, i);
        if (!flags[i])
            return fail_argument(member.position, entry.text(), "is NULL, must point to an hgemm_flag_t");
        const Status status =
            check_aligned({member.position, entry.text()}, flags[i], flag_alignment, pointers);
        if (status != ok)
            return status;
    }
    return ok;
}

// One raise would be taken twice.
Status check_different(const Member& member, hgemm_flag_t* const* flags, int64_t count)
{
    for (int64_t i = 1; i < count; ++i)
        if (const auto* const same = std::find(flags, flags + i, flags[i]); same != flags + i)
            return fail_argument(member.position, Entry(member, i).text(),
                                 "is %p, must differ from entry %td", static_cast<void*>(flags[i]),
                                 same - flags);
    return ok;
}

Status check_count(const Member& member, int64_t count)
{
    return 0 <= count && count <= most_parts
               ? ok
               : fail_argument(member.position, member.name, "is %" PRId64 ", must be 0 to %d", count,
                               most_parts);
}

Status check_array(const Member& member, const void* array, int64_t count)
{
    return array || count == 0 ? ok
                               : fail_argument(member.position, member.name,
                                               "is NULL, must be an array of %" PRId64 " pointers", count);
}

Status check_counted_flags(const Member& array, const Member& number, hgemm_flag_t* const* flags,
                           int64_t count, Pointers pointers)
{
    Status status = check_count(number, count);
    if (status == ok)
        status = check_array(array, flags, count);
    return status == ok ? check_flags(array, flags, count, Nulls::Refused, pointers) : status;
}

Status check_limit(const Member& limit, const Member& word, int64_t limit_us, const uint32_t* error,
                   Pointers pointers)
{
    constexpr int64_t most = INT64_MAX / 1000;  // nanoseconds
    if (limit_us < 0 || limit_us > most)
        return fail_argument(limit.position, limit.name, "is %" PRId64 ", must be 0 to %" PRId64, limit_us,
                             most);
    if (!error && limit_us > 0)
        return fail_argument(word.position, word.name, "is NULL, must point to a uint32_t with a limit");
    return error ? check_aligned(word, error, alignof(uint32_t), pointers) : ok;
}

Status check_pointers(const Member& member, const void* const* array, int64_t count, hgemm_type_t type,
                      Pointers pointers)
{
    const int64_t bytes = bytes_of(static_cast<Type>(type));
    Status status = check_array(member, array, count);
    for (int64_t i = 0; status == ok && i < count; ++i)
        if (!is_aligned(array[i], static_cast<uintptr_t>(bytes)) || pointers == Pointers::OnHost)
            status = check_pointer(member.position, Entry(member, i).text(), array[i], bytes, pointers);
    return status;
}

Status check_wait(const hgemm_exchange_args_t& x, Pointers pointers)
{
    Status status =
        check_counted_flags({2, "args->wait"}, {2, "args->wait_count"}, x.wait, x.wait_count, pointers);
    if (status == ok)
        status = check_different({2, "args->wait"}, x.wait, x.wait_count);
    return status == ok
               ? check_limit({2, "args->limit_us"}, {2, "args->error"}, x.limit_us, x.error, pointers)
               : status;
}

Status check_sizes(const hgemm_exchange_args_t& x)
{
    if (x.rows < 0)
        return fail_argument(2, "args->rows", "is %" PRId64 ", must be at least 0", x.rows);
    if (x.columns < 0 || x.columns > most_columns)
        return fail_argument(2, "args->columns", "is %" PRId64 ", must be 0 to 2^30", x.columns);
    Status status = check_type(2, "args->type_part", x.type_part);
    if (status == ok)
        status = check_type(2, "args->type_d", x.type_d);
    const Stored stored{x.columns, x.rows, "columns"};
    if (status == ok)
        status =
            check_leading(2, "args->ld_part", x.ld_part, stored, bytes_of(static_cast<Type>(x.type_part)));
    return status == ok
               ? check_leading(2, "args->ldd", x.ldd, stored, bytes_of(static_cast<Type>(x.type_d)))
               : status;
}

Status check_sum(const hgemm_exchange_args_t& x, bool tree, Pointers pointers)
{
    Status status = check_count({2, "args->d_count"}, x.d_count);
    if (status != ok || x.d_count == 0)
        return status;
    status = check_sizes(x);
    if (status == ok && (x.part_count < 1 || x.part_count > most_parts))
        return fail_argument(2, "args->part_count", "is %" PRId64 ", must be 1 to %d", x.part_count,
                             most_parts);
    if (status == ok && tree && !std::has_single_bit(static_cast<uint64_t>(x.part_count)))
        return fail_argument(2, "args->part_count",
                             "is %" PRId64 ", must be a power of two in HGEMM_MODE_TREE", x.part_count);
    if (status != ok || x.rows == 0 || x.columns == 0)
        return status;
    status = check_pointers({2, "args->parts"}, x.parts, x.part_count, x.type_part, pointers);
    if (status == ok && x.bias)
        status = check_type(2, "args->bias_type", x.bias_type);
    if (status == ok && x.bias)
        status = check_pointer(2, "args->bias", x.bias, bytes_of(static_cast<Type>(x.bias_type)), pointers);
    return status == ok ? check_pointers({2, "args->d"}, x.d, x.d_count, x.type_d, pointers) : status;
}

}  // namespace

Status check_exchange(const hgemm_exchange_args_t& x, bool tree, Pointers pointers)
{
    Status status =
        check_counted_flags({2, "args->raise"}, {2, "args->raise_count"}, x.raise, x.raise_count, pointers);
    if (status == ok)
        status = check_wait(x, pointers);
    if (status == ok)
        status = check_sum(x, tree, pointers);
    return status == ok ? check_counted_flags({2, "args->raise_after"}, {2, "args->raise_after_count"},
                                              x.raise_after, x.raise_after_count, pointers)
                        : status;
}

Status check_blocks(const hgemm_blocks_t& b, const hgemm_args_t& args, Pointers pointers)
{
    if (b.rows < 1)
        return fail_argument(3, "blocks->rows", "is %" PRId64 ", must be at least 1", b.rows);
    const int64_t count = count_blocks(b, args);
    if (b.first < 0 || b.first >= count)
        return fail_argument(3, "blocks->first", "is %" PRId64 ", must be 0 to %" PRId64, b.first,
                             count - 1);
    Status status = b.wait ? check_flags({3, "blocks->wait"}, b.wait, count, Nulls::Allowed, pointers) : ok;
    if (status == ok && b.raise)
        status = check_flags({3, "blocks->raise"}, b.raise, count, Nulls::Allowed, pointers);
    if (status == ok && b.d && args.n > 0)
        status = check_pointers({3, "blocks->d"}, b.d, count, args.type_d, pointers);
    return status == ok
               ? check_limit({3, "blocks->limit_us"}, {3, "blocks->error"}, b.limit_us, b.error, pointers)
               : status;
}

Status check_product_of_blocks(const hgemm_args_t& args)
{
    if (args.batch_count != 1)
        return fail_argument(2, "args->batch_count", "is %" PRId64 ", must be 1 in blocks",
                             args.batch_count);
    const struct {
        const char* name;
        const void* array;
    } arrays[] = {{"args->a_array", args.a_array},
                  {"args->b_array", args.b_array},
                  {"args->c_array", args.c_array},
                  {"args->d_array", args.d_array}};
    for (const auto& [name, array] : arrays)
        if (array)
            return fail_argument(2, name, "is %p, must be NULL in blocks", array);
    if (args.uplo != 0)
        return fail_argument(2, "args->uplo", "is %d, must be 0 in blocks", static_cast<int>(args.uplo));
    if (args.gate.block != 0)
        return fail_argument(2, "args->gate.block", "is %" PRId64 ", must be 0 in blocks", args.gate.block);
    return ok;
}

Status check_error_word(const char* name, int position, const uint32_t* error, Pointers pointers)
{
    if (!error)
        return fail_argument(position, name, "is NULL, must point to a uint32_t");
    return check_aligned({position, name}, error, alignof(uint32_t), pointers);
}

}  // namespace hg
