// host_blocked: panels of A and B are converted to fp32, cblas_sgemm multiplies them into an fp32 panel of
// sums, and one pass of the epilogue writes each block of D.
#pragma once

#include "arch/host/openblas.hpp"
#include "arch/host/pool.hpp"
#include "src/plan/problem.hpp"

#include <cstddef>

namespace hg {

// Largest block of D, and the K that one call of cblas_sgemm sums.
constexpr int64_t block_m = 2048, block_n = 2048, block_k = 512;

// An fp32 block in the workspace: contiguous lines, `ld` values apart.
struct Panel {
    bool along_k;  // of A or B: a line is a row (K-major), else a column (MN-major)
    int64_t ld;
    size_t bytes;
};

struct Blocks {
    int64_t m, n, k;  // sizes of a block; the last ones may be smaller
    Panel a, b, sum;

    size_t workspace() const { return a.bytes + b.bytes + sum.bytes; }
};

Blocks blocks_of(const Problem& problem);

constexpr int64_t block_count(int64_t size, int64_t block) { return (size + block - 1) / block; }

// The most that blocks_of() asks for, for any problem.
size_t max_workspace();

// `workspace` has blocks_of(problem).workspace() bytes. OpenBLAS has threads of its own beside `threads`.
void multiply(const OpenBlas& blas, Pool& pool, const Problem& problem, void* workspace, int threads);

}  // namespace hg
