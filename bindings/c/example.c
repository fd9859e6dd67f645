/*
 * Multiplies two small fp16 matrices on the CPU and checks the result against a loop.
 *
 *   cc -std=c99 example.c $(pkg-config --cflags --libs hgemm) -o example && ./example
 *
 * A GPU handle, from hgemm_create(), is used in the same way with device pointers.
 */
#include <hgemm.h>

#include <stdio.h>
#include <string.h>

enum { m = 3, n = 4, k = 5 };

/* fp16 has 5 exponent bits (bias 15) and 10 mantissa bits where a float has 8 (bias 127) and 23. These
   two are exact for zero and for the normal numbers of few bits that are used here. */
static hgemm_half_t half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value == 0.0f)
        return (hgemm_half_t)(bits >> 16);
    return (hgemm_half_t)((bits >> 16 & 0x8000) | ((bits & 0x7fffffff) - ((127u - 15u) << 23)) >> 13);
}

static float float_of(hgemm_half_t half)
{
    uint32_t bits = (uint32_t)(half & 0x8000) << 16;
    float value;
    if (half & 0x7fff)
        bits |= ((uint32_t)(half & 0x7fff) << 13) + ((127u - 15u) << 23);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, hgemm_last_error());
    return 1;
}

int main(void)
{
    /* Column-major, and both contiguous along k, which is what _tn wants: A is k x m, B is k x n. */
    hgemm_half_t A[k * m], B[k * n], C[m * n];
    hgemm_handle_t handle;
    int i, j, p, wrong = 0;

    for (i = 0; i < k * m; ++i)
        A[i] = half_of(0.25f * (float)(i % 7 - 3));
    for (i = 0; i < k * n; ++i)
        B[i] = half_of(0.5f * (float)(i % 9 - 4));

    if (hgemm_create_on(&handle, HGEMM_DEVICE_HOST) != HGEMM_STATUS_SUCCESS)
        return failed("hgemm_create_on");
    printf("%s\nbackend: %s\n", hgemm_build_info(), hgemm_backend(handle));

    /* C (m x n) = 1 * transpose(A) * B + 0 * C */
    if (hgemm_tn(handle, m, n, k, 1.0f, A, k, B, k, 0.0f, C, m) != HGEMM_STATUS_SUCCESS)
        return failed("hgemm_tn");
    hgemm_destroy(handle);

    for (i = 0; i < m; ++i) {
        for (j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (p = 0; p < k; ++p)
                sum += float_of(A[p + i * k]) * float_of(B[p + j * k]);
            wrong += float_of(C[i + j * m]) != sum;
            printf("%8.3f", float_of(C[i + j * m]));
        }
        printf("\n");
    }
    printf("%s\n", wrong ? "WRONG" : "correct");
    return wrong != 0;
}
