// Config: a kernel as its line in kernels.def gives it, and what follows from it. Host and device.
#pragma once

#include "arch/common/types.hpp"

#include <cstdint>

namespace hg::sm90 {

// How the CTAs of a kernel share the output:
//   Cooperative   persistent; the consumers share each tile
//   PingPong      persistent; one consumer multiplies its tile while the other stores another
//   SplitK        one tile a cluster, whose CTAs take a slice of K each and add up in shared memory
//   SplitKGlobal  slices of K on any CTAs of the device, which add up in global memory
enum class Schedule { Cooperative, PingPong, SplitK, SplitKGlobal };

// Half of a tile's columns, or of its rows, are gates of the other half: operand.cuh.
enum class Gates { None, AlongN, AlongM };

// wgmma multiplies tile_m rows of A by tile_n columns of B. A and B are those of the problem, or the other
// way round where Params::swap_ab says so: the same kernel then computes the transposed tile.
struct Config {
    Schedule schedule;
    int tile_m, tile_n;  // of a CTA
    int stages;          // of shared memory, when both operands are K-major
    int consumers;       // warpgroups
    int cluster_m;       // CTAs next to each other along M, which share their part of B by multicast
    int cluster_n;       // CTAs next to each other along N, which share their part of A
    int ctas_per_sm;
    bool triangle = false;  // computes the tiles on one side of the diagonal of D alone
    Gates gates = Gates::None;
    bool tree = false;    // adds up leaves of K pairwise: tree/branches.cuh
    bool groups = false;  // of few rows, which lie along N: split_k/groups.cuh

