// Which clusters are on the machine: start, retire, give away those that have not started.
#include "core/scheduler.hpp"

#include <algorithm>
#include <numeric>

namespace emu {
namespace {

// Uninitialised registers and shared memory: a NaN in every float format.
constexpr uint8_t poison = 0xff;
// Of each CTA, for the system.
constexpr uint64_t reserved_shared = 1024;

}  // namespace

Scheduler::Scheduler(Machine& machine, const Program& program, const Launch& launch,
                     std::shared_ptr<Multiprocessors> multiprocessors)
    : machine_(machine)
{
    grid_.program = &program;
    grid_.launch = launch;
    grid_.explicit_cluster = launch.cluster.count() > 1 || program.kernel->explicit_cluster;
    grid_.executed.resize(program.ops.size());
    grid_.banks.resize(program.ops.size());
    grid_.cancel_cluster = [this](uint32_t(&first_cta)[3]) { return take_cluster(first_cta); };
    const size_t places = multiprocessors->used.size() / launch.cluster.count();
    grid_.multiprocessors = std::move(multiprocessors);
    slot_used_.resize(std::max<size_t>(1, places));
    if (machine.config.start == Start::Random) {
        random_numbers_.resize(launch.grid.count() / launch.cluster.count());
        std::iota(random_numbers_.begin(), random_numbers_.end(), 0);
        std::shuffle(random_numbers_.begin(), random_numbers_.end(), machine.random);
    }
    static constexpr double chances[] = {0, 0, 1 / 256., 1 / 32., 1 / 4.};
    early_ = chances[machine.random() % std::size(chances)];
}

Scheduler::~Scheduler()
{
    for (size_t slot = 0; slot < slot_used_.size(); ++slot)
        if (slot_used_[slot])
            give_place(slot);
}

// Of a cluster that has not started: a GPU promises no order.
uint64_t Scheduler::next_number()
{
    const uint64_t i = grid_.next_cluster++;
    switch (machine_.config.start) {
    case Start::Descending: return grid_.launch.grid.count() / grid_.launch.cluster.count() - 1 - i;
    case Start::Random: return random_numbers_[i];
    default: return i;
    }
}

// The next cluster to start; its first CTA's position.
bool Scheduler::take_cluster(uint32_t (&first_cta)[3])
{
    const Dim3 &grid = grid_.launch.grid, &cluster = grid_.launch.cluster;
    if (clusters_left() == 0)
        return false;
    const uint64_t number = next_number();
    const uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y;
    first_cta[0] = static_cast<uint32_t>(number % across * cluster.x);
    first_cta[1] = static_cast<uint32_t>(number / across % down * cluster.y);
    first_cta[2] = static_cast<uint32_t>(number / across / down * cluster.z);
    return true;
}

uint64_t Scheduler::clusters_left() const
{
    return grid_.launch.grid.count() / grid_.launch.cluster.count() - grid_.next_cluster;
}

// As many multiprocessors as the cluster has CTAs; all of them if there are fewer.
bool Scheduler::take_place(size_t slot)
{
    Multiprocessors& all = *grid_.multiprocessors;
    const size_t size = std::min<size_t>(grid_.launch.cluster.count(), all.used.size());
    const uint64_t threads = grid_.launch.block.count();
    const uint64_t shared = reserved_shared + grid_.program->kernel->shared_bytes +
                            static_cast<uint64_t>(grid_.launch.dynamic_shared);
    const auto first = all.used.begin() + static_cast<std::ptrdiff_t>(slot * size);
    const auto last = first + static_cast<std::ptrdiff_t>(size);
    const bool room = std::all_of(first, last, [&](const Multiprocessors::Used& used) {
        return all.threads - used.threads >= threads && all.shared - used.shared >= shared;
    });
    for (auto used = first; room && used != last; ++used)
        used->threads += threads, used->shared += shared;
    slot_used_[slot] = room;
    return room;
}

void Scheduler::give_place(size_t slot)
{
    Multiprocessors& all = *grid_.multiprocessors;
    const size_t size = std::min<size_t>(grid_.launch.cluster.count(), all.used.size());
    for (size_t i = slot * size; i < (slot + 1) * size; ++i) {
        all.used[i].threads -= grid_.launch.block.count();
        all.used[i].shared -= reserved_shared + grid_.program->kernel->shared_bytes +
                              static_cast<uint64_t>(grid_.launch.dynamic_shared);
    }
    slot_used_[slot] = false;
}

void Scheduler::start_clusters()
{
    for (size_t slot = 0; slot < slot_used_.size(); ++slot) {
        uint32_t first[3];
        if (slot_used_[slot] || clusters_left() == 0 || !take_place(slot))
            continue;
        take_cluster(first);
        machine_.progress = machine_.steps;
        auto cluster = std::make_unique<Cluster>();
        cluster->grid = &grid_;
        cluster->slot = static_cast<uint32_t>(slot);
        const Dim3& size = grid_.launch.cluster;
        for (uint32_t rank = 0; rank < size.count(); ++rank) {
            const uint32_t id[3] = {first[0] + rank % size.x, first[1] + rank / size.x % size.y,
                                    first[2] + rank / (size.x * size.y)};
            cluster->ctas.push_back(make_cta(*cluster, id, rank));
        }
        grid_.resident.push_back(std::move(cluster));
    }
}

std::unique_ptr<Cta> Scheduler::make_cta(Cluster& cluster, const uint32_t (&id)[3], uint32_t rank)
{
    auto cta = std::make_unique<Cta>();
    cta->cluster = &cluster;
    std::copy(std::begin(id), std::end(id), cta->id);
    cta->rank = rank;
    cta->shared.assign(grid_.program->kernel->shared_bytes + grid_.launch.dynamic_shared, poison);
    make_warps(*cta);
    return cta;
}

void Scheduler::make_warps(Cta& cta)
{
    const uint64_t threads = grid_.launch.block.count();
    cta.warps.resize((threads + warp_lanes - 1) / warp_lanes);
    cta.live_warps = static_cast<int>(cta.warps.size());
    for (size_t i = 0; i < cta.warps.size(); ++i) {
        Warp& warp = cta.warps[i];
        warp.cta = &cta;
        warp.index = static_cast<int>(i);
        warp.agent = machine_.checker.new_warp();
        const uint64_t lanes = std::min<uint64_t>(warp_lanes, threads - i * warp_lanes);
        warp.exited = lanes == warp_lanes ? 0 : all_lanes << lanes;
        warp.registers.assign(grid_.program->register_bytes, poison);
        warp.local.assign(grid_.program->kernel->local_bytes * warp_lanes, poison);
        // Splitting must not move the fragment that splits.
        warp.fragments.reserve(warp_lanes + 1);
        warp.fragments.push_back({});
        warp.fragments.back().lanes = ~warp.exited;
        warps_.push_back(&warp);
    }
}

void Scheduler::retire_clusters()
{
    std::erase_if(grid_.resident, [this](const std::unique_ptr<Cluster>& cluster) {
        if (!cluster->done())
            return false;
        for (const auto& cta : cluster->ctas)
            machine_.checker.forget(*cta);
        give_place(cluster->slot);
        return true;
    });
}

}  // namespace emu
