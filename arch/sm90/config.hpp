// Kernel rows of sm90 and their parameters: host and device.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"

#include <cuda.h>

namespace hg::sm90 {

// How a CTA, or a cluster of them, walks the output:
//   Cooperative  persistent; the consumers share each tile
//   PingPong     persistent; the consumers take tiles in turn, one multiplies while the other stores
//   Split        one tile a cluster, whose CTAs take a slice of k each and add up in shared memory
//   SplitGlobal  the same, but the slices lie anywhere on the device and add up in global memory
enum class Kind { Cooperative, PingPong, Split, SplitGlobal };

// wgmma multiplies x rows by y columns. x is m and y is n of the output, or the other way round where
// Params::swapped says so: the same kernel then computes the transposed tile.
struct Config {
    Kind kind;
    int x, y;       // tile of a CTA
    int stages;     // of shared memory, when both operands are K-major
    int consumers;  // warpgroups
    int cluster;    // CTAs next to each other along x that share their y operand by multicast
    int across;     // CTAs next to each other along y that share their x operand
    int residents;  // CTAs a multiprocessor

    constexpr bool is_global() const { return kind == Kind::SplitGlobal; }
    constexpr bool is_split() const { return kind == Kind::Split || is_global(); }
    // A split kernel has registers to spare, so one warp is enough of a producer.
    constexpr int threads() const { return 128 * consumers + (is_split() ? 32 : 128); }
    // Of these, those that do not leave at once.
    constexpr int working_threads() const { return 128 * consumers + 32; }
    // Blocks of 64 x that one consumer multiplies.
    constexpr int blocks() const { return x / 64 / (kind == Kind::PingPong ? 1 : consumers); }
    // Warps that read one stage.
    constexpr int readers() const { return kind == Kind::PingPong ? 4 : 4 * consumers; }
    // CTAs of a cluster, of each slice of k.
    constexpr int ctas() const { return cluster * across; }
    // CTAs of a cluster, and clusters a tile, of `split` slices.
    constexpr int cluster_ctas(int split) const { return ctas() * (is_global() ? 1 : split); }
    constexpr int clusters_a_tile(int split) const { return is_global() ? split : 1; }
    // CTAs that fill parts of a stage: those next to this one in either direction, and itself.
    constexpr int senders() const { return cluster + across - 1; }
    // Parts of a tile that a consumer has to itself.
    constexpr int parts() const { return kind == Kind::PingPong ? 1 : consumers; }
};

// What a TMA box and a wgmma atom span: 64 elements, 128 bytes, of the contiguous dimension.
constexpr int tile_k = 64, span_elements = 64, span_bytes = 128;

constexpr int max_cluster = 8;  // CTAs, on every device
constexpr int max_slices = 16;  // of k
// Clusters of a wave that are numbered: a CTA on each multiprocessor of an H200.
constexpr int max_numbers = 132;

constexpr int round_up(int a, int b) { return (a + b - 1) / b * b; }

constexpr int x_bytes(const Config& c) { return c.x * tile_k * 2; }
// MN-major operands come in whole panels of 64.
constexpr int y_bytes(const Config& c, Major major)
{
    return (major == Major::K ? c.y : round_up(c.y, span_elements)) * tile_k * 2;
}

constexpr int stage_count(const Config& c, Major major)
{
    return c.stages * (x_bytes(c) + y_bytes(c, Major::K)) / (x_bytes(c) + y_bytes(c, major));
}

// How many k tiles the consumers of a split kernel end apart, where each stores its own rows of x: see
// lag.cuh. Three or two let long waves end up to 2.8 % sooner and short products 1 to 7 %; narrower tiles
// end 0 to 2 % later, pairs of 80 y up to 7 %.
constexpr int lag(const Config& c, Major major)
{
    constexpr int most = 3;
    const int left = stage_count(c, major) - c.consumers, narrow = c.ctas() > 1 ? 96 : 80;
    if (c.kind != Kind::Split || c.consumers == 1 || c.y < narrow || left < 0)
        return 0;
    return left < most ? left : most;
}

// Staging of a consumer's output: two boxes.
constexpr int box_bytes = 8192, boxes = 2;

// 16-bit columns in a box of a plain store; the swizzle has the same span. The last box of a tile ends
// where the tile does, and so may store columns of the box before it again: as few as possible.
constexpr int box_columns(const Config& c) { return round_up(c.y, 64) == round_up(c.y, 32) ? 64 : 32; }
// Rows in a box of a swapped one, likewise.
constexpr int swapped_box_rows = 32;

// What is more than the product passes through registers in pieces of 64 x and so many y: a box each, of
// 16-bit columns or floats, and sixteen sums a thread.
constexpr int piece_y = 32, piece_floats = 16;

constexpr int box_count(const Config& c, int width) { return (c.y + width - 1) / width; }
// First of a tile's y in box i, of `width` y.
constexpr int box_start(const Config& c, int i, int width)
{
    return (i + 1) * width <= c.y ? i * width : c.y - width;
}

// A split tile of floats, contiguous along the output's rows. The padding keeps a fragment's rows in
// different banks.
constexpr int partial_pitch(const Config& c, bool swapped) { return swapped ? c.x + 4 : c.y + 8; }
constexpr int partial_bytes(const Config& c)
{
    const int plain = c.x * partial_pitch(c, false), swapped = c.y * partial_pitch(c, true);
    return 4 * (plain > swapped ? plain : swapped);
}

// Of a block, of a multiprocessor, and what the system takes from each block.
constexpr int smem_limit = 227 * 1024, smem_per_sm = 228 * 1024, smem_reserved = 1024;
constexpr int smem_room(const Config& c)
{
    return c.residents == 1 ? smem_limit : smem_per_sm / c.residents - smem_reserved;
}

// How a persistent kernel stores a tile:
//   Plain    alpha times the sums, by TMA
//   InPlace  the same once C, a bias and an activation are in the accumulators; aux, before that, likewise
//   Pieces   everything else: what TMA cannot address, of other types, erf
enum class Store : uint8_t { Plain, InPlace, Pieces };

constexpr int sums_a_thread(const Config& c) { return c.blocks() * c.y / 2; }
// All rows take a bias and ReLU in place; these all the rest as well: more sums would spill, and while a
// cooperative kernel does what takes time nothing is multiplied.
constexpr bool takes_everything(const Config& c)
{
    return c.kind == Kind::PingPong && sums_a_thread(c) <= 160;
}
// C by TMA too, whose boxes are loaded in turn: an even number of them, of 16-bit columns and of floats.
constexpr bool takes_boxes_of_c(const Config& c)
{
    return takes_everything(c) && c.blocks() * box_count(c, box_columns(c)) % boxes == 0 &&
           c.blocks() * box_count(c, 32) % boxes == 0;
}
// C in pieces: others would spill or read again what they have stored, where D is C and the last piece
// overlaps with the one before it.
constexpr bool takes_pieces_of_c(const Config& c)
{
    return takes_everything(c) && sums_a_thread(c) <= 128 && c.y % piece_y == 0;
}

// Blocks of eight y that an owner has, of `split` that share a tile: the last ones may have fewer or none,
// since the longest part counts. Bytes of a block's sums.
constexpr int part_of(const Config& c, int split) { return (c.y / 8 + split - 1) / split; }
constexpr int sums_bytes(const Config& c) { return 128 * c.consumers * 16; }

// What the slices of k send to one owner of a split tile at most.
constexpr int incoming_bytes(const Config& c, int split)
{
    return (split - 1) * part_of(c, split) * sums_bytes(c);
}

// Of what an owner adds up, its own sums and, of SplitGlobal, those of all slices lie where the stages
// were, behind the tile on its way out.
constexpr int terms_offset(const Config& c) { return round_up(partial_bytes(c), 16); }
constexpr int terms_bytes(const Config& c, int split)
{
    return (c.is_global() ? split : 1) * part_of(c, split) * sums_bytes(c);
}

// A tile is cut into as many slices as there is room for what they send, beside the stages and barriers,
// and for what an owner adds up.
constexpr bool can_split(const Config& c, int split)
{
    const int stages = c.stages * (x_bytes(c) + y_bytes(c, Major::K));
    if (split == 1)
        return true;
    if (!c.is_split() || split > max_slices || terms_offset(c) + terms_bytes(c, split) > stages)
        return false;
    return c.is_global() ||
           (split * c.ctas() <= max_cluster && incoming_bytes(c, split) <= smem_room(c) - stages - 512);
}

constexpr int most_terms(const Config& c)
{
    int most = 0;
    for (int split = 2; split <= max_slices; ++split)
        if (can_split(c, split) && terms_bytes(c, split) > most)
            most = terms_bytes(c, split);
    return most;
}

constexpr int most_incoming(const Config& c)
{
    int most = 0;
    for (int split = 2; split <= max_cluster; ++split)
        if (!c.is_global() && can_split(c, split) && incoming_bytes(c, split) > most)
            most = incoming_bytes(c, split);
    return most;
}

// Sums that a consumer of a persistent kernel may leave in the workspace, twice a CTA: see stream.cuh.
constexpr int part_floats(const Config& c) { return c.blocks() * 64 * c.y; }
constexpr int64_t stream_bytes(const Config& c, int64_t clusters)
{
    return 2 * clusters * c.ctas() * c.parts() * part_floats(c) * 4;
}

// Words that are 0 between kernels. Of streamed tiles, of so many clusters: arrivals of each.
constexpr int64_t streamed_words(const Config& c, int64_t tiles) { return tiles * c.ctas() * c.parts(); }

// Of clusters of tiles that slices share: arrivals of each tile, then what slices leave for each other.
constexpr int64_t arrival_words(const Config& c, int64_t clusters)
{
    return (clusters * c.ctas() + 31) / 32 * 32;
}
constexpr int64_t mail_words(const Config& c, int64_t clusters, int split)
{
    return c.is_global() && split > 1 ? clusters * c.ctas() * split * c.x * c.y : 0;
}

// Elements of the bias that a consumer of a persistent kernel keeps.
constexpr int most_bias(const Config& c) { return c.y > c.blocks() * 64 ? c.y : c.blocks() * 64; }

// Clusters of ping-pong kernels are handed tiles one at a time where products are long enough: several
// waves, since some GPCs run at 1 or 2 % more than others, and so many k tiles that nobody waits for the
// next number. Single CTAs and narrow tiles want their neighbours' tiles next to theirs in each wave: 4096
// x 4096 x 7168 by 128 x 128 takes 408 us handed out, 365 in turn, 2048 x 18432 x 7168 by pairs of 128 x
// 112 901 and 879 (H100).
constexpr int announcements = 4, least_handed_waves = 4, least_handed_k_tiles = 32, least_handed_y = 128;
constexpr bool can_hand_out(const Config& c)
{
    return c.kind == Kind::PingPong && c.ctas() > 1 && c.y >= least_handed_y;
}
constexpr bool hands_out_tiles(const Config& c, int64_t tiles, int64_t clusters, int64_t k_tiles)
{
    return can_hand_out(c) && k_tiles >= least_handed_k_tiles && tiles >= least_handed_waves * clusters;
}

// A tile as wgmma sees it, in tiles.
struct Position {
    int32_t x, y, batch;
};

template <Config C, Major MY>
struct alignas(1024) Smem {
    static constexpr int stages = stage_count(C, MY), staging_bytes = C.is_split() ? 16 : boxes * box_bytes;
    static_assert(stages >= 2 && C.x % (64 * C.blocks()) == 0 && C.y % 8 == 0 && C.y <= 256);
    static_assert(!C.is_split() || C.blocks() == 1);
    static_assert(C.is_split() || C.consumers == 2);
    struct Stage {
        unsigned char x[x_bytes(C)];
        unsigned char y[y_bytes(C, MY)];
    };
    // A part of a split tile on its way out, and behind it what its owner adds up, lie where the stages
    // were.
    union {
        Stage stage[stages];
        alignas(16) float partial[C.is_split() ? partial_bytes(C) / 4 : 1];
        alignas(16) unsigned char sums[C.is_split() ? terms_offset(C) + most_terms(C) : 1];
    };
    alignas(1024) unsigned char staging[C.is_split() ? 1 : C.consumers][staging_bytes];
    // Of a tile, along x or y.
    alignas(16) float bias[C.is_split() ? 1 : C.consumers][C.is_split() ? 1 : most_bias(C)];
    alignas(16) unsigned char incoming[most_incoming(C) + 16];  // Split: what other slices send
    uint64_t full[stages];
    uint64_t empty[stages];
    uint64_t turn[2];                   // PingPong
    uint64_t of_c[2][boxes];            // PingPong: of a consumer's boxes
    uint64_t announced[announcements];  // PingPong: tiles to come
    int32_t announcement[announcements];
    uint64_t arrived;              // Split
    Position at;                   // Split
    int32_t tile, slice;           // SplitGlobal
    uint32_t answer[C.consumers];  // of stream.cuh and join.cuh
};

// What createpolicy.fractional gives for all of the lines. As parameters they reach the uniform registers
// that TMA reads them from.
constexpr uint64_t evict_normal = 0x1000000000000000, evict_first = 0x12F0000000000000;

struct Params {
    CUtensorMap x, y, d;  // boxes: see pack_operand() and pack_results() in pack.cpp
    CUtensorMap c, aux;   // (Store::InPlace)
    OutputParams output;
    // From here to the grid: what a CTA begins with, in few lines of constant memory.
    bool numbered;   // numbers hold, else those of the launch
    bool along_y;    // tiles that follow each other lie along y
    bool swapped;    // x is n and y is m
    bool tma_store;  // d is valid
    Store store;     // (persistent kernels)
    bool vectors;    // is_vector_output()
    bool early;      // the next kernel may start at once
    bool lagging;    // the consumers end one after the other (Split)
    int32_t k_tiles;
    int32_t tiles;  // of all problems; of whole clusters
    TileGrid grid;  // rows: x, columns: y; or the other way round where along_y says so
    int32_t x_batch_step, y_batch_step;  // 0: all problems share the operand
    uint64_t x_policy, y_policy;         // what L2 should think of the operands
    uint64_t d_policy;                   // and of the output
    int32_t prefetched;                  // k tiles of a CTA's first tile that L2 is asked for early
    int32_t stream_tiles;                // the first ones, whose k tiles the clusters share evenly
    float* partials;                     // of these; SplitGlobal: words that are 0 between launches
    uint32_t* arrivals;                  // of these, or SplitGlobal: 0 between launches
    uint32_t* handed;                    // null, or how many tiles have been handed out: 0 between launches
    Divisor cluster;                     // CTAs of a cluster (Split)
    Divisor slice_clusters;              // of a slice of k (SplitGlobal)
    int32_t split;                       // slices of k
    int32_t slice_start[max_slices + 1];  // k tiles from here on belong to slice i
    int32_t part;                         // blocks of eight y that a slice owns, the last ones fewer
    Divisor row_vectors;                  // of eight elements, in a row of the longest part (split kernels)
    Divisor rows_at_once;                 // that the consumers store of it (split kernels)
    uint8_t numbers[max_numbers];         // of clusters, in the order of their launch: see order.hpp
    Groups groups;                        // (groups.cuh)
    int32_t group_count, group_tiles_y;   // likewise: clusters that lie along y
};

// sm90_repack: copies operands that TMA cannot address to lines that it can. A thread copies a vector of
// eight elements in each of repack_lines lines at a time, or one whose elements are apart: eight loads in
// flight.
constexpr int repack_log2_threads = 8, repack_threads = 1 << repack_log2_threads;
constexpr int repack_residents = 3, repack_lines = 4, repack_vector = 8;

// Element i of line l of problem z is at base(z) + l * line_stride + i * element_stride, base(z) as in
// Operand; its copy is at to + (z * lines + l) * to_stride + i.
struct RepackOperand {
    const uint16_t* ptr;
    const uint16_t* const* array;
    int64_t batch_stride, line_stride, element_stride;
    uint16_t* to;
    int64_t to_stride, lines, length;
    int32_t log2_along;                         // threads along a line; the others lie across lines
    uint32_t tiles_along, tiles_across, tiles;  // of a line, of a problem's lines, of all problems
};

struct RepackParams {
    RepackOperand operands[2];  // no tiles: nothing to copy
    const float* alpha_device;  // null, or where alpha lies: no operand is read where it is 0
    bool early;                 // the product may start at once
};

}  // namespace hg::sm90