    constexpr bool is_gated() const { return gates != Gates::None; }
    // Gates of a tile.
    constexpr int gates_of_tile() const { return (gates == Gates::AlongM ? tile_m : tile_n) / 2; }
    constexpr bool is_global() const { return schedule == Schedule::SplitKGlobal; }
    constexpr bool is_split() const { return schedule == Schedule::SplitK || is_global(); }
    // Do consumers get registers of the producer's warpgroup? A split-K kernel has registers to spare, so
    // that one warp is enough of a producer; but not where two consumers keep the sums of many leaves.
    constexpr bool moves_registers() const { return !is_split() || (tree && consumers > 1); }
    constexpr int threads() const { return 128 * consumers + (moves_registers() ? 128 : 32); }
    // Threads that synchronise: all but the three idle warps of a producer warpgroup, which exit at once.
    constexpr int working_threads() const { return 128 * consumers + 32; }
    // Blocks of 64 rows of A that one consumer multiplies.
    constexpr int blocks() const { return tile_m / 64 / (schedule == Schedule::PingPong ? 1 : consumers); }
    // Warps that read one stage.
    constexpr int readers() const { return schedule == Schedule::PingPong ? 4 : 4 * consumers; }
    // CTAs of a cluster that work on one slice of K.
    constexpr int ctas() const { return cluster_m * cluster_n; }
    // CTAs of a cluster, and clusters that share a tile, with `split` slices.
    constexpr int cluster_ctas(int split) const { return ctas() * (is_global() ? 1 : split); }
    constexpr int clusters_per_tile(int split) const { return is_global() ? split : 1; }
    // CTAs that fill a share of a stage: this one, and its neighbours along M and along N.
    constexpr int senders() const { return cluster_m + cluster_n - 1; }
    // Consumers that share a tile; each stores its own rows.
    constexpr int consumers_per_tile() const { return schedule == Schedule::PingPong ? 1 : consumers; }
};

// Leaves of a tree that have a main loop each in the code: tree/quad.cuh.
constexpr int leaves_of_quad = 4;
// Leaves of a slice of K: a thread adds up all in registers.
constexpr int max_slice_leaves = 4 * leaves_of_quad;
// Registers of a thread where consumers get some of the producer's: together the SM's 65,536 for one
// producer and two consumer warpgroups.
constexpr int producer_registers = 40, consumer_registers = 232;

// In the place of A's major: code for both, between which Params::a_is_k_major decides.
constexpr Major either_major = static_cast<Major>(2);

// A TMA box and a wgmma atom span 64 elements, 128 bytes, of the contiguous dimension.
constexpr int tile_k = 64, span_elements = 64, span_bytes = 128;

// Gates that lie together: the number that divides is a Divisor's.
constexpr int max_gate_block = 1 << 30;

constexpr int max_cluster = 8;  // CTAs: the portable limit
// Slices of K: of any kernel, and of all but most_slices() tells of.
constexpr int max_slices = 60, few_slices = 16;
static_assert(max_slices * (int64_t{0x80000000} / tile_k) < INT32_MAX);  // slice * K tiles: Slice::of()
// Clusters of a wave that the GPC remap covers: a CTA on each SM of an H200.
constexpr int max_remapped_clusters = 132;

// Can half of a tile be gates where B is contiguous along N? Panels have gates alone, or up elements.
constexpr bool finds_n_major_gates(const Config& c)
{
    return c.gates == Gates::AlongN && !c.is_split() && c.tile_n / 2 % span_elements == 0;
}

constexpr int round_up(int a, int b) { return (a + b - 1) / b * b; }

constexpr int a_bytes(const Config& c) { return c.tile_m * tile_k * 2; }
// N-major operands come in whole panels of 64 columns.
constexpr int b_bytes(const Config& c, Major major)
{
    return (major == Major::K ? c.tile_n : round_up(c.tile_n, span_elements)) * tile_k * 2;
}

constexpr int stage_count(const Config& c, Major major)
{
    return c.stages * (a_bytes(c) + b_bytes(c, Major::K)) / (a_bytes(c) + b_bytes(c, major));
}

// K tiles by which the consumers of a split-K kernel end apart, where each stores its own rows: see
// split_k/stagger.cuh. Two or three let long waves end up to 2.8 % sooner and short problems 1 to 7 %;
// kernels with narrower tiles end 0 to 2 % later, clusters of two with tile N 80 up to 7 %.
constexpr int stagger(const Config& c, Major major)
{
    constexpr int max_stagger = 3;
    const int spare = stage_count(c, major) - c.consumers, narrow = c.ctas() > 1 ? 96 : 80;
    if (c.schedule != Schedule::SplitK || c.tree || c.consumers == 1 || c.tile_n < narrow || spare < 0)
        return 0;
    return spare < max_stagger ? spare : max_stagger;
}

// Bytes of shared memory of a CTA and of an SM, and what the system reserves of each CTA.
constexpr int smem_limit = 227 * 1024, smem_per_sm = 228 * 1024, smem_reserved = 1024;
constexpr int smem_room(const Config& c)
{
    return c.ctas_per_sm == 1 ? smem_limit : smem_per_sm / c.ctas_per_sm - smem_reserved;
}

// A consumer of a persistent kernel stages its output in two or four buffers of one TMA box each.
constexpr int staging_buffer_bytes = 8192;

// 16-bit columns in a box of a row-major output; the swizzle has the same span. The last box of a tile ends
// where the tile ends, and so may store columns of the box before it again: as few as possible.
constexpr int box_columns(const Config& c)
{
    return round_up(c.tile_n, 64) == round_up(c.tile_n, 32) ? 64 : 32;
}
// The same of a gated D, whose tiles are half as wide.
constexpr int gated_box_columns(const Config& c) { return c.tile_n / 2 % 64 == 0 ? 64 : 32; }
// Rows in a box of a transposed output.
constexpr int transposed_box_rows = 32;

// The general epilogue passes subtiles of 64 rows by subtile_n columns through registers: one box each, of
// 16-bit elements or of floats, and sixteen accumulators per thread.
constexpr int subtile_n = 32, subtile_floats = 16;

constexpr int box_count(int tile_n, int width) { return (tile_n + width - 1) / width; }
// The tile's column at which box i, `width` columns wide, begins.
constexpr int box_start(int tile_n, int i, int width)
{
    return (i + 1) * width <= tile_n ? i * width : tile_n - width;
}

constexpr int accumulators_per_thread(const Config& c) { return c.blocks() * c.tile_n / 2; }
// Every persistent kernel fuses a bias and ReLU, and those of fuses_c() C. Only ping-pong kernels with few
// accumulators fuse everything: with more, the code spills, and while a cooperative kernel runs a long
// epilogue its tensor cores idle.
constexpr bool fuses_all(const Config& c)
{
    return c.schedule == Schedule::PingPong && accumulators_per_thread(c) <= 160;
}
// Boxes of C take turns in the staging buffers. So the number of these must divide that of a tile's boxes,
// of 16-bit elements as well as of floats.
constexpr bool divides_boxes(const Config& c, int buffers)
{
    return c.blocks() * box_count(c.tile_n, box_columns(c)) % buffers == 0 &&
           c.blocks() * box_count(c.tile_n, 32) % buffers == 0;
}
// Of a consumer: four where shared memory has room for them behind the stages.
constexpr int staging_buffers(const Config& c)
{
    constexpr int many = 4, others = 2560;  // `others`: bytes of what is no stage and no staging buffer
    const int bytes =
        c.stages * (a_bytes(c) + b_bytes(c, Major::K)) + c.consumers * many * staging_buffer_bytes + others;
    return divides_boxes(c, many) && bytes <= smem_limit ? many : 2;
}
// These kernels load C by TMA.
constexpr bool fuses_c(const Config& c)
{
    const bool cooperative = c.schedule == Schedule::Cooperative && accumulators_per_thread(c) <= 128;
    return (fuses_all(c) || cooperative) && divides_boxes(c, staging_buffers(c));
}
// The general epilogue of these kernels reads C. With more accumulators it would spill; where D is C and
// the last subtile overlaps with the one before it, it would read elements that
// it has already stored.
constexpr bool reads_c_by_subtile(const Config& c)
{
    return fuses_all(c) && accumulators_per_thread(c) <= 128 && c.tile_n % subtile_n == 0;
}

// A tile of a split-K kernel as floats in shared memory, contiguous along the output's rows. The padding
// keeps a fragment's rows in different banks.
constexpr int staged_pitch(int tile_m, int tile_n, bool swap_ab)
{
    return swap_ab ? tile_m + 4 : tile_n + 8;
}
constexpr int staged_bytes(const Config& c)
{
    const int plain = c.tile_m * staged_pitch(c.tile_m, c.tile_n, false);
    const int transposed = c.tile_n * staged_pitch(c.tile_m, c.tile_n, true);
    return 4 * (plain > transposed ? plain : transposed);
}

// A slice of K owns some blocks of eight columns of the tile: the last slices may own fewer or none, since
// the longest share decides the time. fragment_bytes: the accumulators of one such block, of all consumers.
constexpr int blocks_per_owner(const Config& c, int split) { return (c.tile_n / 8 + split - 1) / split; }
constexpr int fragment_bytes(const Config& c) { return 128 * c.consumers * 16; }

// Most bytes that the other slices send to one owner.
constexpr int incoming_bytes(const Config& c, int split)
{
    return (split - 1) * blocks_per_owner(c, split) * fragment_bytes(c);
}

// Partial sums that an owner adds up lie where the stages were, behind the staged tile: its own with
// SplitK, those of all slices with SplitKGlobal.
constexpr int reduction_offset(const Config& c) { return round_up(staged_bytes(c), 16); }
constexpr int reduction_bytes(const Config& c, int split)
{
    return (c.is_global() ? split : 1) * blocks_per_owner(c, split) * fragment_bytes(c);
}

// The many slices of a deep K are for a D of one or two tiles, and small tiles suffice for that.
constexpr int most_slices(const Config& c)
{
    return !c.is_global() ? max_cluster : c.tile_m == 64 && c.tile_n == 64 ? max_slices : few_slices;
}

// A tile can be cut into as many slices as shared memory has room for: for what they send, beside the
// stages and barriers, and for what an owner adds up.
constexpr bool can_split(const Config& c, int split)
{
    const int stages = c.stages * (a_bytes(c) + b_bytes(c, Major::K));
    if (split == 1)
        return true;
    if (!c.is_split() || c.groups || split > most_slices(c) ||
        reduction_offset(c) + reduction_bytes(c, split) > stages)
        return false;
    return c.is_global() ||
           (split * c.ctas() <= max_cluster && incoming_bytes(c, split) <= smem_room(c) - stages - 512);
}

// Clusters of these kernels may fetch their tiles one at a time: see persistent/scheduler.cuh. Kernels of
// single CTAs or narrow tiles rely on L2 reuse between neighbouring tiles of a wave, which dynamic
// scheduling scatters: 4096 x 4096 x 7168 with 128 x 128 tiles takes 408 us with it and 365 us without,
// 2048 x 18432 x 7168 with 128 x 112 tiles in clusters of two 901 and 879 us (H100).
constexpr int min_dynamic_tile_n = 128;
constexpr bool can_schedule_dynamically(const Config& c)
{
    return c.schedule == Schedule::PingPong && c.ctas() > 1 && c.tile_n >= min_dynamic_tile_n;
}

}  // namespace hg::sm90
