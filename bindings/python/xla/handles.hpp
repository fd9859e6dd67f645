// Handles for XLA's calls: no two threads have the same one at a time.
#pragma once

#include <hgemm.h>

#include <compare>

namespace hg::xla {

struct Place {
    int device;  // HGEMM_DEVICE_HOST: the CPU, which has no stream
    hgemm_mode_t mode;
    auto operator<=>(const Place&) const = default;
};

// A handle for the time of one call, on the stream. It has no workspace of its own: products of one handle
// may run on several streams, in graphs among others. Throws Refusal.
class Lent {
public:
    Lent(const Place& place, void* stream);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    operator hgemm_handle_t() const { return handle_; }

private:
    Place place_;
    hgemm_handle_t handle_;
};

}  // namespace hg::xla
