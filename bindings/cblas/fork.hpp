// fork() waits until other threads have left their GEMMs, and delays new ones, so that in the child neither
// this library's locks nor OpenBLAS's are held by threads that do not exist there.
#pragma once

namespace hg::cblas {

// Marks the thread as being in a GEMM while the object lives. The thread must not call the program
// meanwhile.
class InProduct {
public:
    InProduct();
    ~InProduct();
    InProduct(const InProduct&) = delete;
    InProduct& operator=(const InProduct&) = delete;
};

// To be called when OpenBLAS has been loaded. OpenBLAS ends its threads in a fork handler, which must run
// after ours: the handlers that were registered last run first.
void watch_forks_before_openblas();

}  // namespace hg::cblas
