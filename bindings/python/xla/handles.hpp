// Handles for XLA's calls: no two threads have the same one at a time.
#pragma once

#include <hgemm.h>

#include <compare>
#include <cstddef>

namespace hg::xla {

struct Place {
    int device;  // HGEMM_DEVICE_HOST: the CPU, which has no stream
    hgemm_mode_t mode;
    auto operator<=>(const Place&) const = default;
};

struct Workspace {
    void* data;
    size_t bytes;
};

// A handle for the time of one call, on the stream. It has no workspace of its own: products of one handle
// may run on several streams, in graphs among others. On the CPU it needs none. Throws Refusal.
class Lent {
public:
    Lent(const Place& place, void* stream, Workspace workspace);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    operator hgemm_handle_t() const { return handle_; }

private:
    Place place_;
    hgemm_handle_t handle_;
};

}  // namespace hg::xla
