#include "src/run/workspaces.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <utility>

namespace hg {
namespace {

constexpr size_t least_bytes = size_t{1} << 20, alignment = 256;
// More streams than a program has at a time; where they are made anew again and again, the first goes.
constexpr size_t max_streams = 64;
// Captured streams that are remembered; of one capture all are.
constexpr size_t max_captures = 16;
// Of blocks that streams have left, beyond which they are freed. That waits for the device, as CUDA frees.
constexpr size_t max_abandoned_bytes = size_t{256} << 20;

// Blocks of graphs that are gone. The driver's threads add to them, which may neither wait nor call CUDA.
constinit std::atomic<Block*> given_back = nullptr;

void give_back(void* object)
{
    auto* const block = static_cast<Block*>(object);
    block->next = given_back.load(std::memory_order_relaxed);
    while (!given_back.compare_exchange_weak(block->next, block, std::memory_order_release))
        ;
}

// Takes those out of the list of which `wants` says so; the first, the others behind it.
template <typename Wants>
Block* take_given_back(Wants wants)
{
    Block *taken = nullptr, *next = nullptr;
    for (Block* block = given_back.exchange(nullptr, std::memory_order_acquire); block; block = next) {
        next = block->next;
        if (wants(*block)) {
            block->next = taken;
            taken = block;
        } else {
            give_back(block);
        }
    }
    return taken;
}

void destroy(Block* block)
{
    driver::release(block->memory);
    delete block;
}

// One that a graph gave back and that is not much too large; else null.
Block* reuse(uint64_t context, size_t bytes, size_t counter_words)
{
    bool found = false;
    const auto fits = [&](const Block& b) {
        const bool does = !found && b.context == context && b.bytes >= bytes && b.bytes / 4 <= bytes &&
                          b.counter_words == counter_words;
        found = found || does;
        return does;
    };
    return take_given_back(fits);
}

// Its counters are set to 0 at once: on a stream that is captured that would become a node of the graph.
Status allocate(uint64_t context, size_t bytes, size_t counter_words, Block*& allocated)
{
    static constinit std::atomic<uint64_t> last_serial = 0;
    auto block =
        std::make_unique<Block>(Block{++last_serial, context, nullptr, bytes, counter_words, nullptr});
    void* memory = nullptr;
    Status status = driver::allocate(block->size(), &memory);
    if (status != ok)
        return status;
    block->memory = static_cast<char*>(memory);
    if (counter_words > 0)
        status = driver::clear(block->counters(), counter_words * sizeof(uint32_t));
    if (status == ok)
        allocated = block.release();
    else
        driver::release(memory);
    return status;
}

}  // namespace

Status Workspaces::open(void* context) { return context_ ? ok : driver::context_id(context, context_); }

const Block* Workspaces::find(const driver::Place& place) const
{
    if (place.graph) {
        for (const OfCapture& each : of_captures_)
            if (each.capture == place.capture && each.stream == place.stream)
                return each.block;
        return nullptr;
    }
    for (const OfStream& each : of_streams_)
        if (each.stream == place.stream)
            return each.block;
    return nullptr;
}

Status Workspaces::grow(const driver::Place& place, hgemm_stream_t stream, const Need& need)
{
    size_t bytes = need.bytes, counter_words = need.counter_words;
    // At least what the former block has: the products in turn may need now one, now the other.
    if (const Block* const former = find(place)) {
        bytes = std::max(bytes, former->bytes);
        counter_words = std::max(counter_words, former->counter_words);
    }
    bytes = std::min(std::max(std::bit_ceil(bytes), least_bytes), std::max(bytes, need.limit));
    bytes = (bytes + alignment - 1) / alignment * alignment;
    return place.graph ? grow_capture(place, bytes, counter_words)
                       : grow_stream(place.stream, stream, bytes, counter_words);
}

// As allocate(); where there is no memory what is no longer used is freed before.
Status Workspaces::find_memory(size_t bytes, size_t counter_words, Block*& block)
{
    const Status status = allocate(context_, bytes, counter_words, block);
    if (status != HGEMM_STATUS_ALLOC_FAILED)
        return status;
    release_abandoned();
    return allocate(context_, bytes, counter_words, block);
}

Status Workspaces::grow_stream(uint64_t place, hgemm_stream_t stream, size_t bytes, size_t counter_words)
{
    if (abandoned_bytes_ > max_abandoned_bytes)
        release_abandoned();
    of_streams_.reserve(of_streams_.size() + 1);
    abandoned_.reserve(abandoned_.size() + 1);
    Block* block = nullptr;
    if (const Status status = find_memory(bytes, counter_words, block); status != ok)
        return status;
    // The addresses of special streams are those of all threads.
    const hgemm_stream_t address = driver::is_special(stream) ? nullptr : stream;
    const auto old = std::ranges::find_if(of_streams_, [&](const OfStream& each) {
        return each.stream == place || (address && each.address == address);
    });
    if (old != of_streams_.end()) {
        abandon(std::exchange(*old, {place, address, block}).block);
        return ok;
    }
    if (of_streams_.size() == max_streams) {
        abandon(of_streams_.front().block);
        of_streams_.erase(of_streams_.begin());
    }
    of_streams_.push_back({place, address, block});
    return ok;
}

Status Workspaces::grow_capture(const driver::Place& place, size_t bytes, size_t counter_words)
{
    of_captures_.reserve(of_captures_.size() + 1);
    Block* block = reuse(context_, bytes, counter_words);
    const Status made = block ? ok : find_memory(bytes, counter_words, block);
    if (made != ok)
        return made;
    if (const Status status = driver::keep_with(place.graph, block, give_back); status != ok)
        return status;
    std::erase_if(of_captures_, [&](const OfCapture& each) {
        return each.capture == place.capture && each.stream == place.stream;
    });
    if (of_captures_.size() >= max_captures) {
        const auto other = std::ranges::find_if(
            of_captures_, [&](const OfCapture& each) { return each.capture != place.capture; });
        if (other != of_captures_.end())
            of_captures_.erase(other);
    }
    of_captures_.push_back({place.capture, place.stream, block});
    return ok;
}

void Workspaces::abandon(Block* block)
{
    abandoned_.push_back(block);
    abandoned_bytes_ += block->size();
}

void Workspaces::release_abandoned()
{
    for (Block* block : abandoned_)
        destroy(block);
    Block* next = nullptr;
    for (Block* block = take_given_back([&](const Block& b) { return b.context == context_; }); block;
         block = next) {
        next = block->next;
        destroy(block);
    }
    abandoned_.clear();
    abandoned_bytes_ = 0;
}

void Workspaces::release()
{
    for (const OfStream& each : of_streams_)
        destroy(each.block);
    of_streams_.clear();
    if (context_)
        release_abandoned();
}

}  // namespace hg
