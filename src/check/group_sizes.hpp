// Where the rows of contiguous and masked groups, and the K of k groups, are written, in each form that the
// C API takes.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"

#include <hgemm.h>

namespace hg {

struct GroupSizes {
    const char* name;  // of the argument
    Groups groups;

    // Finds the one form that is given; fails if it is none, more than one, or of the other grouping.
    static Status find(const hgemm_grouped_args_t& g, GroupSizes& sizes);

    int64_t element_bytes() const { return groups.narrow ? 4 : 8; }

    // The rows of a group, or its K, for sizes in host memory.
    struct Rows {
        int64_t first, count;
    };
    Rows rows(int64_t group) const;

    // Are the sizes, in host memory, those of groups within g.m rows, or within g.k?
    Status check(const hgemm_grouped_args_t& g) const;

private:
    int64_t at(int64_t i) const;
    int64_t begin(int64_t group) const;
    int64_t end(int64_t group) const;
};

}  // namespace hg
