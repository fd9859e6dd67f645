// Statuses and the thread's error text. Every failure in the library is made by one of the two
// functions here, at the place that knows what was wrong.
#pragma once

#include "hgemm.h"
#include "src/base/float_environment.hpp"

namespace hg {

using Status = hgemm_status_t;
constexpr Status ok = HGEMM_STATUS_SUCCESS;

// Of an error's text with its NUL: holds the names of all kernels.
constexpr size_t error_text_bytes = 4096;

// Remember "<function>: <text>" as this thread's error and return `status`. The function is the public
// one that the thread is in (see Call).
[[gnu::format(printf, 2, 3)]] Status fail(Status status, const char* format, ...) noexcept;

// As fail(HGEMM_STATUS_INVALID_ARGUMENT, "argument <position> (<name>) <text>"). `position` counts from
// 1 with the handle, as xerbla does.
[[gnu::format(printf, 3, 4)]] Status fail_argument(int position, const char* name, const char* format,
                                                   ...) noexcept;

// Puts back the thread's last failure as it was, for when failures meanwhile are none of the call.
class KeptError {
public:
    KeptError() noexcept;
    ~KeptError();
    KeptError(const KeptError&) = delete;
    KeptError& operator=(const KeptError&) = delete;

private:
    char text_[error_text_bytes];
    int argument_;
};

// What the thread's last failure left. The text has no control characters.
const char* error_text() noexcept;
int error_argument() noexcept;

// A call of a public function: names it in messages, and has the thread decide and compute in the default
// floating-point environment, for as long as it lives.
class Call {
public:
    explicit Call(const char* function) noexcept;
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

private:
    const char* outer_;
    FloatEnvironment environment_;
};

// Says that the thread is at args->problems[index], for as long as it lives. Failures then name that entry:
// args->lda is args->problems[<index>].lda.
class AtProblem {
public:
    explicit AtProblem(int64_t index) noexcept;
    ~AtProblem();
    AtProblem(const AtProblem&) = delete;
    AtProblem& operator=(const AtProblem&) = delete;
};

}  // namespace hg
