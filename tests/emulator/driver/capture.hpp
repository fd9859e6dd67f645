// Capture, as streams and events see it.
#pragma once

#include "driver/driver.hpp"

namespace emu::driver {

// The default stream cannot be used while a blocking one captures.
void forbid_implicit_order(const CUstream_st& stream);
// Also those that a capture is still making.
void for_each_graph(const std::function<void(const CUgraph_st&)>& visit);
std::shared_ptr<CUgraph_st> get_graph(CUgraph handle);
// Behind what the capturing stream did last.
CUgraphNode add_node(CUstream_st& stream, Work work);
// The stream waits for an event of a capture, or waits while capturing.
void join_capture(CUstream_st& stream, const CUevent_st& event);

}  // namespace emu::driver
