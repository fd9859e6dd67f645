// The list of instructions that are refused: each example is, for what its entry says and not for its
// operands.
#include "test/run_ptx.hpp"

#include <gtest/gtest.h>

namespace emu {
namespace {

TEST(Refused, InstructionsOfTheList)
{
    const struct {
        const char *what, *example;
    } entries[] = {
#define EMU_REFUSED(what, example) {what, example},
#include "ops/refused.def"
    };
    for (const auto& entry : entries) {
        const std::vector<std::string> refused =
            list_refused(ptx_kernel("sm_100a", 0, entry.example), "k.ptx");
        ASSERT_EQ(refused.size(), 1u) << entry.what;
        EXPECT_NE(refused[0].find(entry.example), std::string::npos) << refused[0];
        const bool is_register = std::string(entry.example).find("%reserved") != std::string::npos;
        for (const char* other : {"is not declared", "expected", "unexpected"})
            EXPECT_TRUE(is_register || refused[0].find(other) == std::string::npos) << refused[0];
    }
}

}  // namespace
}  // namespace emu
