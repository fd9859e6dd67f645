#include <hgemm.h>
#include <stdio.h>
#include <string.h>

static hgemm_bfloat16_t to_bf16(float x)  /* the upper half of a float; cuts off what it cannot hold */
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (hgemm_bfloat16_t)(bits >> 16);
}

int main(void)
{
    hgemm_bfloat16_t A[] = {to_bf16(1.5f), to_bf16(2.0f)}, B[] = {to_bf16(4.0f), to_bf16(0.5f)};
    float D;
    hgemm_handle_t handle;
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;  /* D (1 x 1) = A (1 x 2) * B (2 x 1) */
    args.type_ab = HGEMM_BF16; args.type_d = HGEMM_FP32;
    args.m = 1; args.n = 1; args.k = 2;
    args.a = A; args.lda = 2;
    args.b = B; args.ldb = 1;
    args.d = &D; args.ldd = 1;
    if (hgemm_create_on(&handle, HGEMM_DEVICE_HOST) || hgemm_gemm_ex(handle, &args)) {
        puts(hgemm_last_error());
        return 1;
    }
    printf("%g\n", D);  /* 1.5 * 4 + 2 * 0.5 = 7 */
    return hgemm_destroy(handle);
}
