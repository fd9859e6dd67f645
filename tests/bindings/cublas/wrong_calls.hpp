// The calls that cuBLAS and the shim are compared by.
#pragma once

#include "route.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hg::test {

struct Paths {
    const char *blas, *lt, *shim;
};

// The products of one library.
struct Products {
    Products(void* blas, void* lt);
#define HGEMM_REAL(library, name, type) shim::type* name;
#include "products.def"
#undef HGEMM_REAL
};

// What the calls are made with: a handle and device memory, and the functions of cuBLAS that make
// descriptors.
struct Given {
    Given(void* blas, void* lt);

    void* handle;
    char* memory;  // four parts of 64 KiB; arrays of pointers to three of them behind
    static constexpr size_t part = 64 << 10;
    void* operand(int i) const { return memory + static_cast<size_t>(i) * part; }
    void* pointers(int i) const { return memory + 4 * part + static_cast<size_t>(i) * 256; }

    int (*set_pointer_mode)(void*, int);
    int (*set_math_mode)(void*, int);
    int (*make_desc)(void**, int, int);
    int (*free_desc)(void*);
    int (*set_desc)(void*, int, const void*, size_t);
    int (*make_layout)(void**, int, uint64_t, uint64_t, int64_t);
    int (*free_layout)(void*);
    int (*set_layout)(void*, int, const void*, size_t);
};

struct WrongCall {
    std::string function, what;
    bool is_right;
    std::function<int(const Products&, const Given&)> make;
};

std::vector<WrongCall> wrong_calls();

}  // namespace hg::test
