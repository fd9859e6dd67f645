/*
 * A linear layer on a GPU: D = A * transpose(W) of row-major bf16 matrices, D in fp32, checked against a
 * loop.
 *
 *   cc -std=c99 example_gpu.c $(pkg-config --cflags --libs hgemm) -I/usr/local/cuda/include -lcuda \
 *       -o example_gpu && ./example_gpu
 *
 * The memory and the stream are the CUDA driver's here; those of cudaMalloc() and cudaStreamCreate() are
 * passed in the same way.
 */
#include <cuda.h>
#include <hgemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { m = 64, n = 48, k = 80 };

/* Ends the program when a call of the CUDA driver, or of libhgemm, has failed. */
static void check_cuda(CUresult result, const char *call)
{
    const char *text = "unknown error";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorString(result, &text);
    fprintf(stderr, "%s: %s\n", call, text);
    exit(1);
}
static void check_hgemm(hgemm_status_t status, const char *call)
{
    if (status == HGEMM_STATUS_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", call, hgemm_last_error());
    exit(1);
}
#define CUDA(call)  check_cuda(call, #call)
#define HGEMM(call) check_hgemm(call, #call)

/* A bf16 number is the upper half of a float. What is converted here needs no rounding. */
static hgemm_bfloat16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (hgemm_bfloat16_t)(bits >> 16);
}

/* Whole numbers, so that every sum is exact. */
static float value_of_a(int i, int p) { return (float)((i + 3 * p) % 7 - 3); }
static float value_of_w(int j, int p) { return (float)((2 * j + p) % 5 - 2); }

/* Elements of D that are not the sum that they should be. */
static int count_wrong(const float *D)
{
    int wrong = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int p = 0; p < k; ++p)
                sum += value_of_a(i, p) * value_of_w(j, p);
            wrong += D[i * n + j] != sum;
        }
    return wrong;
}

int main(void)
{
    static hgemm_bfloat16_t A[m * k], W[n * k];
    static float D[m * n];
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUdeviceptr dev_a, dev_w, dev_d;
    hgemm_handle_t handle;
    hgemm_args_t args;

    for (int p = 0; p < k; ++p) {
        for (int i = 0; i < m; ++i)
            A[i * k + p] = bf16_of(value_of_a(i, p));
        for (int j = 0; j < n; ++j)
            W[j * k + p] = bf16_of(value_of_w(j, p));
    }

    CUDA(cuInit(0));
    CUDA(cuDeviceGet(&device, 0));
    CUDA(cuDevicePrimaryCtxRetain(&context, device));
    CUDA(cuCtxSetCurrent(context));
    CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUDA(cuMemAlloc(&dev_a, sizeof A));
    CUDA(cuMemAlloc(&dev_w, sizeof W));
    CUDA(cuMemAlloc(&dev_d, sizeof D));
    CUDA(cuMemcpyHtoDAsync(dev_a, A, sizeof A, stream));
    CUDA(cuMemcpyHtoDAsync(dev_w, W, sizeof W, stream));

    /* By its number: hgemm_create() would take the CPU where there is no GPU. */
    HGEMM(hgemm_create_on(&handle, 0));
    HGEMM(hgemm_set_stream(handle, stream));
    printf("%s\nbackend: %s\n", hgemm_build_info(), hgemm_backend(handle));

    hgemm_args_init(&args, sizeof args);
    args.layout = HGEMM_ROW_MAJOR;
    args.transb = HGEMM_TRANS;
    args.type_ab = HGEMM_BF16;
    args.type_c = args.type_d = HGEMM_F32;
    args.m = m;
    args.n = n;
    args.k = k;
    args.a = (const void *)(uintptr_t)dev_a;
    args.lda = k;
    args.b = (const void *)(uintptr_t)dev_w;
    args.ldb = k;
    args.d = (void *)(uintptr_t)dev_d;
    args.ldd = n;
    /* Returns before the product is computed; the copy behind it on the stream waits for it. */
    HGEMM(hgemm_gemm_ex(handle, &args));
    CUDA(cuMemcpyDtoHAsync(D, dev_d, sizeof D, stream));
    CUDA(cuStreamSynchronize(stream));

    HGEMM(hgemm_destroy(handle));
    CUDA(cuMemFree(dev_a));
    CUDA(cuMemFree(dev_w));
    CUDA(cuMemFree(dev_d));
    CUDA(cuStreamDestroy(stream));
    CUDA(cuDevicePrimaryCtxRelease(device));

    printf("%s\n", count_wrong(D) == 0 ? "correct" : "WRONG");
    return count_wrong(D) != 0;
}
