// Test of the tests: the conformance suite accepts a correct model of the library and notices each known
// defect. Every family runs in a process of its own, since a defect may crash it.
#include "../conformance.hpp"
#include "model.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace hg::test {
namespace {

enum class Outcome { Silent, Noticed, Crashed };

pid_t start(Defect defect, const Family& family, unsigned thinning)
{
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child != 0)
        return child;
    Model model(defect);
    Suite suite(model, thinning, 1);
    family.run(suite);
    _exit(suite.failures().empty() ? 0 : 1);
}

Outcome finish(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status))
        return Outcome::Crashed;
    return WEXITSTATUS(status) == 0 ? Outcome::Silent : Outcome::Noticed;
}

class CorrectModel : public testing::TestWithParam<Family> {};

TEST_P(CorrectModel, is_accepted)
{
    Model model(Defect::none);
    // The library passes all of them.
    Suite suite(model, thinning(3));
    GetParam().run(suite);
    std::printf("%s\n", suite.summary().c_str());
    EXPECT_GT(suite.cases(), 0);
    for (const std::string& failure : suite.failures())
        ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(, CorrectModel, testing::ValuesIn(families().begin(), families().end()),
                         [](const auto& info) { return std::string(info.param.name); });

class Sensitivity : public testing::TestWithParam<int> {};

TEST_P(Sensitivity, is_noticed)
{
    const auto defect = static_cast<Defect>(GetParam());
    std::string noticing, crashing;
    // A part of the cases does for most defects and is quicker.
    for (const unsigned thinning : {29, 5, 1}) {
        for (const Family& family : families())
            switch (finish(start(defect, family, thinning))) {
            case Outcome::Silent: break;
            case Outcome::Noticed: noticing += std::string(" ") + family.name; break;
            case Outcome::Crashed: crashing += std::string(" ") + family.name; break;
            }
        if (!noticing.empty())
            break;
    }
    std::printf("%-34s noticed by%s%s%s\n", defect_names()[static_cast<size_t>(GetParam())],
                noticing.c_str(), crashing.empty() ? "" : "; crashed", crashing.c_str());
    EXPECT_FALSE(noticing.empty()) << "no family notices this defect by its results";
}

std::string name_of_defect(const testing::TestParamInfo<int>& info)
{
    return defect_names()[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(, Sensitivity, testing::Range(1, static_cast<int>(defect_names().size())),
                         name_of_defect);

}  // namespace
}  // namespace hg::test
