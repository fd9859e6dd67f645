// Passes over the 32 banks, each one word wide. At most 128 bytes of lanes go together: all lanes with a
// word or less, 16 with two words, 8 with four.
#include "ops/bank_passes.hpp"

#include <algorithm>

namespace emu {
namespace {

constexpr int banks = 32, word_bytes = 4;

// As many as the busiest bank has different words.
uint64_t passes_of(Mask lanes, const Location (&at)[warp_lanes], int words)
{
    uint32_t seen[banks][warp_lanes];
    int count[banks] = {}, most = 0;
    for (int lane = 0; lane < warp_lanes; ++lane)
        for (int word = 0; word < words && (lanes >> lane & 1); ++word) {
            const uint32_t address = at[lane].offset / word_bytes + word, bank = address % banks;
            uint32_t* const end = seen[bank] + count[bank];
            if (count[bank] == warp_lanes || std::find(seen[bank], end, address) != end)
                continue;
            *end = address;
            most = std::max(most, ++count[bank]);
        }
    return most;
}

}  // namespace

void count_passes(Exec& x, Mask lanes, const Location (&at)[warp_lanes], int bytes)
{
    const int words = std::max(1, bytes / word_bytes), together = std::max(1, warp_lanes / words);
    BankPasses& line = x.grid.banks[x.fragment.pc];
    ++line.accesses;
    for (int first = 0; first < warp_lanes; first += together) {
        const Mask group = lanes & (all_lanes >> (warp_lanes - together)) << first;
        line.passes += passes_of(group, at, words);
        line.least += group != 0;
    }
}

}  // namespace emu
