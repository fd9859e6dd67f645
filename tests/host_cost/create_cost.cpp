// What creating a handle takes in a process that has the driver and a context, and, for --image, the parts
// of it: images that are loaded and kernels that are taken out of them, one image after the other or side
// by side.
#include "entry_points.hpp"

#include <hgemm.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cuda.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace {

#define DRIVER_CALLS(X)                                                                                    \
    X(cuInit)                                                                                              \
    X(cuDevicePrimaryCtxRetain)                                                                            \
    X(cuCtxSetCurrent)                                                                                     \
    X(cuLibraryLoadData)                                                                                   \
    X(cuLibraryGetKernelCount)                                                                             \
    X(cuLibraryEnumerateKernels)                                                                           \
    X(cuKernelSetAttribute)

struct Calls {
#define MEMBER(name) decltype(&::name) name;
    DRIVER_CALLS(MEMBER)
#undef MEMBER
} cu;

#define CHECK(name, ...) hg::cost::check(cu.name ? cu.name(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND, #name)

void load_driver()
{
    const hg::cost::EntryPoints driver;
    constexpr int version = 12040;  // has the kernels of a library counted
#define FIND(name) driver.find(#name, version, cu.name);
    DRIVER_CALLS(FIND)
#undef FIND
}

template <typename Work>
double milliseconds(const Work& work)
{
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

CUcontext start_driver()
{
    CUcontext context = nullptr;
    fmt::print("{:<32}{:>10.3f} ms\n", "driver, cuInit", milliseconds([] {
                   load_driver();
                   CHECK(cuInit, 0);
               }));
    fmt::print("{:<32}{:>10.3f} ms\n", "primary context", milliseconds([&] {
                   CHECK(cuDevicePrimaryCtxRetain, &context, 0);
                   CHECK(cuCtxSetCurrent, context);
               }));
    return context;
}

hgemm_handle_t create(const char* which)
{
    hgemm_handle_t handle = nullptr;
    const double ms = milliseconds([&] {
        if (hgemm_create(&handle) != HGEMM_STATUS_SUCCESS)
            throw std::runtime_error(hgemm_last_error());
    });
    fmt::print("{:<32}{:>10.3f} ms\n", which, ms);
    return handle;
}

void time_handles()
{
    start_driver();
    const hgemm_handle_t first = create("first handle");
    const hgemm_handle_t second = create("second handle");
    hgemm_destroy(first);
    hgemm_destroy(second);
    hgemm_destroy(create("again, when both are destroyed"));
}

struct Image {
    std::string path, bytes;
    unsigned kernels = 0;
    double load_ms = 0, find_ms = 0, attribute_ms = 0;
};

void take_apart(Image& image, CUcontext context)
{
    CHECK(cuCtxSetCurrent, context);
    CUlibrary library = nullptr;
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void* value = reinterpret_cast<void*>(1);
    image.load_ms = milliseconds([&] {
        CHECK(cuLibraryLoadData, &library, image.bytes.data(), nullptr, nullptr, 0, &option, &value, 1);
    });
    std::vector<CUkernel> kernels;
    image.find_ms = milliseconds([&] {
        CHECK(cuLibraryGetKernelCount, &image.kernels, library);
        kernels.resize(image.kernels);
        CHECK(cuLibraryEnumerateKernels, kernels.data(), image.kernels, library);
    });
    constexpr int bytes = 64 << 10;
    image.attribute_ms = milliseconds([&] {
        for (const CUkernel kernel : kernels)
            CHECK(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, kernel, 0);
    });
}

void time_images(const std::vector<std::string>& paths, bool side_by_side)
{
    std::vector<Image> images;
    for (const std::string& path : paths) {
        std::ifstream file(path, std::ios::binary);
        images.push_back({path, {std::istreambuf_iterator<char>(file), {}}});
    }
    const CUcontext context = start_driver();
    const double all = milliseconds([&] {
        std::vector<std::future<void>> parts;
        for (Image& image : images)
            parts.push_back(std::async(side_by_side ? std::launch::async : std::launch::deferred,
                                       take_apart, std::ref(image), context));
        for (std::future<void>& part : parts)
            part.get();
    });
    fmt::print("{:<32}{:>10}{:>10}{:>12}{:>12}{:>14}\n", "image", "MB", "kernels", "load ms", "find ms",
               "attribute ms");
    for (const Image& image : images)
        fmt::print("{:<32}{:>10.2f}{:>10}{:>12.3f}{:>12.3f}{:>14.3f}\n",
                   std::filesystem::path(image.path).filename().string(),
                   static_cast<double>(image.bytes.size()) / 1e6, image.kernels, image.load_ms,
                   image.find_ms, image.attribute_ms);
    fmt::print("{:<32}{:>10.3f} ms\n", side_by_side ? "all, side by side" : "all, in turn", all);
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app("Times the creation of handles on device 0, or of its parts for images by themselves.");
    std::vector<std::string> images;
    bool side_by_side = false;
    app.add_option("--image", images, "Fatbins, arch/*.fatbin in the build folder")
        ->check(CLI::ExistingFile);
    app.add_flag("--side-by-side", side_by_side, "A thread an image");
    CLI11_PARSE(app, argc, argv);
    try {
        if (images.empty())
            time_handles();
        else
            time_images(images, side_by_side);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "hgemm-create-cost: {}\n", error.what());
        return 1;
    }
}
