// White-box tests of the names that are offered in place of a wrong one.
#include "src/base/nearest.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hg {
namespace {

TEST(NearestNames, BeginLikeTheWrongOne)
{
    EXPECT_EQ(distance_to_begin("", "abc"), 0u);
    EXPECT_EQ(distance_to_begin("ab", "abc"), 0u);
    EXPECT_EQ(distance_to_begin("abd", "abc"), 1u);
    EXPECT_EQ(distance_to_begin("bc", "abc"), 1u);
    EXPECT_EQ(distance_to_begin("abcd", "abc"), 1u);
    EXPECT_EQ(distance_to_begin("abc", ""), 3u);
    EXPECT_EQ(distance_to_begin("ba", "abc"), 1u);
    EXPECT_EQ(distance_to_begin(std::string(63, 'x'), std::string(100, 'y')), 63u);
}

TEST(NearestNames, ComeInOrder)
{
    NearestNames<3> nearest("sm90_pingpong_128x129");
    for (const char* name : {"sm80_128x128", "sm90_pingpong_128x128", "host_blocked",
                             "sm90_pingpong_128x64", "sm90_splitk_64x8"})
        nearest.offer(name);
    std::vector<std::string> names;
    nearest.for_each([&](const char* name) { names.push_back(name); });
    EXPECT_EQ(names,
              (std::vector<std::string>{"sm90_pingpong_128x128", "sm90_pingpong_128x64", "sm80_128x128"}));
}

TEST(NearestNames, AreNoMoreThanThereAre)
{
    NearestNames<3> nearest("x");
    nearest.offer("b");
    nearest.offer("abc");
    std::string names;
    nearest.for_each([&](const char* name) { names += name; });
    EXPECT_EQ(names, "babc") << "of equals the one of that length";
}

}  // namespace
}  // namespace hg
