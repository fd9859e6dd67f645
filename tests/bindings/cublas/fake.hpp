// Stand-ins for libcublas and libcublasLt with their names and version nodes, that record what is called
// and multiply device memory on the host. What a test asks them and tells them is at the end.
#pragma once

#include <cstddef>
#include <cstdint>

// What cublasCreate_v2 makes; it passes for a handle of cublasLt.
struct FakeHandle {
    void* stream = nullptr;
    int pointer_mode = 0, math_mode = 0, sm_count = 0;
};

struct FakeProduct {
    int transa, transb;
    int64_t m, n, k;
    const void *alpha, *beta;
    bool scalars_on_device, half_scalars;
    const void* a;
    int64_t lda;
    const void* b;
    int64_t ldb;
    const void* c;
    int64_t ldc;
    void* d;
    int64_t ldd;
    int type_ab, type_d;
};

extern "C" {
// D = alpha * op(A) * op(B) + beta * C, waiting for the stream first.
int fake_multiply(const FakeProduct& product, void* stream);
void fake_record(const char* name);
// From the device, behind what is on the stream.
void fake_read(void* host, const void* device, size_t bytes, void* stream);

// Names of the functions called since the last time, with a blank behind each.
size_t fake_calls(char* text, size_t length);
// cublasGemmEx asks cublasLtMatmul for its products, as the real one does at times.
void fake_set_nested(int nested);
// Results come out as many times too large.
void fake_set_error(double factor);
// The product is rounded before C is added, as the real library does with beta = 1.
void fake_set_rounds_twice(int rounds_twice);
int fake_is_nested();
// The next cublasDestroy_v2 calls this when the handle is gone, before it returns.
void fake_set_after_destroy(void (*call)(void* data), void* data);
// What cublasGetProperty answers; FAKE_CUBLAS_MAJOR sets it as well.
int fake_major();
}
