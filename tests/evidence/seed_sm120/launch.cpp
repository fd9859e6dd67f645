#include "tests/evidence/seed_sm120/launch.hpp"

#include "src/driver/driver.hpp"
#include "tests/evidence/seed_sm120/params.hpp"

#include <stdexcept>

extern "C" {
extern const unsigned char image_seed_sm120[];
}

namespace hg::seed {
namespace {

using bench::Operands;
using bench::Product;

struct Kernel {
    const char* name;
    int k, stages;
    driver::Kernel f16, bf16;

    int smem_bytes() const { return stages * (stage_bytes(k) + int{sizeof(uint64_t)}); }
};

void check(Status status)
{
    if (status != ok)
        throw std::runtime_error(error_text());
}

bool serves(const Kernel& kernel, const Product& p)
{
    return p.layout == "tt" && p.offset == 0 && p.pad == 0 && p.m % tile_m == 0 && p.n % tile_n == 0 &&
           p.k % kernel.k == 0 && p.k >= (kernel.stages - 1) * kernel.k;
}

// Boxes of `line` elements by `lines` of a matrix whose lines have `columns`.
void encode(const uint16_t* data, Type type, int64_t rows, int64_t columns, int lines, int line,
            CUtensorMap& map)
{
    driver::TensorMapRequest r{};
    r.base = data;
    r.type = type;
    r.size[0] = columns;
    r.size[1] = rows;
    r.size[2] = 1;
    r.stride_bytes[0] = 2 * columns;
    r.stride_bytes[1] = 16;
    r.box[0] = line;
    r.box[1] = lines;
    r.box[2] = 1;
    r.span_bytes = 2 * line;
    check(driver::encode_tensor_map(r, &map));
}

void multiply(const Kernel& kernel, const Product& product, const Operands& operands, CUstream_st* stream)
{
    constexpr int walked_together = 8;
    const auto type = static_cast<Type>(product.type);
    const auto tiles_m = static_cast<int32_t>(product.m / tile_m);
    const auto tiles_n = static_cast<int32_t>(product.n / tile_n);
    Params params{};
    encode(operands.a, type, product.m, product.k, tile_m, kernel.k, params.a);
    encode(operands.b, type, product.k, product.n, kernel.k, 64, params.b);
    params.a_data = operands.a;
    params.b_data = operands.b;
    params.d = static_cast<uint16_t*>(operands.d);
    params.n = static_cast<int32_t>(product.n);
    params.k = static_cast<int32_t>(product.k);
    params.columns_first = tile_grid(tiles_n, tiles_m, walked_together);
    driver::Launch launch{};
    launch.kernel = type == Type::F16 ? kernel.f16 : kernel.bf16;
    launch.grid = static_cast<unsigned>(tiles_m) * static_cast<unsigned>(tiles_n);
    launch.threads = threads;
    launch.smem_bytes = kernel.smem_bytes();
    launch.params = &params;
    check(driver::enqueue(launch, stream));
}

void open(const driver::LoadedImage& image, Kernel& kernel)
{
    const auto get = [&](const char* type, driver::Kernel& entry) {
        const std::string symbol = kernel.name + std::string(type);
        check(driver::get_kernel(image, symbol.c_str(), &entry));
        check(driver::allow_shared_memory(entry, 0, kernel.smem_bytes()));
    };
    get("_f16", kernel.f16);
    get("_bf16", kernel.bf16);
}

}  // namespace

std::vector<bench::OtherKernel> open_kernels()
{
    Kernel kernels[] = {
#define KERNEL(name, copies, k, stages, residents) {#name, k, stages, nullptr, nullptr},
#include "tests/evidence/seed_sm120/kernels.def"
#undef KERNEL
    };
    int devices = 0;
    const char* reason = nullptr;
    check(driver::count_devices(&devices, &reason));
    if (devices == 0)
        throw std::runtime_error(reason);
    driver::LoadedImage* image = nullptr;
    check(driver::load_image(image_seed_sm120, &image));
    std::vector<bench::OtherKernel> others;
    for (Kernel& kernel : kernels) {
        open(*image, kernel);
        others.push_back({kernel.name, [=](const Product& p) { return serves(kernel, p); },
                          [=](const Product& p, const Operands& o, CUstream_st* stream) {
                              multiply(kernel, p, o, stream);
                          }});
    }
    return others;
}

}  // namespace hg::seed
