// Makes a handle run one plan after the other, as HGEMM_KERNEL does.
#pragma once

#include "src/plan/options.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <string_view>

namespace hg::bench {

class Forced {
public:
    explicit Forced(Handle& handle) : handle_(handle), free_(handle.options) {}

    const Options& free() const { return free_; }  // as the handle was created
    // All later calls run the plan's kernel; "" leaves the choice to the library. The mode stays.
    void select(std::string_view plan) const
    {
        const Mode mode = handle_.options.mode;
        handle_.options = free_;
        handle_.options.mode = mode;
        std::string_view unknown;
        if (!plan.empty())
            read_kernel(plan, handle_.options, unknown);
        handle_.cache->clear();
    }

private:
    Handle& handle_;
    const Options free_;
};

}  // namespace hg::bench
