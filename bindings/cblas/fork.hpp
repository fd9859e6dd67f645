// What fork() does while other threads are in products: it waits until they have left, and holds back those
// that come, so that neither our locks nor OpenBLAS's are held in the child, where nobody would release
// them.
#pragma once

namespace hg::cblas {

// Says that the thread is in a product, for as long as it lives. It must not call the program meanwhile.
class InProduct {
public:
    InProduct();
    ~InProduct();
    InProduct(const InProduct&) = delete;
    InProduct& operator=(const InProduct&) = delete;
};

// To be called when OpenBLAS has been loaded. It ends its threads when the process forks, in a handler of
// its own, which must come behind ours: those that were registered last are the first to be called.
void watch_forks_before_openblas();

}  // namespace hg::cblas
