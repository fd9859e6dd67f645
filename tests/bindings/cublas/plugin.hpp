// One product through cuBLAS, checked, with a handle that is made at the first one.
#pragma once

extern "C" {
const char* plugin_product();  // "right", "wrong" or "refused"
int plugin_destroy();          // the handle
}
