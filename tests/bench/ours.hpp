// libhgemm as the benchmark calls it. Failures are thrown as std::runtime_error.
#pragma once

#include "data.hpp"

#include <string>

namespace hg::bench {

class Ours {
public:
    Ours();  // hgemm_create()
    ~Ours();
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

    std::string backend() const { return hgemm_backend(handle_); }
    bool on_host() const { return backend() == "host"; }
    void set_stream(hgemm_stream_t stream);
    void multiply(const Product& product, const Operands& operands);

    struct Choice {
        std::string backend, kernel;
        int split;
    };
    Choice explain(const Product& product) const;

private:
    hgemm_handle_t handle_ = nullptr;
};

}  // namespace hg::bench
