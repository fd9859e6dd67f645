// Elements of a product's result by which kernels are held against each other: all of a small result, else
// rows and columns all over it.
#pragma once

#include "src/base/status.hpp"
#include "src/plan/problem.hpp"
#include "src/run/handle.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hg {

// Of 0 ... count - 1 all, if they are at most `blocks` times `size`, else so many blocks of so many, the
// first and the last among them; in order.
std::vector<int64_t> spread_over(int64_t count, int64_t blocks, int64_t size);

// How far two right results of an element may be apart before they are rounded to the type of D. `products`
// is |alpha| times the sum of the magnitudes of its products, or more; `added` that of beta * C and bias.
double allowed_difference(int64_t k, Activation activation, double products, double added);

// Are two results of that type as close as that? NaN is close to NaN. Everything is where nothing is known,
// as with infinite operands.
bool is_close(Type type, float x, float y, double allowed);

class Sample {
public:
    // Reads operands, the scalars and the sizes of groups from the device, once all work on the handle's
    // stream has ended. In batch-invariant mode all results must be the same.
    Status read(const Handle& handle, const Problem& problem);
    // The elements of D and aux of a problem like that one.
    Status results(const Handle& handle, const Problem& problem, std::vector<float>& values) const;
    bool agree(const std::vector<float>& x, const std::vector<float>& y) const;

private:
    struct Part {
        int64_t problem;  // of the batch
        std::vector<int64_t> rows;
        std::vector<float> products, added;  // magnitudes, by row and column; `added` may be empty
    };

    Status choose_parts(hgemm_stream_t stream, const Problem& problem);
    Status read_products(hgemm_stream_t stream, const Problem& problem, Part& part) const;
    Status read_added(hgemm_stream_t stream, const Problem& problem, Part& part) const;

    std::vector<Part> parts_;
    std::vector<int64_t> columns_;
    Type type_ = Type::F32;
    std::vector<Activation> outputs_;  // of D, and None if there is aux
    int64_t k_ = 0;
    bool exact_ = false;
};

}  // namespace hg
