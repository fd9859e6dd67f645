// The real cuBLAS: where its functions are, and which version it is.
#pragma once

#include "abi.hpp"

#include <string>

namespace hg::shim {

enum class Library { Blas, Lt };
constexpr int library_count = 2;

struct Real {
    int major = 0;          // 0: not found
    bool complete = false;  // has all functions of its library, but perhaps no groups
#define HGEMM_REAL(library, name, type) type* name = nullptr;
#include "functions.def"
#undef HGEMM_REAL

    // Do the declarations of abi.hpp hold for it?
    bool is_known() const { return complete && (major == 12 || major == 13); }
};

// The functions of one library; the other library's are null. They are looked up at the first call, and
// again at later ones while the library is not loaded. A library that was found stays loaded.
const Real& real(Library library);

// The path of a cuBLAS that is loaded although no function of the shim was called; empty if there is none.
std::string find_unseen();

template <typename Function, typename... Arguments>
int call_real(Function* function, Arguments... arguments)
{
    return function ? function(arguments...) : status_not_initialized;
}

}  // namespace hg::shim
