// The driver by the entry points that the library itself takes, and what its bare launches cost.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

namespace hg::cost {

class Driver {
public:
    Driver();  // device 0's primary context becomes current
    char* allocate(size_t bytes) const;
    void wait() const;
    CUstream create_stream() const;
    void look_up_context() const;

    // A launch of a kernel that does nothing.
    struct Launch {
        const char* name;
        bool as_function;  // instead of a kernel that belongs to no context
        bool overlaps;
        unsigned cluster;
        size_t parameter_bytes;  // one of sizes
    };
    static constexpr size_t sizes[] = {8, 640};
    void launch(const Launch& launch, CUstream stream) const;

private:
    struct Kernel {
        CUkernel kernel;
        CUfunction function;
    };
    std::vector<Kernel> kernels_;  // in the order of sizes
};

}  // namespace hg::cost
