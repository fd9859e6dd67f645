// Small operands for tests of arguments.
#pragma once

#include "../library.hpp"

#include "hgemm.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hg::test {

inline constexpr int64_t m = 6, n = 7, k = 8, count = 3;

// Valid operands for any form, and a call that writes them.
class Operands {
public:
    explicit Operands(Form form, hgemm_type_t type = HGEMM_F16)
        : arrays{}, a(count * m * k, 0x3c00), b(count * k * n, 0x3c00), d(count * m * n, 0x1234), aux(d),
          bias(count * m)
    {
        hgemm_args_init(&args, sizeof args);
        args.type_ab = args.type_c = args.type_d = type;
        args.m = m;
        args.n = n;
        args.k = k;
        args.beta = 1;
        args.a = a.data();
        args.b = b.data();
        args.c = args.d = d.data();
        args.lda = m;
        args.ldb = k;
        args.ldc = args.ldd = m;
        if (form == Form::Strided || form == Form::General) {
            args.batch_count = count;
            args.stride_a = m * k;
            args.stride_b = k * n;
            args.stride_c = args.stride_d = m * n;
        }
        if (form == Form::Batched) {
            args.batch_count = count;
            for (int64_t z = 0; z < count; ++z) {
                arrays[0][z] = &a[static_cast<size_t>(z * m * k)];
                arrays[1][z] = &b[static_cast<size_t>(z * k * n)];
                arrays[2][z] = &d[static_cast<size_t>(z * m * n)];
            }
            args.a_array = arrays[0];
            args.b_array = arrays[1];
            args.c_array = args.d_array = arrays[2];
        }
        if (form == Form::General) {
            args.bias_mode = HGEMM_BIAS_M;
            args.bias_type = HGEMM_F32;
            args.bias = bias.data();
            args.aux = aux.data();
            args.ldaux = m;
            args.stride_aux = m * n;
        }
    }
    Operands(const Operands&) = delete;
    Operands& operator=(const Operands&) = delete;

    bool untouched() const
    {
        const auto is_old = [](uint16_t x) { return x == 0x1234; };
        return std::all_of(d.begin(), d.end(), is_old) && std::all_of(aux.begin(), aux.end(), is_old);
    }

    hgemm_args_t args;
    void* arrays[3][count];  // where the form has them: of A, of B, of C and D

private:
    std::vector<uint16_t> a, b, d, aux;
    std::vector<float> bias;
};

}  // namespace hg::test
