// GEMM with TMA, mbarriers and wgmma: persistent CTAs of one producer and C.consumers consumer warpgroups.
//
// Beside the barriers of mainloop.cuh and store.cuh, with PingPong:
//   turn[c]   the other consumer -> consumer c. Count 4: one lane of each warp, once it has issued the last
//             wgmma of its tile, so that the tensor cores go on. It keeps a consumer within one phase of
//             the full barriers that it waits for.
#pragma once

#include "arch/sm90/store.cuh"
#include "arch/sm90/stream.cuh"

namespace hg::sm90 {

// All of a multiprocessor's 65,536, shared out among one producer and two consumers.
constexpr int producer_registers = 40, consumer_registers = 232;

template <Config C, Major MX, Major MY>
__device__ inline void produce(const Params& p, Smem<C, MY>& smem)
{
    const Stages<C, MY> stages(smem);
    const bool leader = ptx::elect_one();
    const auto member = Member::here<C>();
    Scheduler<C, MY> scheduler(p, member, p.k_tiles, stages.base);
    Work work{};
    bool more = scheduler.next(work);
    int32_t waits_at =
        begin_loads<C, MX, MY>(p, member, work.at, work.first, more ? work.last : work.first, leader);
    const bool nothing = is_alpha_zero_on_device(p.output);
    auto ring = Ring<Smem<C, MY>::stages>::writer();
    for (; more && !nothing; more = scheduler.next(work), waits_at = no_k_tile)
        load_tile<C, MX, MY>(p, member, stages, ring, work.at, work.first, work.last, waits_at, leader);
    // Stays until the neighbours' last arrives have come, so that they do not meet a CTA that has left.
    if constexpr (C.ctas() > 1)
#pragma unroll 1
        for (int i = 0; i < Smem<C, MY>::stages; ++i, ring.advance())
            ptx::mbarrier_wait_parity(stages.empty(ring.stage), ring.phase);
}

// Before the product of a tile: what its output will read beside the sums; C in place only where it will
// finish the tile, having all k tiles.
template <Config C, Major MY>
__device__ inline void prepare_output(const Params& p, const Scalars& scalars, Smem<C, MY>& smem,
                                      const Work& work, int32_t k_tiles, int consumer, int first_block)
{
    if (p.store == Store::Plain) [[likely]]
        return;
    if (takes_pieces_of_c(C) && p.store == Store::Pieces)
        prefetch_tile_output<C>(p, scalars, work.at, first_block * 64, C.blocks() * 64, threadIdx.x % 128,
                                128);
    if constexpr (takes_everything(C)) {
        if (takes_c_in_place(p, scalars) && work.k_tiles() == k_tiles)
            begin_c<C>(p, Block::of<C>(smem, work.at, consumer, first_block));
    }
    if (p.output.bias_along != BiasAlong::None)
        stage_bias<C>(p, smem.bias[consumer], work.at, first_block);
}

// Stores a tile, unless others have to add to it.
template <Config C, Type T, Major MY>
__device__ inline void finish(const Params& p, const Scalars& scalars, const Member& member,
                              Smem<C, MY>& smem, const Work& work, int32_t k_tiles, Accumulator<C>& acc,
                              int consumer, int first_block)
{
    const auto at = Block::of<C>(smem, work.at, consumer, first_block);
    if (work.k_tiles() != k_tiles) {
        if (!join_partials<C>(p, Stream::of<C>(p, k_tiles), member, work, acc, smem.answer[consumer],
                              consumer))
            return;
        if constexpr (takes_everything(C)) {
            if (takes_c_in_place(p, scalars))
                begin_c<C>(p, at);
        }
    }
    store_tile<C, T>(p, scalars, acc, at);
}

// All consumers multiply each tile, C.blocks() blocks of 64 x each.
template <Config C, Type T, Major MX, Major MY>
__device__ inline void consume_together(const Params& p, Smem<C, MY>& smem, int consumer)
{
    const Stages<C, MY> stages(smem);
    const auto member = Member::here<C>();
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = scalars.alpha == 0.0f ? 0 : p.k_tiles;
    auto ring = Ring<Smem<C, MY>::stages>::reader();
    for_each_work(
        Scheduler<C, MY>(p, member, k_tiles, stages.base),
        [&](const Work& work, const Scheduler<C, MY>& scheduler) {
            Accumulator<C> acc;
            prepare_output<C>(p, scalars, smem, work, k_tiles, consumer, consumer * C.blocks());
            multiply_tile<C, T, MX, MY>(
                acc, member, stages, ring, work.k_tiles(), consumer * C.blocks(), [](int32_t) {}, [] {});
            finish<C, T>(p, scalars, member, smem, work, k_tiles, acc, consumer, consumer * C.blocks());
        });
}

// Each of the two consumers multiplies every other tile and steps over the stages of the rest.
template <Config C, Type T, Major MX, Major MY>
__device__ inline void consume_in_turn(const Params& p, Smem<C, MY>& smem, int consumer)
{
    const Stages<C, MY> stages(smem);
    const auto member = Member::here<C>();
    const uint32_t mine = ptx::shared_address(&smem.turn[consumer]);
    const uint32_t other = ptx::shared_address(&smem.turn[1 - consumer]);
    uint32_t phase = consumer == 0;  // the first turn of the first consumer needs nobody
    int whose = 0;
    ptx::wait_for_earlier_grids();
    const Scalars scalars = load_scalars(p.output);
    const int32_t k_tiles = scalars.alpha == 0.0f ? 0 : p.k_tiles;
    auto ring = Ring<Smem<C, MY>::stages>::reader();
    for_each_work(Scheduler<C, MY>(p, member, k_tiles, stages.base),
                  [&](const Work& work, const Scheduler<C, MY>& scheduler) {
                      if (whose == consumer) {
                          Accumulator<C> acc;
                          if (threadIdx.x % 128 == 0)
                              scheduler.announce_next();
                          prepare_output<C>(p, scalars, smem, work, k_tiles, consumer, 0);
                          ptx::mbarrier_wait_parity(mine, phase);
                          phase ^= 1;
                          multiply_tile<C, T, MX, MY>(
                              acc, member, stages, ring, work.k_tiles(), 0, [](int32_t) {},
                              [&] {
                                  if (threadIdx.x % 32 == 0)
                                      ptx::mbarrier_arrive(other);
                              });
                          finish<C, T>(p, scalars, member, smem, work, k_tiles, acc, consumer, 0);
                      } else {
                          ring.advance(work.k_tiles());
                      }
                      whose ^= 1;
                  });
}

template <Config C, Type T, Major MX, Major MY>
__device__ inline void run_persistent(const Params& p, Smem<C, MY>& smem)
{
    const int warp = uniform(threadIdx.x / 32);
    if (warp < 4) {
        ptx::setmaxnreg_dec<producer_registers>();
        if (warp == 0)
            produce<C, MX, MY>(p, smem);
    } else {
        if (threadIdx.x == 128) {
            prefetch_maps(p);
            init_barriers<C>(smem);
        }
        meet<C>(p);
        ptx::setmaxnreg_inc<consumer_registers>();
        const int consumer = warp / 4 - 1;
        if constexpr (C.kind == Kind::PingPong)
            consume_in_turn<C, T, MX, MY>(p, smem, consumer);
        else
            consume_together<C, T, MX, MY>(p, smem, consumer);
        ptx::launch_dependents();
        ptx::bulk_wait_group<0>();
    }
}

}  // namespace hg::sm90
