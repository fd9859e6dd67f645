// What the stand-ins for libcublas and libcublasLt share: both multiply by launch().
#pragma once

#include "src/tools/support/number.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fake {

constexpr int success = 0, invalid = 7, refused = 15;
constexpr int compute_32f = 68, r_32f = 0, r_16f = 2, r_16bf = 14;
constexpr size_t workspace_wanted = size_t{64} << 20;

enum Epilogue : uint32_t { Default = 1, Relu = 2, Bias = 4, Gelu = 32, Aux = 128 };

struct Operation {
    int first = 0, second = 0, bias_type = -1;
    uint32_t epilogue = Default;
    const void* bias = nullptr;
    void* aux = nullptr;
    int64_t ldaux = 0, stride_aux = 0;
};
struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch = 1;
    int64_t stride = 0;
};

inline hgemm_type_t type_of(int type)
{
    return type == r_32f ? HGEMM_F32 : type == r_16f ? HGEMM_F16 : HGEMM_BF16;
}

struct Matrix {
    const void* data;
    Layout layout;
    int op;  // 1: transposed

    double at(int64_t row, int64_t column) const
    {
        const int64_t place = op == 1 ? column + row * layout.ld : row + column * layout.ld;
        return hg::test::decode(type_of(layout.type), static_cast<const uint16_t*>(data)[place]);
    }
    uint64_t rows() const { return op == 1 ? layout.columns : layout.rows; }
    uint64_t columns() const { return op == 1 ? layout.rows : layout.columns; }
    bool has_room() const { return layout.ld >= static_cast<int64_t>(layout.rows); }
};

// Do the sizes fit each other?
bool match(const Matrix& a, const Matrix& b, const Layout& out);

// Puts the product on the stream, as something that takes `delay` longer than it must.
int launch(const Operation& o, const Matrix& a, const Matrix& b, double beta, void* d, const Layout& out,
           void* stream, std::chrono::microseconds delay = {});

inline float value_of(const void* scalar) { return *static_cast<const float*>(scalar); }

template <typename T>
int create(void** out, T value)
{
    *out = new T(value);
    return success;
}
template <typename T>
int destroy(void* object)
{
    delete static_cast<T*>(object);
    return success;
}

}  // namespace fake
