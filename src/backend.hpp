// Backend: one constant for each kind of machine, in arch/<name>/backend.cpp.
#pragma once

#include "problem.hpp"
#include "status.hpp"

#include <algorithm>

namespace hg {

struct Backend;
struct Handle;

// A kernel as the host sees it: one row of arch/<name>/kernels.def.
struct Row {
    const char* name;
    int tile_m, tile_n, tile_k, stages, threads;
    int smem_bytes;
    bool unaligned = false;  // for operands that the backend's best kernels cannot read as they are
};

// Persistent CTAs: whole tiles, or equal shares of the last waves.
enum class Sharing { Free, Whole, Stream };

// Of the product that a kernel computes: D, or its transpose.
enum class Orientation { Free, Plain, Swapped };

// With the kernels before it and behind it on the stream: none; the next one may start once this one has
// multiplied; or at once.
enum class Overlap { Free, None, Late, Early };

enum class Why { Model, Tuned, Forced, Learned };
const char* name_of(Why why);

// Plan: what was decided. A pure function of Problem, Device and Options.
struct Plan {
    const Backend* backend;
    int row;         // index in backend->rows
    int variant;     // which entry point of the row (types and transposes); the backend's own numbering
    bool swapped;    // the kernel computes the transposed product: tile_m counts columns of D
    int split;       // slices of k
    bool streams;    // the last waves are shared out by k tiles instead of whole tiles
    bool hands_out;  // persistent CTAs get whole tiles one at a time, as they come to them
    int cluster;     // CTAs of a cluster; 0 or 1: none
    bool overlaps;   // with the end of the kernel before it on the stream
    bool early;      // lets the next one start at once
    int64_t tiles, grid;
    size_t workspace;           // bytes
    bool repacks_a, repacks_b;  // the operand is copied to the workspace first
    double predicted_us;
    Why why;
    const char* refusal;  // set when choose() returns false

    void print(char* text, size_t length) const;
};

// What the environment and the handle's setters ask for.
struct Options {
    char backend[16];         // HGEMM_BACKEND, "" if unset
    char kernel[64];          // HGEMM_KERNEL, a row's name, and what may follow it:
    int split;                // /split=<n>; 0: free
    Orientation orientation;  // /plain or /swapped
    Sharing sharing;          // /whole or /stream
    Overlap overlap;          // /alone, /late or /early; None under a limit of multiprocessors
    Mode mode;
    int sm_limit;      // 0: none
    size_t workspace;  // bytes that the handle has
    size_t counters;   // words that are 0 between kernels

    // How many multiprocessors, or threads, may be used.
    int sm_count(const Device& device) const
    {
        return sm_limit > 0 ? std::min(sm_limit, device.sm_count) : device.sm_count;
    }
};

// The parameters of a plan's kernels, as the backend lays them out. They hold for the same problem,
// pointers included, and may be launched again.
struct Packed {
    alignas(128) unsigned char bytes[1536];

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
    const Row* rows;
    int row_count;

    // Can this backend run on that device at all?
    bool (*serves)(const Device&);
    // Per-handle state: loaded kernels, or the host's threads and BLAS. *state is null on failure.
    Status (*open)(const Device&, void** state);
    void (*close)(void* state);
    // Size of the workspace that a handle gets at creation.
    size_t (*default_workspace)(const Device&);
    // How many words that are 0 between kernels lie behind a workspace of so many bytes; null: none.
    size_t (*counter_words)(const Device&, size_t workspace);
    // Fill the plan; false with plan.refusal set when no row (or not the forced one) fits the problem.
    bool (*choose)(const Problem&, const Device&, const Options&, Plan&);
    // Lay out the kernels' parameters.
    Status (*pack)(const Handle&, const Problem&, const Plan&, Packed&);
    // Launch on the handle's stream.
    Status (*launch)(Handle&, void* state, const Plan&, const Packed&);
    // False where results may depend on m, n or the batch.
    bool batch_invariant;
    // If set: on which devices does it serve only where HGEMM_BACKEND or HGEMM_KERNEL names it?
    bool (*stands_aside)(const Device&) = nullptr;
    // Has kernels for problems with Groups.
    bool takes_groups = false;
};

}  // namespace hg
