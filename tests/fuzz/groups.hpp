// A grouped product drawn from an input, with memory behind it, and what hgemm.h says of it.
#pragma once

#include "oracle.hpp"

namespace hg::fuzz {

struct Groups {
    hgemm_grouped_args_t g{};
    int tail = 0;  // bytes behind the members that this version knows
    bool dirty_tail = false;
    bool is_null = false;

    // Groups of rows.
    Block a, b, d;
    std::vector<int64_t> sizes;         // offsets, ends or counts, as the library reads them
    std::unique_ptr<char[]> in_memory;  // the same of 64 or 32 bits, and nothing behind
    bool ends = false;
    bool has_memory = true;

    // Groups described on the host: hgemm_args_t of them, one behind the other, and nothing behind.
    std::vector<Product> products;
    std::unique_ptr<unsigned char[]> entries;

    bool is_masked() const { return g.grouping == HGEMM_GROUPED_MASKED; }
    bool is_host() const { return g.grouping == HGEMM_GROUPED_HOST; }
    bool reads() const { return g.k > 0 && g.alpha != 0; }
    // Rows of storage: of one group from `first` on.
    struct Rows {
        int64_t first, count;
    };
    Rows rows(int64_t group) const;
    // The members that may point to sizes of masked or contiguous groups, and their names.
    struct Form {
        const void* pointer;
        const char* name;
    };
    std::vector<Form> forms(bool masked) const;

    Extent extent_a() const;
    Extent extent_b() const;
    Extent extent_d() const;
    std::string describe() const;
};

Groups draw_groups(Input& input);

// By the names that an error may have. Of a call that does nothing everything is doubtful.
struct Names {
    std::vector<std::string> wrong, doubtful;
    bool anything_goes = false;
};
Names judge(const Groups& groups);

}  // namespace hg::fuzz
