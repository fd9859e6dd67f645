// What the conformance suite tests: the library, or a software model of it.
#pragma once

#include "src/tools/support/memory.hpp"
#include "src/tools/support/reference.hpp"

#include <string>

namespace hg::test {

class Engine {
public:
    virtual ~Engine() = default;
    virtual Memory& memory() = 0;
    virtual Arithmetic arithmetic() const = 0;
    // Computes what hgemm_gemm_ex(args) should; D is written when it returns.
    virtual hgemm_status_t run(const hgemm_args_t& args) = 0;
    // How the last run was made and what it said, for messages.
    virtual std::string story() const { return ""; }
    // May NOT_SUPPORTED be an answer, because one kernel was forced?
    virtual bool forced() const { return false; }
    // Ask for results that do not depend on m, n and the batch; false if it cannot.
    virtual bool set_batch_invariant(bool) { return true; }
};

}  // namespace hg::test
