// What libhgemm_cublas_audit.so asks the shim.
#pragma once

namespace hg::shim {

// The name of the function below, which the audit library finds by dlsym().
constexpr const char* stand_in_name = "hgemm_shim_stand_in";
using StandIn = void*(const char* name, void* found);

}  // namespace hg::shim

// The shim's function of that name, if `found` is the function that it passes calls on to; else `found`. In
// a process with two versions of cuBLAS the other one is left alone.
extern "C" __attribute__((visibility("default"))) hg::shim::StandIn hgemm_shim_stand_in;
