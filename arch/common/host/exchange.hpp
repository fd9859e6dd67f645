// Exchanges: from what is exchanged to the kernel's parameters.
#pragma once

#include "arch/common/exchange/config.hpp"
#include "src/plan/exchange.hpp"

#include <cstdint>

namespace hg {

// How many rows one launch adds up at most.
int64_t rows_at_once(const Exchange& what);

// Of the launch whose first row is `row`. waits: the first one raises and waits. The last one raises at the
// end, if there is a flag to wait for, beside which its CTAs count themselves.
ExchangeParams pack_exchange(const Exchange& what, int64_t row, bool waits);

}  // namespace hg
