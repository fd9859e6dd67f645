// Forks while other threads are in products, and makes a product in each child: none may wait for a lock
// whose owner stayed with the parent.
//
//   hgemm-cblas-fork [children [size]]
//
// OpenBLAS shares out products of 256 or more among its threads, unless OPENBLAS_NUM_THREADS is 1.
#include "hgemm_cblas.h"

#include "../forks.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int size = 8;

bool product_is_right()
{
    constexpr hgemm_bfloat16_t one = 0x3f80;
    const std::vector<hgemm_bfloat16_t> a(size * size, one);
    std::vector<float> c(size * size);
    cblas_sbgemm(HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, size, size, size, 1, a.data(), size,
                 a.data(), size, 0, c.data(), size);
    return std::all_of(c.begin(), c.end(), [](float x) { return x == static_cast<float>(size); });
}

// Refused, so that the library opens its log.
bool refusal_is_right()
{
    cblas_sbgemm(HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_NO_TRANS, -1, size, size, 1, nullptr, size, nullptr,
                 size, 0, nullptr, size);
    return hgemm_cblas_status() == HGEMM_STATUS_INVALID_ARGUMENT;
}

}  // namespace

int main(int count, char** arguments)
{
    const int children = count > 1 ? std::atoi(arguments[1]) : 300;
    if (count > 2)
        size = std::atoi(arguments[2]);
    const int failures =
        hg::test::count_failures(children, [] { return product_is_right() && refusal_is_right(); });
    std::printf("%d of %d children hung or were wrong\n", failures, children);
    return failures == 0 && children > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
