// One product from beginning to end: ours if we can, else the real library's; counted and logged.
#pragma once

#include "counts.hpp"
#include "handles.hpp"
#include "lt_call.hpp"
#include "real_call.hpp"

namespace hg::shim {

int serve(Product product, void* handle, const GemmCall& call, const RealCall& real_call);

// What cublasLtMatmul got beside its operands.
struct LtPlace {
    void* desc;
    LtLayouts layouts;
    const LtAlgorithm* algorithm;
    Workspace workspace;
    void* stream;
};
int serve(void* handle, const LtPlace& lt, LtCall& call, const RealCall& real_call);

}  // namespace hg::shim
