// Clocks that share their entries, against clocks that are plain arrays.
#include "check/clock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace emu {
namespace {

constexpr int agents = 3000;  // more than one branch
using Plain = std::vector<Seen>;

void expect_equal(const Clock& clock, const Plain& plain)
{
    for (int agent = 0; agent < agents; ++agent)
        ASSERT_EQ(clock.of(agent), plain[agent]) << agent;
    EXPECT_EQ(clock.of(agents + 5000), Seen{});
}

TEST(Clock, is_what_a_plain_one_is)
{
    std::mt19937 random(1);
    std::array<Clock, 4> clocks;
    std::array<Plain, 4> plain;
    plain.fill(Plain(agents));
    for (int step = 0; step < 4000; ++step) {
        const size_t to = random() % 4, from = random() % 4;
        switch (random() % 8) {
        case 0:
            clocks[to] = clocks[from];
            plain[to] = plain[from];
            break;
        case 1:
            clocks[to].merge(clocks[from]);
            for (int i = 0; i < agents; ++i)
                merge(plain[to][i], plain[from][i]);
            break;
        default:
            const int agent = static_cast<int>(random() % (step % 2 ? agents : 40));
            const uint32_t time = random() % 50;
            const Seen seen = step % 3 ? Seen{time, time, ~0u} : Seen{0, time, 1u << random() % 32};
            clocks[to].merge(agent, seen);
            merge(plain[to][agent], seen);
        }
        if (step % 100 == 0)
            for (size_t i = 0; i < 4; ++i)
                expect_equal(clocks[i], plain[i]);
    }
    const Clock part = clocks[0].part_of(0xff);
    for (int i = 0; i < agents; ++i)
        EXPECT_EQ(part.of(i), plain[0][i].lanes & 0xff
                                  ? (Seen{0, plain[0][i].some, plain[0][i].lanes & 0xff})
                                  : Seen{});
}

}  // namespace
}  // namespace emu
