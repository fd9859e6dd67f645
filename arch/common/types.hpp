// Words that host and device share.
#pragma once

#include <cstdint>

namespace hg {

enum class Type : int32_t { F16 = 1, BF16 = 2, F32 = 3 };                 // hgemm_type_t's values
enum class Activation : int32_t { None, Relu, GeluTanh, GeluErf, Silu };  // hgemm_activation_t's values
enum class BiasAlong : int32_t { None, Rows, Columns };  // Rows: element i belongs to row i of D

// Which dimension of an operand is contiguous in memory: k, or the other one (m of A, n of B).
enum class Major : int32_t { K, MN };

}  // namespace hg
