// The GPU path: B goes to the device once, rows of A (and C) follow in panels through pinned memory, and
// rows of D come back. While the GPU multiplies one panel, the calling thread packs the next one and
// unpacks the previous one.
#pragma once

#include "cuda.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace hg::cblas {

// A matrix in the program's memory, and packed: rows at multiples of 16 bytes, which the fastest kernels
// need.
struct StoredRows {
    char* data;
    int64_t count;
    size_t length, pitch;  // bytes

    size_t packed_pitch() const { return (length + 15) / 16 * 16; }
    size_t packed_bytes() const { return static_cast<size_t>(count) * packed_pitch(); }
    StoredRows from(int64_t row, int64_t rows) const;
    void pack(char* packed) const;
    void unpack(const char* packed) const;
};

class Stager {
public:
    // The stager of this process; null if there is no GPU that libhgemm can use, and in a forked child.
    static Stager* get();

    // Computes a row-major GEMM with k > 0 and returns how many rows of D were written, from the first on:
    // fewer than m if something failed, and then the GPU is not used again. Calls of several threads run
    // one after the other.
    int64_t run(const hgemm_args_t& args);

private:
    // A panel in flight.
    struct Slot {
        cuda::Buffer pinned_in{cuda::Place::Pinned}, pinned_out{cuda::Place::Pinned};
        cuda::Buffer a{cuda::Place::Device}, d{cuda::Place::Device};
        cuda::Event uploaded = nullptr, computed = nullptr, downloaded = nullptr;
        StoredRows result{};
        int64_t rows = 0;  // 0: nothing to wait for
    };

    Stager() = default;
    bool open();
    bool reserve(const hgemm_args_t& args, int64_t rows);
    bool upload_b(const StoredRows& b);
    bool upload_panel(Slot& slot, const hgemm_args_t& panel);
    bool issue(Slot& slot, const hgemm_args_t& panel);
    bool drain(Slot& slot, int64_t& done);
    void give_up();

    std::mutex mutex_;
    std::atomic<bool> usable_ = false;
    int process_ = 0;
    hgemm_handle_t handle_ = nullptr;
    cuda::Stream in_ = nullptr, compute_ = nullptr, out_ = nullptr;
    cuda::Buffer b_{cuda::Place::Device};
    Slot slots_[2];
};

}  // namespace hg::cblas
