// The argument checks of Level 3. Each public function has one list of arguments, checked in order, so that
// the first wrong one is reported, with its position in the C prototype.
#pragma once

#include "src/base/status.hpp"
#include "src/check/request.hpp"

namespace hg {

// How pointers are checked. OnHost: they must lead to memory that the CPU reads, arrays of pointers too.
enum class Pointers { Checked, OnHost, Unchecked };

// Are the arguments right? `args` holds the values, whatever the function's prototype.
Status check_arguments(const Signature& signature, const hgemm_args_t& args, Pointers pointers);

int64_t element_bytes(hgemm_type_t type);

// Of matrices that are moved or passed over by rows, not multiplied.
constexpr int64_t most_columns = int64_t{1} << 30;

// Do `count` steps of `step` elements exceed 2^62 bytes, beyond which adding addresses could overflow?
bool is_too_far(int64_t step, int64_t count, int64_t element_bytes);

// Checks argument `position`: a type of F16, BF16 or F32, a leading dimension of the matrix, or a pointer
// to elements.
Status check_type(int position, const char* name, hgemm_type_t type);
Status check_leading(int position, const char* name, int64_t ld, const Stored& matrix,
                     int64_t element_bytes);
Status check_pointer(int position, const char* name, const void* ptr, int64_t element_bytes,
                     Pointers pointers);

}  // namespace hg
