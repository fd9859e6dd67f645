// What a call frame of XLA's says, checked.
#pragma once

#include "ffi.hpp"

#include <hgemm.h>

#include <span>
#include <stdexcept>
#include <string>

namespace hg::xla {

// Why a call is refused; it becomes an error of XLA's.
class Refusal : public std::runtime_error {
public:
    Refusal(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
    int code() const { return code_; }

private:
    int code_;
};

// Throws what the library says of its last call, unless that succeeded.
void require(hgemm_status_t status);

struct Matrices {
    hgemm_type_t type;
    void* data;
    std::span<const int64_t> dims;  // the last two are those of a matrix; of a bias, the last one
};

// activation(op(A) * op(B) + bias), for each index of the leading dimensions. These are as many in every
// operand, and where an operand has length 1, it is shared.
struct Call {
    Matrices a, b, d;
    Matrices bias, aux;  // without data types (0) where there are none
    void* workspace;
    size_t workspace_bytes;
    bool transpose_a, transpose_b, batch_invariant;
    hgemm_activation_t activation;

    explicit Call(const CallFrame& frame);
};

// Throws where the frame is of another interface than ffi.hpp declares.
void check_interface(const CallFrame& frame, bool needs_device);

// The answer where XLA asks what the handler is; false where it wants a product.
bool answer_metadata(const CallFrame& frame);

// Of XLA's GPU platforms alone.
int device_of(const CallFrame& frame);
void* stream_of(const CallFrame& frame);

}  // namespace hg::xla
