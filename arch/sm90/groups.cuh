// Groups of rows, each multiplied by its own B, whose sizes lie in device memory. Persistent CTAs of one
// producer and two consumers that take tiles in turn, as in persistent.cuh. Each role finds the tiles of
// its CTA by itself.
//
// A tile that the group fills leaves as any other; of one that it does not, rows beyond belong to the next
// group, or to nobody, and it leaves in pieces, without TMA.
//
// Barriers: those of mainloop.cuh, in_place.cuh, stream.cuh and persistent.cuh.
#pragma once

#include "arch/sm90/persistent.cuh"

namespace hg::sm90 {

// Does its group fill a tile?
template <Config C>
__device__ inline bool is_full(const GroupTile& at)
{
    return at.end - at.row >= C.x;
}

// The tiles of a cluster, one after the other: every so many, or such as it is handed, as stream.cuh has
// it.
template <Config C, Major MY>
class GroupScheduler {
public:
    // `smem`: shared address of Smem.
    __device__ GroupScheduler(const Params& p, const Member& member, uint32_t smem)
        : p_(p), member_(member), number_(static_cast<int32_t>(blockIdx.x / C.ctas())),
          walk_(p.groups, p.group_count, p.output.m, p.group_tiles_y, number_), numbers_(smem),
          hands_out_(can_hand_out(C) && p.handed)
    {
    }

    // False where nothing is left. Whole warps.
    __device__ bool next(GroupTile& at)
    {
        if (!first_) {
            const int32_t next = hands_out_ ? numbers_.read() : number_ + clusters();
            walk_.advance(next - number_);
            number_ = next;
        }
        first_ = false;
        if (!walk_.find(at))
            return false;
        at = {uniform(at.row), uniform(at.end), uniform(at.y * C.across + member_.y<C>()),
              uniform(at.batch)};
        return true;
    }

    // A thread of the consumer that multiplies what next() has just said.
    __device__ void announce_next() const
    {
        if (!hands_out_)
            return;
        numbers_.expect();
        if (member_.neighbour == 0)
            numbers_.send(ptx::atomic_add_relaxed_gpu(p_.handed, 1) + clusters());
    }

    // The same once nothing is left. Each tile has had one number fetched for the one behind it, so that
    // the last of them is as many behind the end as there are clusters, but for one.
    __device__ void end() const
    {
        if (hands_out_ && member_.neighbour == 0 && walk_.behind() == clusters() - 1)
            ptx::store_relaxed_gpu(p_.handed, 0);
    }

private:
    const Params& p_;
    const Member member_;
    int32_t number_;
    GroupWalk<C.x> walk_;
    Announcements<C, MY> numbers_;
    const bool hands_out_;
    bool first_ = true;

    __device__ static int32_t clusters() { return static_cast<int32_t>(gridDim.x / C.ctas()); }
};

// For consumers: see for_each_work().
template <Config C, Major MY, typename Body>
__device__ inline void for_each_group_tile(GroupScheduler<C, MY>& scheduler, Body body)
{
    for (GroupTile at; scheduler.next(at);)
        body(at);
}

template <Config C, Major MX, Major MY>
__device__ inline void produce_groups(const Params& p, Smem<C, MY>& smem)
{
    const Stages<C, MY> stages(smem);
    const bool leader = ptx::elect_one();
    const auto member = Member::here<C>();
    meet<C>(p);
    ptx::wait_for_earlier_grids();
    auto ring = Ring<Smem<C, MY>::stages>::writer();
    GroupScheduler<C, MY> scheduler(p, member, stages.base);
    for_each_group_tile(scheduler, [&](const GroupTile& at) {
        load_tile<C, MX, MY>(p, member, stages, ring, at, 0, p.k_tiles, no_k_tile, leader);
    });
    // As produce() does.
    if constexpr (C.ctas() > 1)
#pragma unroll 1
        for (int i = 0; i < Smem<C, MY>::stages; ++i, ring.advance())
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
}

// Rows of contiguous groups lie in one matrix.
template <Config C, Major MY>
__device__ inline Block block_of(const Params& p, Smem<C, MY>& smem, const GroupTile& at, int consumer)
{
    Block block = Block::of<C>(smem, {0, at.y, p.groups.counts ? at.batch : 0}, consumer, 0);
    block.x = at.row;
    return block;
}

template <Config C, Type T>
__device__ inline void store_group_tile(const Params& p, const Scalars& s, Accumulator<C>& acc,
                                        const GroupTile& tile, const Block& at)
{
    if (is_full<C>(tile) && p.store != Store::Pieces)
        return store_tile<C, T>(p, s, acc, at);
    // Pieces take for granted that no TMA store reads their boxes.
    if (at.leads())
        ptx::bulk_wait_group_read<0>();
    OutputParams rows = p.output;
    rows.m = tile.end;
    store_pieces<C, T>(p, rows, false, s, acc, at);
}

// Each of the two consumers multiplies every other tile and steps over the stages of the rest.
template <Config C, Type T, Major MX, Major MY>
__device__ inline void consume_groups(const Params& p, Smem<C, MY>& smem, int consumer)
{
    const Stages<C, MY> stages(smem);
    const auto member = Member::here<C>();
    const uint32_t mine = ptx::shared_address(&smem.turn[consumer]);
    const uint32_t other = ptx::shared_address(&smem.turn[1 - consumer]);
    uint32_t phase = consumer == 0;  // the first turn of the first consumer needs nobody
    int whose = 0;
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    auto ring = Ring<Smem<C, MY>::stages>::reader();
    GroupScheduler<C, MY> scheduler(p, member, stages.base);
    for_each_group_tile(scheduler, [&](const GroupTile& tile) {
        if (whose == consumer) {
            Accumulator<C> acc;
            if (threadIdx.x % 128 == 0)
                scheduler.announce_next();
            const Block at = block_of<C>(p, smem, tile, consumer);
            if constexpr (takes_boxes_of_c(C)) {
                if (is_full<C>(tile) && takes_c_in_place(p, scalars)) {
                    // All have read what the tile before may have left in pieces.
                    ptx::fence_proxy_async();
                    ptx::bar_sync(1 + consumer, 128);
                    begin_c<C>(p, at);
                }
            }
            ptx::mbarrier_wait_parity(mine, phase);
            phase ^= 1;
            multiply_tile<C, T, MX, MY>(
                acc, member, stages, ring, p.k_tiles, 0, [](int32_t) {},
                [&] {
                    if (threadIdx.x % 32 == 0)
                        ptx::mbarrier_arrive(other);
                });
            store_group_tile<C, T>(p, scalars, acc, tile, at);
        } else {
            ring.advance(p.k_tiles);
        }
        whose ^= 1;
    });
    if (threadIdx.x == 128)
        scheduler.end();
}

template <Config C, Type T, Major MX, Major MY>
__device__ inline void run_groups(const Params& p, Smem<C, MY>& smem)
{
    static_assert(C.kind == Kind::PingPong && C.cluster == 1 && takes_everything(C));
    const int warp = uniform(threadIdx.x / 32);
    if (warp < 4) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (warp == 0)
            produce_groups<C, MX, MY>(p, smem);
    } else {
        if (threadIdx.x == 128) {
            if (p.k_tiles > 0)
                prefetch_maps(p);
            init_barriers<C>(smem);
        }
        meet<C>(p);
        ptx::setmaxnreg_inc<consumer_registers>();
        consume_groups<C, T, MX, MY>(p, smem, warp / 4 - 1);
        ptx::launch_dependents();
        ptx::bulk_wait_group<0>();
    }
}

}  // namespace hg::sm90
