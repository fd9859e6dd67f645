// The two parts of the list.
#pragma once

#include "wrong_calls.hpp"

namespace hg::test {

void add_blas_calls(std::vector<WrongCall>& calls);
void add_lt_calls(std::vector<WrongCall>& calls);

}  // namespace hg::test
