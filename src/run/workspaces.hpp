// Workspaces: device memory that a handle lends to its calls, so that two calls share some only if one
// waits for the other: each stream has its own, and so has each stream of each capture. The latter belongs
// to the graph, and comes back when the graph and all that was made of it are gone.
#pragma once

#include "src/driver/driver.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hg {

// Device memory: `bytes` of workspace, and behind them words that are 0 between kernels.
struct Block {
    uint64_t serial;   // that no other block has had
    uint64_t context;  // its number
    char* memory;
    size_t bytes, counter_words;
    Block* next;  // in the list of those that graphs gave back

    uint32_t* counters() const { return reinterpret_cast<uint32_t*>(memory + bytes); }
    size_t size() const { return bytes + counter_words * sizeof(uint32_t); }
};

class Workspaces {
public:
    // The block that calls at this place use; null if there is none yet.
    const Block* find(const driver::Place& place) const;

    struct Need {
        size_t bytes, counter_words;
        size_t limit;  // of bytes that a block has for later products
    };
    // Makes the block at this place at least that large. Allocates, also during a capture. `stream` is
    // that of the place. The place's former block stays until work that was launched before has ended.
    Status grow(const driver::Place& place, hgemm_stream_t stream, const Need& need);

    // Frees what belongs to streams, whose work must have ended, and what graphs gave back.
    void release();

    // The handle's context: to be told before all else.
    Status open(void* context);

private:
    struct OfStream {
        uint64_t stream;
        hgemm_stream_t address;  // another number at this address: the stream is gone; null: not told apart
        Block* block;
    };
    struct OfCapture {
        uint64_t capture, stream;
        const Block* block;  // the graph's
    };

    Status grow_stream(uint64_t place, hgemm_stream_t stream, size_t bytes, size_t counter_words);
    Status grow_capture(const driver::Place& place, size_t bytes, size_t counter_words);
    Status find_memory(size_t bytes, size_t counter_words, Block*& block);
    void abandon(Block* block);
    void release_abandoned();

    uint64_t context_ = 0;
    std::vector<OfStream> of_streams_;
    std::vector<OfCapture> of_captures_;
    std::vector<Block*> abandoned_;  // work may still use them
    size_t abandoned_bytes_ = 0;
};

}  // namespace hg
