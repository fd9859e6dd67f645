// Work on streams. Nothing runs before somebody waits for it, and then only what it depends on, so that a
// program that forgets to wait sees stale data every time.
#include "driver/call.hpp"
#include "driver/capture.hpp"
#include "driver/kernel_run.hpp"
#include "driver/turns.hpp"

#include <cstdlib>
#include <utility>

namespace emu::driver {
namespace {

// What a new item on the stream comes after. The default stream and the blocking ones wait for each other.
std::vector<std::shared_ptr<Item>> predecessors(CUstream_st& stream)
{
    const CUctx_st& context = *stream.context;
    const bool is_default = &stream == &context.default_stream;
    const bool blocking = !(stream.flags & CU_STREAM_NON_BLOCKING);
    std::vector<std::shared_ptr<Item>> before = std::move(stream.waits);
    stream.waits.clear();
    if (stream.last_item)
        before.push_back(stream.last_item);
    if (blocking && !is_default && context.default_stream.last_item)
        before.push_back(context.default_stream.last_item);
    for (const auto& [number, item] : context.pending)
        if (is_default && item->blocking)
            before.push_back(item);
    return before;
}

// All that must run for these to be done, in the order in which it was put on streams: one that every
// stream allows.
std::map<uint64_t, std::shared_ptr<Item>> needed(std::vector<std::shared_ptr<Item>> left)
{
    std::map<uint64_t, std::shared_ptr<Item>> found;
    while (!left.empty()) {
        const std::shared_ptr<Item> item = left.back();
        left.pop_back();
        if (!item->done && found.emplace(item->number, item).second)
            left.insert(left.end(), item->after.begin(), item->after.end());
    }
    return found;
}

// A fault ends everything that its context still had to do.
void run(const std::map<uint64_t, std::shared_ptr<Item>>& items)
{
    if (driver().config.overlap) {
        run_in_turns(items);
        return;
    }
    for (const auto& [number, item] : items) {
        if (item->done)
            continue;
        retire(*item);
        run_alone(std::exchange(item->work, {}));
    }
}

std::shared_ptr<Item> enqueue(CUstream_st& stream, Work work, std::vector<std::shared_ptr<Item>> after)
{
    auto item = std::make_shared<Item>();
    item->number = driver().next_id++;
    item->context = stream.context;
    item->blocking = !(stream.flags & CU_STREAM_NON_BLOCKING);
    item->after = std::move(after);
    item->work = std::move(work);
    stream.context->pending[item->number] = item;
    stream.last_item = item;
    return item;
}

}  // namespace

void retire(Item& item)
{
    item.done = true;
    item.kernel = nullptr;
    item.after.clear();
    item.context->pending.erase(item.number);
}

void run_alone(const Work& work)
{
    if (work.begin)
        work.begin()->run_alone();
    else
        work.run();
}

void finish(const std::shared_ptr<Item>& item)
{
    if (item)
        run(needed({item}));
}

void finish(CUstream_st& stream)
{
    auto items = stream.waits;
    if (stream.last_item)
        items.push_back(stream.last_item);
    if (&stream == &stream.context->default_stream)
        for (const auto& [number, item] : stream.context->pending)
            if (item->blocking)
                items.push_back(item);
    run(needed(std::move(items)));
}

void finish_all(CUctx_st& context) { run(std::map(context.pending)); }

void finish_everything()
{
    for (const auto& context : driver().contexts)
        if (context->live && context->lost == CUDA_SUCCESS)
            finish_all(*context);
}

bool is_done(const CUstream_st& stream)
{
    auto items = stream.waits;
    if (stream.last_item)
        items.push_back(stream.last_item);
    return needed(std::move(items)).empty();
}

std::shared_ptr<Item> submit(CUstream handle, Work work)
{
    CUstream_st& stream = get_stream(handle);
    forbid_implicit_order(stream);
    if (stream.capture) {
        add_node(stream, std::move(work));
        return nullptr;
    }
    const bool kernel = work.type == CU_GRAPH_NODE_TYPE_KERNEL;
    const auto item = enqueue(stream, std::move(work), predecessors(stream));
    const char* at_once = std::getenv("CUDA_LAUNCH_BLOCKING");
    if (kernel && at_once && std::string(at_once) == "1")
        finish(item);
    return item;
}

// Captured, a launch becomes a child node. Else each node is an item; the last one stands for all, and
// keeps the executable graph and what it refers to until then.
void submit_graph(CUstream handle, const std::shared_ptr<CUgraphExec_st>& executable)
{
    CUstream_st& stream = get_stream(handle);
    forbid_implicit_order(stream);
    if (stream.capture) {
        add_node(stream, {CU_GRAPH_NODE_TYPE_GRAPH, [executable] {
                              for (const CUgraphExec_st::Node& node : executable->nodes)
                                  run_alone(node.work);
                          }});
        return;
    }
    auto before = predecessors(stream);
    if (const auto launched = executable->last_launch.lock())
        before.push_back(launched);
    std::vector<std::shared_ptr<Item>> items;
    for (const CUgraphExec_st::Node& node : executable->nodes) {
        auto after = before;
        for (const size_t earlier : node.after)
            after.push_back(items[earlier]);
        items.push_back(enqueue(stream, node.work, std::move(after)));
    }
    before.insert(before.end(), items.begin(), items.end());
    executable->last_launch =
        enqueue(stream, {CU_GRAPH_NODE_TYPE_GRAPH, [executable] {}}, std::move(before));
}

}  // namespace emu::driver
