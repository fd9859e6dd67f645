// Each block adds its 64 numbers up. Its author believed that a block is one warp, and left __syncthreads() out.
//   nvcc -lineinfo -cudart shared race.cu -o race
//   ptxrace run ./race
#include <cstdio>

__global__ void add_up(const float* numbers, float* sums)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = numbers[blockIdx.x * 64 + threadIdx.x];
    for (int width = 32; width > 0; width /= 2) {
        if (threadIdx.x < width)
            tile[threadIdx.x] += tile[threadIdx.x + width];
        __syncwarp();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = tile[0];
}

int main()
{
    constexpr int blocks = 4, count = 64 * blocks;
    float *numbers, *sums, ones[count], result[blocks];
    for (float& number : ones)
        number = 1;
    cudaMalloc(&numbers, sizeof ones);
    cudaMalloc(&sums, sizeof result);
    cudaMemcpy(numbers, ones, sizeof ones, cudaMemcpyHostToDevice);
    add_up<<<blocks, 64>>>(numbers, sums);
    const cudaError_t error = cudaMemcpy(result, sums, sizeof result, cudaMemcpyDeviceToHost);
    std::printf("%s, sums %g %g %g %g\n", cudaGetErrorString(error), result[0], result[1], result[2], result[3]);
    return error != cudaSuccess;
}
