// How warps take turns. Internal to core/.
#pragma once

#include "core/execution.hpp"

namespace emu {

// Thrown by an instruction that needs lanes which are elsewhere: its fragment waits for them.
struct Diverged {
    Mask needed;
};

std::string source_text(const ptx::Module& module, int line);  // file:line: text
std::string source_text(const Program& program, int line);

// Runs one grid.
class Scheduler {
public:
    Scheduler(Machine& machine, const Program& program, const Launch& launch,
              std::shared_ptr<Multiprocessors> multiprocessors);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    Turn advance(uint64_t turns);
    std::string stuck() const;
    const Program& program() const { return *grid_.program; }

private:
    void start_clusters();
    uint64_t next_number();
    bool take_place(size_t slot);
    void give_place(size_t slot);
    Turn turn();
    bool has_work() const { return !grid_.resident.empty() || clusters_left() > 0; }
    uint64_t clusters_left() const;
    void count_instructions();
    std::unique_ptr<Cta> make_cta(Cluster& cluster, const uint32_t (&id)[3], uint32_t rank);
    void make_warps(Cta& cta);
    bool take_cluster(uint32_t (&first_cta)[3]);
    void retire_clusters();

    bool run_some_warp();
    void run_quantum(Warp& warp, Fragment& fragment);
    bool step(Warp& warp, Fragment& fragment);  // false: it waits or has ended
    Fragment* choose(Warp& warp);
    void merge(Warp& warp);
    void leave(Exec& x);  // after lanes have exited

    bool finish_async();
    bool force_divergent();

    Machine& machine_;
    Grid grid_;
    std::vector<Warp*> warps_;  // live ones
    std::vector<bool> slot_used_;
    std::vector<uint32_t> random_numbers_;  // of clusters, in the order in which they start
    double early_ = 0;  // probability that an async operation completes although warps can run
    bool warps_changed_ = false;
    bool livelock_ = false;  // stuck because all run in vain
};

}  // namespace emu
