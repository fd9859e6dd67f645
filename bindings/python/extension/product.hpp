// A product of tensors, where nothing has to be copied, and nothing is wrong.
#pragma once

#include <cstdint>

#include "torch_api.hpp"
#include "view.hpp"

namespace hgemm_torch {

// How to multiply: flags, and an activation above them. hgemm.torch asks for these numbers by their names
// (hgemm_torch_form() in extension.h). Only the first is fixed: hgemm.torch passes a bool for it.
enum Form : std::int64_t {
    BATCH_INVARIANT = 1,
    WIDE = 2,        // the result is float32
    BATCHED = 4,     // matrices are batches
    LINEAR = 8,      // a is of any dimensions, and b is the transposed matrix
    SYMMETRIC = 16,  // the result is known to be, and so is a matrix that is added
    OUTER = 32,      // a and b are of any dimensions, with as many rows, and a is transposed
    OF_K = 64,       // groups are of K
    CLEAR = 128,     // rows of no group are 0
    AUX = 256,       // of groups: asks for aux
    ADDED = 512,     // of gated products, also of groups: there is a bias; of rows: there are weights
    ACTIVATION_SHIFT = 10
};
static_assert(BATCH_INVARIANT == std::int64_t{true});

struct Options {
    std::int64_t form;
    double alpha = 1, beta = 0;
    bool adds_row = false;  // what is added is a row, and no matrix
    hgemm_gate_t gate{};
    Tensor* aux = nullptr;  // not null: receives a new matrix, the values before the activation or the gate

    bool has(Form flag) const { return (form & flag) != 0; }
    hgemm_activation_t activation() const
    {
        return static_cast<hgemm_activation_t>(form >> ACTIVATION_SHIFT);
    }
};

// What call(handle) writes: a new tensor, and where the options ask for it aux. Null: a tensor could not be
// made, no handle is idle, or the library refuses.
template <typename Call>
Tensor written(const View& beside, const Options& options, Owned result, Owned aux, const Call& call)
{
    if (!result || (options.aux != nullptr && !aux))
        return nullptr;
    const Lent lent = beside.take_handle(options.has(BATCH_INVARIANT));
    if (!lent || call(lent->handle))
        return nullptr;
    if (options.aux != nullptr)
        *options.aux = aux.release();
    return result.release();
}

// activation(alpha * a @ b + beta * added), or with a gate half of it: a new, contiguous tensor. added may
// be null: a matrix of the product's shape or, if beta is 1, a row. Null where hgemm.torch's own code has
// to find out what to do, because a matrix is to be copied, an argument is wrong, no handle is there yet,
// or the library has refused the product.
Tensor product(Tensor a, Tensor b, Tensor added, const Options& options);

}  // namespace hgemm_torch
