// Serves one call: by libhgemm if it can, else by the real library. Counts and logs it.
#pragma once

#include "counts.hpp"
#include "handles.hpp"
#include "lt_call.hpp"
#include "real_call.hpp"

namespace hg::shim {

int serve(Product product, void* handle, const GemmCall& call, const RealCall& real_call);
int serve(Product product, void* handle, const GroupedCall& call, const RealCall& real_call);

// The arguments of cublasLtMatmul beside the operands.
struct LtPlace {
    void* desc;
    LtLayouts layouts;
    const LtAlgorithm* algorithm;
    Workspace workspace;
    void* stream;
};
int serve(void* handle, const LtPlace& lt, LtCall& call, const RealCall& real_call);

}  // namespace hg::shim
