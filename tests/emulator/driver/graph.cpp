// Graphs as captures make them: they can be looked at, instantiated and launched, not edited.
#include "driver/call.hpp"
#include "driver/capture.hpp"

using namespace emu::driver;

namespace {

void instantiate(CUgraphExec* executable, CUgraph handle, unsigned long long flags, CUctx_st& context)
{
    constexpr unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    require(executable && !(flags & ~known), CUDA_ERROR_INVALID_VALUE);
    const auto graph = get_graph(handle);
    auto made = std::make_shared<CUgraphExec_st>(CUgraphExec_st{&context, flags, {}, graph->objects});
    std::map<CUgraphNode, size_t> numbers;
    for (const auto& node : graph->nodes) {
        numbers[node.get()] = made->nodes.size();
        made->nodes.push_back({node->work, {}});
        for (CUgraphNode dependency : node->dependencies)
            made->nodes.back().after.push_back(numbers.at(dependency));
    }
    *executable = driver().executables.add(std::move(made));
}

std::shared_ptr<CUgraph_st> clone(const CUgraph_st& graph)
{
    auto copy = std::make_shared<CUgraph_st>();
    copy->objects = graph.objects;
    std::map<CUgraphNode, CUgraphNode> copies;
    for (const auto& node : graph.nodes) {
        copy->nodes.push_back(std::make_unique<CUgraphNode_st>(*node));
        copies[node.get()] = copy->nodes.back().get();
        for (CUgraphNode& dependency : copy->nodes.back()->dependencies)
            dependency = copies.at(dependency);
    }
    return copy;
}

CUgraphNode_st& find_node(CUgraphNode wanted)
{
    bool found = false;
    for_each_graph([&](const CUgraph_st& graph) {
        for (const auto& node : graph.nodes)
            found = found || node.get() == wanted;
    });
    require(found, CUDA_ERROR_INVALID_VALUE);
    return *wanted;
}

// As lists are asked for everywhere: without room the number of all, else as many as fit, null behind them.
void list(const Nodes& all, CUgraphNode* nodes, size_t* count)
{
    require(count != nullptr, CUDA_ERROR_INVALID_VALUE);
    if (nodes) {
        for (size_t i = 0; i < *count; ++i)
            nodes[i] = i < all.size() ? all[i] : nullptr;
        *count = std::min(*count, all.size());
    } else {
        *count = all.size();
    }
}

Nodes nodes_of(CUgraph graph, bool roots_only)
{
    Nodes nodes;
    for (const auto& node : get_graph(graph)->nodes)
        if (!roots_only || node->dependencies.empty())
            nodes.push_back(node.get());
    return nodes;
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags)
{
    return call("cuGraphInstantiateWithFlags",
                [&](CUctx_st& context) { instantiate(executable, graph, flags, context); });
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params)
{
    return call("cuGraphInstantiateWithParams", [&](CUctx_st& context) {
        CUDA_GRAPH_INSTANTIATE_PARAMS& p = out(params);
        p.hErrNode_out = nullptr;
        p.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        instantiate(executable, graph, p.flags, context);
        p.result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    });
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    return call("cuGraphExecDestroy", [&](CUctx_st&) { driver().executables.remove(executable); });
}

CUresult cuGraphDestroy(CUgraph graph)
{
    return call("cuGraphDestroy", Needs::Driver, [&] { driver().graphs.remove(graph); });
}

CUresult cuGraphCreate(CUgraph* graph, unsigned flags)
{
    return call("cuGraphCreate", Needs::Driver, [&] {
        require(graph && flags == 0, CUDA_ERROR_INVALID_VALUE);
        *graph = driver().graphs.add(std::make_shared<CUgraph_st>());
    });
}

CUresult cuGraphClone(CUgraph* copy, CUgraph graph)
{
    return call("cuGraphClone", Needs::Driver,
                [&] { out(copy) = driver().graphs.add(clone(*get_graph(graph))); });
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    return call("cuGraphUpload", [&](CUctx_st&) {
        driver().executables.get(executable);
        get_usable_stream(stream);
    });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
    return call("cuGraphLaunch", [&](CUctx_st&) {
        const auto executable = driver().executables.get(handle);
        submit_graph(stream, executable);
    });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count)
{
    return call("cuGraphGetNodes", Needs::Driver, [&] { list(nodes_of(graph, false), nodes, count); });
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count)
{
    return call("cuGraphGetRootNodes", Needs::Driver, [&] { list(nodes_of(graph, true), nodes, count); });
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type)
{
    return call("cuGraphNodeGetType", Needs::Driver, [&] { out(type) = find_node(node).work.type; });
}

#undef cuGraphNodeGetDependencies
extern "C" CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count)
{
    return call("cuGraphNodeGetDependencies", Needs::Driver,
                [&] { list(find_node(node).dependencies, nodes, count); });
}
