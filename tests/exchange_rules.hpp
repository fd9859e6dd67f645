// Flags, sums of parts and products in blocks: the same checks for the host and for every GPU backend,
// reported to GoogleTest.
#pragma once

#include "library.hpp"

#include <functional>
#include <memory>

namespace hg::test {

// Sums have the bits of additions in order, or pairwise in tree mode, whatever types, places and alignment
// parts have. Nothing else is written.
void check_exchange_sums(Library& library);
// Flags count what is raised and taken, and a wait that nobody ends does not last.
void check_exchange_flags(Library& library);
// On the host, whose calls block: a thread's wait ends when another one raises its flag, and without a
// raise when a wait with the same error was too long.
void check_exchange_threads(const std::function<std::unique_ptr<Library>()>& make);
// Blocks have the bits of products of their rows, in every layout, and pass their flags on.
void check_blocks(Library& library);
// A block whose rows do not come is named.
void check_late_blocks(Library& library);
// What is wrong is named, and nothing is raised or written.
void check_exchange_refusals(Library& library);

}  // namespace hg::test
