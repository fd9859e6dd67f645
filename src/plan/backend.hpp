// Backend: one constant for each kind of machine, in arch/<name>/backend.cpp.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>

namespace hg {

struct Backend;
struct Exchange;
struct GateGradient;
struct GatePass;
struct Handle;
struct LeafSums;
struct Route;
struct RowClear;
struct RowMove;
struct TriangleMove;

constexpr int max_backends = 4;  // that serve one device

// A kernel as the host sees it: one row of arch/<name>/kernels.def.
struct KernelInfo {
    const char* name;
    int tile_m, tile_n, tile_k, stages, threads;
    int smem_bytes;
    // Reads operands of any alignment, more slowly than the backend's other kernels read aligned ones.
    bool unaligned = false;
    // Elements at some places of D are sums in another order than the others.
    bool uneven = false;
};

// On: persistent CTAs share the K tiles of the last waves evenly. Off: each computes whole tiles.
enum class StreamK { Free, Off, On };

// On: the kernel computes the transpose of D, with A and B swapped.
enum class SwapAb { Free, Off, On };

// Programmatic dependent launch: when the next kernel on the stream may start. Off: when this one has
// ended. Late: after its main loop. Early: as soon as it runs.
enum class Pdl { Free, Off, Late, Early };

// Tuned: a table of the backend's that was measured on another device of its model. TunedHere: the tuning
// file of this device (src/tuning/tuning.hpp). Calibrated: the cost model with the factors of that file.
enum class Why { Model, Tuned, Forced, Network, TunedHere, Calibrated };
const char* name_of(Why why);
const char* name_of(Pdl pdl);

// Plan: how a problem is run. A pure function of Problem, Device and Options, and of the kernel that the
// tuning file names for the problem (src/run/execute.cpp).
struct Plan {
    const Backend* backend;
    int kernel;    // index in backend->kernels
    int variant;   // which entry point of the kernel (types and transposes); the backend's own numbering
    bool swap_ab;  // the kernel computes the transpose: tile_m counts columns of D
    int split;     // slices of K
    int cluster;   // CTAs of a cluster; 0 or 1: none
    Pdl pdl;       // not Free
    int64_t tiles, grid;
    size_t workspace;         // bytes
    bool counts;              // uses the words that are 0 between kernels
    bool repack_a, repack_b;  // the operand is copied to the workspace first
    double predicted_us;
    Why why;
    const char* refusal;  // set when choose() returns false

    // Of a triangle that no kernel serves, all that is kept: rows and columns of the blocks on its
    // diagonal.
    int64_t triangle_block;

    // Of a tree, all that is kept: how many branches of it have sums in the workspace. 1: none, one kernel
    // serves the whole.
    int64_t tree_branches;

    // Set and read by the sm90 backend alone; all but the first two by decide_details().
    struct Sm90 {
        bool stream_k;
        bool dynamic_schedule;        // clusters take tile indices from a global counter
        int32_t stream_k_tiles;       // that are shared
        bool raster_along_n;          // consecutive tiles lie along N of the MMA, else along M
        int32_t raster_group;         // rows (or columns) of tiles that are walked together; 0: no raster
        bool remapped;                // clusters are numbered by GPC
        int32_t last_m, last_n;       // where the last tiles begin
        int32_t prefetched;           // K tiles that a CTA prefetches into L2 while earlier kernels end
        bool a_once, b_once, d_once;  // L2 need not keep A or B of the MMA, or D
        bool staggered;               // the consumers of a split-K kernel end one after another
        bool persistent;              // the kernel is, and has an epilogue
        sm90::Epilogue epilogue;

        bool operator==(const Sm90&) const = default;
    } sm90;

    bool repacks() const { return repack_a || repack_b; }
    bool uses_pdl() const { return pdl > Pdl::Off; }

    bool operator==(const Plan&) const = default;

    void print(char* text, size_t length) const;
};

// What the environment and the handle's setters ask for.
struct Options {
    char backend[16];  // HGEMM_BACKEND, "" if unset
    char kernel[64];   // HGEMM_KERNEL: a kernel's name, and these options after it:
    int split;         // /split=<n>; 0: free
    SwapAb swap_ab;    // /swap_ab=0 or 1
    StreamK stream_k;  // /stream_k=0 or 1
    Pdl pdl;           // /pdl=off, late or early; Off under a limit of SMs
    int branches;      // /branches=<n>, of trees: as Plan::tree_branches; 0: free
    Mode mode;
    int sm_limit;      // 0: none
    int max_cluster;   // CTAs, 0: any; find_plan() sets it under a limit of SMs
    size_t workspace;  // bytes that the handle has
    size_t counters;   // words that are 0 between kernels
    bool has_plan;     // set by find_plan(): an earlier backend has one; see sm80's choose()

