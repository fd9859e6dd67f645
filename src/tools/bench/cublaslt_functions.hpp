// What the parts of CublasLt share: the library's functions, constants and structures.
#pragma once

#include "src/tools/bench/cublaslt.hpp"

#include <cstdint>
#include <vector>

namespace hg::bench {
namespace cublaslt {

// Declarations follow cublasLt.h of CUDA 12 and 13.
struct Algorithm {
    uint64_t data[8];
};
struct HeuristicResult {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

constexpr int compute_32f = 68, r_32f = 0, r_16f = 2, r_16bf = 14, op_n = 0, op_t = 1;
constexpr int desc_transa = 3, desc_transb = 4, desc_epilogue = 7, desc_bias = 8, desc_aux = 11,
              desc_ldaux = 12, desc_stride_aux = 13, desc_bias_type = 26;
constexpr uint32_t epilogue_relu = 2, epilogue_bias = 4, epilogue_gelu = 32, epilogue_aux = 128;  // or'ed
constexpr int layout_batch_count = 5, layout_batch_stride = 6;
constexpr int cap_split = 0, cap_swizzling = 2, cap_tiles = 6, cap_stages = 13, cap_alignment_a = 16,
              cap_alignment_b = 17, cap_alignment_d = 19;
constexpr int config_tile = 1, config_split = 2, config_reduction = 3, config_swizzling = 4,
              config_stages = 6;
constexpr int pref_workspace = 1, pref_first_alignment = 5;  // then B, C and D

constexpr size_t workspace_bytes = size_t{64} << 20;

inline int type_of(const Product& p) { return p.type == HGEMM_F16 ? r_16f : r_16bf; }
inline int type_d_of(const Product& p) { return p.type_d() == HGEMM_F32 ? r_32f : type_of(p); }

// What every pointer of a set is a multiple of, in bytes; the libraries ask for 256 at most.
uint32_t alignment_of(const std::vector<Operands>& sets, const void* (*pointer)(const Operands&));

}  // namespace cublaslt

struct CublasLt::Functions {
    int (*create)(void**);
    int (*destroy)(void*);
    size_t (*version)();
    int (*create_operation)(void**, int, int);
    int (*destroy_operation)(void*);
    int (*set_operation)(void*, int, const void*, size_t);
    int (*create_layout)(void**, int, uint64_t, uint64_t, int64_t);
    int (*destroy_layout)(void*);
    int (*set_layout)(void*, int, const void*, size_t);
    int (*create_preference)(void**);
    int (*destroy_preference)(void*);
    int (*set_preference)(void*, int, const void*, size_t);
    int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, cublaslt::HeuristicResult*,
                     int*);
    int (*get_ids)(void*, int, int, int, int, int, int, int, int*, int*);
    int (*init)(void*, int, int, int, int, int, int, int, cublaslt::Algorithm*);
    int (*get_capability)(const cublaslt::Algorithm*, int, void*, size_t, size_t*);
    int (*configure)(cublaslt::Algorithm*, int, const void*, size_t);
    int (*check)(void*, void*, void*, void*, void*, void*, const cublaslt::Algorithm*,
                 cublaslt::HeuristicResult*);
    int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                  const void*, void*, void*, void*, const cublaslt::Algorithm*, void*, size_t,
                  CUstream_st*);
};

struct CublasLt::Algorithms::Results {
    std::vector<cublaslt::HeuristicResult> list;
    std::vector<Configuration> configurations;  // of the same length, or empty for the heuristic's
};

}  // namespace hg::bench
