// Capture, as streams and events see it.
#pragma once

#include "driver/driver.hpp"

namespace emu::driver {

// The default stream cannot be used while a blocking one of its context captures: is that so?
bool unusable(const CUstream_st& stream);
// Then the call fails, and the captures are lost.
void forbid_implicit_order(const CUstream_st& stream);
// For questions that only describe a stream: they count as uses of it.
CUstream_st& get_usable_stream(CUstream handle);
// Also those that a capture is still making.
void for_each_graph(const std::function<void(const CUgraph_st&)>& visit);
std::shared_ptr<CUgraph_st> get_graph(CUgraph handle);
// Behind what the capturing stream did last.
CUgraphNode add_node(CUstream_st& stream, Work work);
// The stream waits for an event of a capture, or waits while capturing.
void join_capture(CUstream_st& stream, const CUevent_st& event);

}  // namespace emu::driver
