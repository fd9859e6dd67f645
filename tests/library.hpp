// Engine over libhgemm's public functions.
#pragma once

#include "engine.hpp"
#include "hgemm.h"
#include "src/tools/support/kernel_names.hpp"

#include <memory>
#include <string>
#include <vector>

namespace hg::test {

// y = alpha * op(A) * x + beta * y, A column-major m x n; the arguments of the four gemv functions.
struct GemvArgs {
    hgemm_type_t type = HGEMM_F16;
    hgemm_op_t trans = HGEMM_NO_TRANS;
    int64_t m = 0, n = 0;
    float alpha = 1;
    const void* a = nullptr;
    int64_t lda = 1;
    const void* x = nullptr;
    int64_t incx = 1;
    float beta = 0;
    void* y = nullptr;
    int64_t incy = 1;
};

// The public functions that multiply matrices. Those of one form take the same arguments; type_ab and the
// transposes say which of them is meant.
enum class Form { General, Short, Cblas, Strided, Batched };

hgemm_status_t call(Form form, hgemm_handle_t handle, const hgemm_args_t& args);
// The functions of symmetric results: of one matrix, of two, of a batch. They take op(A) and what else the
// arguments say.
enum class Syrk { One, Two, Strided };

hgemm_status_t call_syrk(Syrk form, hgemm_handle_t handle, const hgemm_args_t& args);
hgemm_status_t call_gemv(hgemm_handle_t handle, const GemvArgs& args);
std::string function_name(Form form, const hgemm_args_t& args);

// One handle. GEMMs go through the public functions that can express them, in turn.
class Library : public Engine {
public:
    // `cuda` null: a host handle. Backend and kernel as in HGEMM_BACKEND and HGEMM_KERNEL.
    explicit Library(Cuda* cuda, std::string backend = "", std::string kernel = "");
    ~Library() override;
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    bool created() const { return handle_ != nullptr; }  // else story() says why not
    hgemm_handle_t handle() const { return handle_; }

    Memory& memory() override { return *memory_; }
    Arithmetic arithmetic() const override
    {
        return cuda_ ? Arithmetic::of_device(cuda_->cc()) : Arithmetic::of_cpu();
    }
    hgemm_status_t run(const hgemm_args_t& args) override;
    hgemm_status_t start(const hgemm_args_t& args);  // as run(), without waiting for the stream
    hgemm_status_t gemv(const GemvArgs& args);
    hgemm_status_t wait(hgemm_status_t status);
    std::string story() const override { return story_; }
    bool forced() const override { return !kernel_.empty(); }
    bool set_batch_invariant(bool on) override;

    std::string explain(const hgemm_args_t& args) const;

private:
    Cuda* cuda_;
    std::string kernel_, story_;
    std::unique_ptr<Memory> memory_;
    hgemm_handle_t handle_ = nullptr;
    unsigned turn_ = 0;
};

}  // namespace hg::test
