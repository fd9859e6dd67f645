// Which tiles run side by side. The multiprocessors of a GPC read L2 through one port, which fetches a line
// once that several of them ask for at about the same time: what a GPC's tiles share is free.
#pragma once

#include "arch/sm90/model.hpp"

namespace hg::sm90 {

// Multiprocessors of most GPCs.
constexpr int usual_gpc = 16;

// Up to this k the order in which D is written matters.
constexpr int64_t writes_much = 8 * tile_k;

// How the clusters of a kernel get their tiles.
struct Order {
    bool along_y;   // tiles that follow each other lie along y
    int32_t group;  // rows of tiles walked together: of y where along_y says so, else of x
    bool numbered;  // by number_by_gpc()
};

// Can tiles be put next to each other: is there one wave, on a whole device? Only kernels that start when
// those in front have ended find their clusters where number_by_gpc() says.
bool can_place(const Config& config, int cluster, int64_t clusters, int sm_count);

// Rows of both operands that the tiles of a GPC read, of one wave in the best order.
int64_t rows_of_gpc(const Config& config, int cluster, int64_t clusters_x, int64_t clusters_y);

Order order_tiles(const Config& config, const Plan& plan, int64_t clusters_x, int64_t clusters_y, int64_t k,
                  int sm_count);

// Numbers clusters of `ctas` CTAs, in the order of their launch, so that those of a GPC follow each other.
void number_by_gpc(int ctas, int clusters, uint8_t* numbers);

// Where nobody knows which clusters run side by side: do tiles that follow each other lie along y?
bool goes_along_y(const Config& config, int64_t clusters_x, int64_t clusters_y);

}  // namespace hg::sm90