    // Does HGEMM_KERNEL ask for anything?
    bool is_forced() const
    {
        return *kernel || split > 0 || swap_ab != SwapAb::Free || stream_k != StreamK::Free ||
               pdl != Pdl::Free || branches > 0;
    }

    // How many SMs may be used; on the host, how many threads.
    int sm_count(const Device& device) const
    {
        return sm_limit > 0 ? std::min(sm_limit, device.sm_count) : device.sm_count;
    }

    bool takes_cluster(int ctas) const { return max_cluster == 0 || ctas <= max_cluster; }
};

// The parameters of a plan's kernels, in the backend's own layout. They may be launched again for the same
// problem, pointers included.
struct Packed {
    alignas(128) unsigned char bytes[1664];

    // T is the backend's own struct, of plain data.
    template <typename T>
    T& as()
    {
        static_assert(sizeof(T) <= sizeof bytes && alignof(T) <= 128);
        return *reinterpret_cast<T*>(bytes);
    }
    template <typename T>
    const T& as() const
    {
        return const_cast<Packed*>(this)->as<T>();
    }
};

struct Backend {
    const char* name;
    const KernelInfo* kernels;
    int kernel_count;

    // Can this backend run on that device at all?
    bool (*serves)(const Device&);
    // Open and close a handle's state: loaded kernels, or the host's threads and BLAS. *state is
    // closed if it was set, even where opening failed.
    Status (*open)(const Device&, void** state);
    void (*close)(void* state);
    // Size of the workspace that a handle gets at creation.
    size_t (*default_workspace)(const Device&);
    // How many words that are 0 between kernels lie behind a workspace of that many bytes; null: none.
    size_t (*counter_words)(const Device&, size_t workspace);
    // Fills the plan; false with plan.refusal set when no kernel (or not the forced one) fits the problem.
    bool (*choose)(const Problem&, const Device&, const Options&, Plan&);
    // Writes the kernels' parameters.
    Status (*pack)(const Handle&, const Problem&, const Plan&, Packed&);
    // Launches on the handle's stream.
    Status (*launch)(Handle&, void* state, const Plan&, const Packed&);
    // False where results may depend on m, n or the batch.
    bool batch_invariant;
    // If set: true for devices on which the backend is used only if HGEMM_BACKEND or HGEMM_KERNEL names it.
    bool (*stands_aside)(const Device&) = nullptr;
    // Another backend's kernels may be faster: find_plan() asks the next ones as well.
    bool is_compared = false;
    // Has kernels for problems with Groups.
    bool takes_groups = false;
    // Has kernels for problems with Groups of K.
    bool takes_k_groups = false;
    // Has kernels for problems of which one half of D is asked for.
    bool takes_triangles = false;
    // Has kernels for problems with leaves.
    bool takes_leaves = false;
    // Has kernels for problems with gates.
    bool takes_gates = false;
    // If set: microseconds that the cost model expects of a plan that choose() has made for the problem and
    // that copies no operands. A backend without one is not calibrated.
    double (*predict_plan)(const Problem&, const Device&, const Plan&, int sm_count) = nullptr;
    // If set: adds up the sums of a tree's leaves, pairwise, and finishes the output: the problem without A
    // and B. On the handle's stream.
    Status (*sum_leaves)(Handle&, void* state, const Problem& output, const LeafSums&) = nullptr;
    // In the default mode a very long K of a small D is summed in leaves: gains_by_leaves().
    bool cuts_deep_k = false;
    // If set: copies or transposes a triangle, on the handle's stream.
    Status (*move_triangle)(Handle&, void* state, const TriangleMove&) = nullptr;
    // If set: gates what lies in the workspace, on the handle's stream.
    Status (*apply_gates)(Handle&, void* state, const GatePass&) = nullptr;
    // If set: computes the gradient of gated results, on the handle's stream.
    Status (*gate_gradient)(Handle&, void* state, const GateGradient&) = nullptr;
    // If set: exchanges data with other streams and GPUs, on the handle's stream.
    Status (*exchange)(Handle&, void* state, const Exchange&) = nullptr;
    // If set: orders, moves, or clears the rows of a layer of experts, on the handle's stream.
    Status (*route)(Handle&, void* state, const Route&) = nullptr;
    Status (*move_rows)(Handle&, void* state, const RowMove&) = nullptr;
    Status (*clear_rows)(Handle&, void* state, const RowClear&) = nullptr;
    // If set: what the log says of an open backend; null: nothing.
    const char* (*remark)() = nullptr;
};

}  // namespace hg
