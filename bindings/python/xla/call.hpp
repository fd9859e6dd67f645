// What a call frame of XLA's says, checked.
#pragma once

#include "ffi.hpp"
#include "handles.hpp"

#include <hgemm.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hg::xla {

// Why a call is refused; it becomes an error of XLA's.
class Refusal : public std::runtime_error {
public:
    Refusal(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
    int code() const { return code_; }

private:
    int code_;
};

[[noreturn]] void refuse(const std::string& text);  // an argument

// Throws what the library says of its last call, unless that succeeded.
void require(hgemm_status_t status);

struct Matrices {
    hgemm_type_t type{};
    void* data = nullptr;
    std::span<const int64_t> dims;  // the last two are those of a matrix; of a bias, the last one
};

Matrices matrices_of(const Buffers& buffers, int64_t i, const char* name);
// The same for an array of int32, whose data type is 0.
Matrices integers_of(const Buffers& buffers, int64_t i, const char* name);
int attribute(const CallFrame& frame, std::string_view wanted);
float scalar(const CallFrame& frame, std::string_view wanted);  // an attribute too

// activation(alpha * op(A) * op(B) + beta * C + bias), for each index of the leading dimensions. These are
// as many in every operand, and where an operand has length 1, it is shared.
struct Call {
    Matrices a, b, d;
    Matrices c, bias, aux;  // without data types (0) where there are none
    float alpha, beta;
    bool transpose_a, transpose_b, symmetric, batch_invariant;
    hgemm_activation_t activation;

    explicit Call(const CallFrame& frame);
};

// A handle for the frame's device and stream, with its workspace, which is the last result.
Lent lend(const CallFrame& frame, bool on_gpu, bool batch_invariant);

// What a handler returns: of multiply() the Refusal, if it throws one. Where XLA asks what the handler is,
// the answer to that.
Error* answer(const CallFrame& frame, bool on_gpu,
              void (*multiply)(const CallFrame&, bool on_gpu)) noexcept;

}  // namespace hg::xla
