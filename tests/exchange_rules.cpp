#include "exchange_rules.hpp"

#include "exchange_parts.hpp"
#include "handle_scopes.hpp"
#include "trial.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hg::test {
namespace {

struct SumCase {
    int parts, places;
    hgemm_type_t type_part, type_d;
    int64_t rows, columns;
    int64_t gap = 0, shift = 0;  // elements
};

// Some cases per kind: aligned vectors, elements, several launches' worth of CTAs.
std::vector<SumCase> sum_cases()
{
    std::vector<SumCase> cases;
    const hgemm_type_t types[] = {HGEMM_F32, HGEMM_F16, HGEMM_BF16};
    for (const int parts : {1, 2, 3, 4, 8, 64})
        for (int i = 0; i < 3; ++i) {
            const int seed = parts + i;
            cases.push_back({parts, 1 + seed % 3, types[i], types[seed / 2 % 3], 5, 64, 8 * (i % 2), 0});
            cases.push_back({parts, 1 + seed % 2, types[seed % 3], types[i], 3, 17, i, i});
        }
    cases.push_back({4, 2, HGEMM_F32, HGEMM_BF16, 96, 1024, 0, 0});
    cases.push_back({2, 1, HGEMM_F32, HGEMM_F32, 1, 1, 0, 0});
    return cases;
}

float add(std::vector<float> values, bool pairwise)
{
    if (!pairwise) {
        float sum = values[0];
        for (size_t r = 1; r < values.size(); ++r)
            sum += values[r];
        return sum;
    }
    for (; values.size() > 1; values.resize(values.size() / 2))
        for (size_t r = 0; r < values.size() / 2; ++r)
            values[r] = values[2 * r] + values[2 * r + 1];
    return values[0];
}

std::vector<Buffer> make_buffers(Library& library, int count, hgemm_type_t type, const SumCase& s)
{
    const int64_t ld = s.columns + s.gap;
    std::vector<Buffer> buffers;
    for (int i = 0; i < count; ++i)
        buffers.emplace_back(library.memory(), type, Extent{s.rows, s.columns, ld, 1, s.rows * ld}, s.shift,
                             Guard::Pads);
    return buffers;
}

void expect_sum(Library& library, const SumCase& s, bool pairwise)
{
    std::vector<Buffer> parts = make_buffers(library, s.parts, s.type_part, s);
    std::vector<Buffer> places = make_buffers(library, s.places, s.type_d, s);
    const hgemm_type_t type_bias = s.rows % 2 == 0 ? s.type_part : HGEMM_F32;
    Buffer bias(library.memory(), type_bias, Extent{1, s.columns, s.columns, 1, s.columns}, s.shift,
                Guard::Pads);
    for (int64_t j = 0; j < s.columns; ++j)
        bias.set(0, 0, j, Trial::draw(Data::Wide, 18, static_cast<uint64_t>(j)));
    bias.upload();
    const bool biased = s.gap > 0 || s.rows > 5;
    std::vector<const void*> part_pointers;
    std::vector<void*> place_pointers;
    uint64_t seed = 0;
    for (Buffer& part : parts) {
        for (int64_t i = 0; i < s.rows; ++i)
            for (int64_t j = 0; j < s.columns; ++j)
                part.set(0, i, j, Trial::draw(Data::Wide, 17, seed++));
        part.upload();
        part_pointers.push_back(part.ptr());
    }
    for (Buffer& place : places) {
        place.upload();
        place_pointers.push_back(place.ptr());
    }
    hgemm_exchange_args_t args = default_exchange();
    args.rows = s.rows;
    args.columns = s.columns;
    args.parts = part_pointers.data();
    args.part_count = s.parts;
    args.d = place_pointers.data();
    args.d_count = s.places;
    args.ld_part = args.ldd = s.columns + s.gap;
    args.type_part = s.type_part;
    args.type_d = s.type_d;
    args.bias = biased ? bias.ptr() : nullptr;
    args.bias_type = type_bias;
    ASSERT_EQ(run(library, args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (Buffer& place : places) {
        place.download();
        EXPECT_EQ(place.damage(false), "");
    }
    for (int64_t i = 0; i < s.rows; ++i)
        for (int64_t j = 0; j < s.columns; ++j) {
            std::vector<float> values;
            for (const Buffer& part : parts)
                values.push_back(static_cast<float>(part.get(0, i, j)));
            unsigned char wanted[4];
            const float sum = add(values, pairwise);
            store(s.type_d, wanted, biased ? sum + static_cast<float>(bias.get(0, 0, j)) : sum);
            for (const Buffer& place : places)
                ASSERT_EQ(place.get(0, i, j), load(s.type_d, wanted)) << i << ", " << j;
        }
}

}  // namespace

void check_exchange_sums(Library& library)
{
    for (const SumCase& s : sum_cases()) {
        SCOPED_TRACE(std::to_string(s.parts) + " parts of type " + std::to_string(s.type_part) + ", " +
                     std::to_string(s.places) + " places of type " + std::to_string(s.type_d) + ", " +
                     std::to_string(s.rows) + " x " + std::to_string(s.columns));
        expect_sum(library, s, false);
        if ((s.parts & (s.parts - 1)) != 0)
            continue;
        const InMode in_mode(library, HGEMM_MODE_TREE);
        expect_sum(library, s, true);
    }
}

namespace {

// More than the CTAs that may wait add at once: on a GPU another kernel waits.
void check_long_sum(Library& library)
{
    const Flags flags(library, 1), after(library, 1);
    const Copy copy(library);
    ASSERT_EQ(hgemm_set_sm_count(library.handle(), 4), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    for (int i = 0; i < 2; ++i) {
        hgemm_exchange_args_t args = default_exchange();
        args.raise = args.wait = flags.array();
        args.raise_count = args.wait_count = 1;
        copy.add_to(args);
        args.raise_after = after.array();
        args.raise_after_count = 1;
        EXPECT_EQ(run(library, args), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_TRUE(copy.is_done());
        flags.expect(static_cast<uint32_t>(i + 1), static_cast<uint32_t>(i + 1));
        after.expect(static_cast<uint32_t>(i + 1), 0);
    }
    EXPECT_EQ(hgemm_set_sm_count(library.handle(), 0), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
}

void check_late_flags(Library& library)
{
    const Flags flags(library, 2);
    ErrorWord error(library);
    Copy copy(library);
    hgemm_exchange_args_t late = default_exchange();
    late.wait = flags.array();
    late.wait_count = 1;
    late.limit_us = 20;
    late.error = error.get();
    late.raise_after = flags.array() + 1;
    late.raise_after_count = 1;
    copy.add_to(late);
    EXPECT_EQ(error.status(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(run(library, late), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(error.status(), HGEMM_STATUS_TIMED_OUT);
    EXPECT_NE(std::string(hgemm_last_error()).find("a flag was not raised in time"), std::string::npos);
    EXPECT_TRUE(copy.is_untouched());
    EXPECT_EQ(flags.read(1).raised, 0u);
    EXPECT_EQ(flags.read(0).taken, 0u);

    // Behind an error nothing waits, for however long, and nothing is raised or stored.
    hgemm_exchange_args_t next = default_exchange();
    next.raise = flags.array() + 1;
    next.raise_count = 1;
    next.wait = flags.array();
    next.wait_count = 1;
    next.error = error.get();
    copy.add_to(next);
    EXPECT_EQ(run(library, next), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_TRUE(copy.is_untouched());
    EXPECT_EQ(flags.read(1).raised, 0u);
}

}  // namespace

void check_exchange_flags(Library& library)
{
    const Flags flags(library, 3), after(library, 2);
    ErrorWord error(library);
    hgemm_exchange_args_t raise = default_exchange();
    raise.raise = flags.array();
    raise.raise_count = 3;
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(run(library, raise), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    flags.expect(2, 0);
    for (int i = 0; i < 2; ++i) {
        hgemm_exchange_args_t wait = default_exchange();
        wait.wait = flags.array();
        wait.wait_count = 3;
        wait.limit_us = i == 0 ? 0 : 1000000;
        wait.error = i == 0 ? nullptr : error.get();
        const Copy copy(library);
        if (i == 0)
            copy.add_to(wait);
        wait.raise_after = after.array();
        wait.raise_after_count = 2;
        EXPECT_EQ(run(library, wait), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        EXPECT_TRUE(i == 0 ? copy.is_done() : copy.is_untouched());
    }
    flags.expect(2, 2);
    after.expect(2, 0);
    EXPECT_EQ(error.status(), HGEMM_STATUS_SUCCESS) << hgemm_last_error();

    // Raises its own flag before it waits. Behind a sum without a wait, flags are raised too.
    hgemm_exchange_args_t both = default_exchange();
    both.raise = flags.array() + 1;
    both.raise_count = 1;
    both.wait = flags.array() + 1;
    both.wait_count = 1;
    EXPECT_EQ(run(library, both), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_EQ(flags.read(1).taken, 3u);
    hgemm_exchange_args_t sum = default_exchange();
    const Copy copy(library);
    copy.add_to(sum);
    sum.raise_after = after.array();
    sum.raise_after_count = 2;
    EXPECT_EQ(run(library, sum), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    EXPECT_TRUE(copy.is_done());
    after.expect(3, 0);
    check_late_flags(library);
    check_long_sum(library);
}

void check_exchange_threads(const std::function<std::unique_ptr<Library>()>& make)
{
    const auto library = make(), other = make();
    const Flags flags(*library, 2);
    const ErrorWord error(*library);
    for (const bool raises : {true, false}) {
        hgemm_exchange_args_t wait = default_exchange();
        wait.wait = flags.array();
        wait.wait_count = 1;
        wait.error = error.get();
        hgemm_status_t status = HGEMM_STATUS_INTERNAL;
        std::thread waiter([&] { status = hgemm_exchange(library->handle(), &wait); });
        hgemm_exchange_args_t ends = default_exchange();
        ends.error = error.get();
        if (raises) {
            ends.raise = flags.array();
            ends.raise_count = 1;
        } else {
            ends.wait = flags.array() + 1;
            ends.wait_count = 1;
            ends.limit_us = 1000;
        }
        EXPECT_EQ(run(*other, ends), HGEMM_STATUS_SUCCESS) << hgemm_last_error();
        waiter.join();
        EXPECT_EQ(status, HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(flags.read(0).taken, 1u);
        EXPECT_EQ(error.status(), raises ? HGEMM_STATUS_SUCCESS : HGEMM_STATUS_TIMED_OUT);
    }
}

}  // namespace hg::test
