// Which kernel goes on, and how far, is random, by the seed. How long turns are is drawn anew where a
// kernel begins: with short ones equal kernels stay abreast, as they do on a GPU, and with long ones one
// may end before the other begins.
#include "driver/turns.hpp"

#include "driver/kernel_run.hpp"

#include <utility>

namespace emu::driver {
namespace {

std::vector<std::shared_ptr<Item>> unfinished()
{
    std::vector<std::shared_ptr<Item>> items;
    for (const auto& context : driver().contexts)
        if (context->live && context->lost == CUDA_SUCCESS)
            for (const auto& [number, item] : context->pending)
                items.push_back(item);
    return items;
}

bool may_run(const Item& item)
{
    for (const auto& before : item.after)
        if (!before->done)
            return false;
    return !item.stuck;
}

// What is stuck may wait for what has just been done.
void encourage_others()
{
    for (const auto& item : unfinished()) {
        item->stuck = false;
        if (item->kernel)
            item->kernel->encourage();
    }
}

// Nobody goes on: all kernels wait, each for memory that another CTA would write or for a multiprocessor.
[[noreturn]] void deadlock()
{
    std::string text;
    std::shared_ptr<Item> first;
    for (const auto& item : unfinished())
        if (item->kernel) {
            text += (first ? "\n" : "") + item->kernel->stuck();
            first = first ? first : item;
        }
    if (!first)
        throw Failure{CUDA_ERROR_UNKNOWN, "nothing can run, and no kernel has begun"};
    first->kernel->fail("deadlock", text);
}

// Turns of warps, at most: 1, 2, 4 ... 2048.
void draw_longest_turn(std::mt19937_64& random) { driver().longest_turn = uint64_t{1} << random() % 12; }

Turn go_on(Item& item, std::mt19937_64& random)
{
    try {
        if (!item.kernel) {
            draw_longest_turn(random);
            item.kernel = item.work.begin();
        }
        const Turn turn = item.kernel->advance(1 + random() % driver().longest_turn);
        if (turn == Turn::Ended)
            retire(item);
        item.stuck = turn == Turn::Stuck;
        return turn;
    } catch (const Failure&) {
        retire(item);
        throw;
    }
}

void give_turn(Item& item, std::mt19937_64& random)
{
    Turn turn = Turn::Ended;
    if (item.work.begin) {
        turn = go_on(item, random);
    } else {
        retire(item);
        std::exchange(item.work, {}).run();
    }
    if (turn == Turn::Progress || turn == Turn::Ended)
        encourage_others();
}

// What a lost context was doing is over.
void drop_lost()
{
    for (const auto& context : driver().contexts)
        if (context->lost != CUDA_SUCCESS)
            for (const auto& [number, item] : context->pending)
                item->kernel = nullptr;
}

bool all_done(const Items& items)
{
    for (const auto& [number, item] : items) {
        require(item->done || item->context->lost == CUDA_SUCCESS, item->context->lost);
        if (!item->done)
            return false;
    }
    return true;
}

}  // namespace

void run_in_turns(const Items& wanted)
{
    try {
        while (!all_done(wanted)) {
            auto items = unfinished();
            std::erase_if(items, [](const auto& item) { return !may_run(*item); });
            if (items.empty())
                deadlock();
            auto& random = items.front()->context->device->machine.random;
            const auto item = items[random() % items.size()];
            give_turn(*item, random);
        }
    } catch (const Failure&) {
        drop_lost();
        throw;
    }
}

}  // namespace emu::driver
