// libhgemm as the benchmark calls it. Failures are thrown as std::runtime_error.
#pragma once

#include "src/tools/bench/data.hpp"

#include <string>

namespace hg::bench {

// The product as an argument of the library.
hgemm_args_t args_of(const Product& product, const Operands& operands);

class Ours {
public:
    // hgemm_create() with HGEMM_BACKEND and HGEMM_KERNEL; "" leaves them as they are.
    explicit Ours(const std::string& backend = "", const std::string& kernel = "");
    ~Ours();
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

    hgemm_handle_t handle() const { return handle_; }
    std::string backend() const { return hgemm_backend(handle_); }
    bool on_host() const { return backend() == "host"; }
    void set_stream(hgemm_stream_t stream);
    void set_mode(hgemm_mode_t mode);
    void multiply(const Product& product, const Operands& operands);

    struct Choice {
        std::string backend, kernel;
        int split;
        double predicted_us;  // NaN if the backend predicts nothing
    };
    bool serves(const Product& product, const Operands& operands) const;
    Choice explain(const Product& product, const Operands& operands) const;

private:
    hgemm_handle_t handle_ = nullptr;
};

// The tuning file that such handles have read; "" for none.
std::string tuning_file(const std::string& backend, const std::string& kernel);

}  // namespace hg::bench
