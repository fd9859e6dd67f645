// The memory that a GEMM writes to: of each problem of a batch, from its first element to the last.
#pragma once

#include "hgemm.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hg::shim {

using Bytes = std::vector<unsigned char>;

class Output {
public:
    Output(const hgemm_args_t& args, void* stream);

    // Finds the problems of the batch; arrays of pointers are read from the device.
    bool find();
    bool read(Bytes& to) const;
    // Other streams may write to the gaps between columns meanwhile, so these are not restored.
    bool write(const Bytes& from) const;

    // Calls visit(problem, at) with the place of each element in what read() copies.
    template <typename Visit>
    void each(Visit visit) const
    {
        for (size_t problem = 0; problem < problems_.size(); ++problem)
            for (int64_t line = 0; line < lines_; ++line)
                for (int64_t i = 0; i < length_; ++i)
                    visit(problem, problem * bytes_ + static_cast<size_t>(line * args_.ldd + i) * element_);
    }
    float decode(const unsigned char* at) const;

private:
    bool done(bool copied) const;

    const hgemm_args_t& args_;
    void* stream_;
    int64_t lines_, length_;
    size_t element_;
    size_t bytes_;  // of one problem, from its first element to the last
    std::vector<void*> problems_;
};

}  // namespace hg::shim
