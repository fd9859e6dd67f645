// A kernel that lets a tcgen05 product or copy work on shared memory images and shows all of tensor memory.
#pragma once

#include "emulator.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace emu {

// What one run is given and what it leaves, by CTA of the cluster.
struct Probe {
    int ctas = 1;
    int columns = 32;                           // allocated and shown
    std::vector<std::vector<uint8_t>> images;   // shared memory from `smem` on
    std::vector<std::vector<uint32_t>> before;  // tensor memory, lane by lane, 128 x columns words
    std::vector<std::vector<uint32_t>> after;
    uint64_t a = 0, b = 0;  // descriptors, or an address in tensor memory, from their starts on
    uint32_t descriptor = 0, enable = 0;
    // Lines of the kernel: what thread 0 (of the even CTA) issues, with %a, %b, %idesc, %tmem and %enable.
    std::string work;
    std::string fill, show;  // instead of those that move `before` and `after`, column by column
    std::vector<std::pair<std::string, std::string>> changes;  // other lines to replace, each exactly once
    int group = 1;
    uint64_t seed = 1;

    Probe(int ctas_of_cluster, int shown);
    uint32_t& word(int cta, int lane, int column) { return before[cta][lane * columns + column]; }
    uint32_t result(int cta, int lane, int column) const { return after[cta][lane * columns + column]; }

    std::string text() const;  // PTX
    // Runs it; the reports as Device::run() gives them.
    std::string run();
    std::string message;  // of the last run
};

}  // namespace emu
