// One product through cuBLAS, checked, with a handle that is made at the first one.
#pragma once

#include "abi.hpp"

extern "C" {
const char* plugin_product();  // "right", "wrong" or "refused"
const char* plugin_product_by(hg::shim::GemmEx<int>* gemm);
int plugin_destroy();  // the handle
}
