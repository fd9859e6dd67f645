// How far fp32 results of sums over many positive numbers lie from the exact ones, in each mode: tensor
// cores cut off what does not fit while they add, so that such results are too small. usage:
// hgemm-deep-sums [k...]     prints CSV; on the GPU, an emulated one, or the CPU
#include "../library.hpp"
#include "../trial.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <vector>

namespace hg::test {
namespace {

constexpr int64_t side = 16;  // of D

GemmCase case_of(hgemm_type_t type, int64_t k)
{
    GemmCase g;
    g.layout = HGEMM_ROW_MAJOR;
    g.transb = HGEMM_TRANS;
    g.type_ab = type;
    g.type_c = g.type_d = HGEMM_F32;
    g.m = g.n = side;
    g.k = k;
    g.aligned = true;
    return g;
}

// The index-th of random numbers between 0 and 1, rounded to the type.
double positive(hgemm_type_t type, uint64_t index)
{
    const uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15u;
    return round_to(type, static_cast<double>((bits ^ bits >> 29) >> 11) * 0x1p-53);
}

struct Errors {
    double mean, most;  // relative; negative: the results are too small
};

Errors errors_of(Library& library, hgemm_type_t type, int64_t k, hgemm_mode_t mode)
{
    const GemmCase g = case_of(type, k);
    const auto a = [&](int64_t, int64_t i, int64_t p) {
        return positive(type, static_cast<uint64_t>(i * k + p));
    };
    const auto b = [&](int64_t, int64_t p, int64_t j) {
        return positive(type, static_cast<uint64_t>((side + j) * k + p));
    };
    Trial trial(g, library.memory());
    trial.fill_a(a);
    trial.fill_b(b);
    trial.upload();
    if (hgemm_set_mode(library.handle(), mode) != HGEMM_STATUS_SUCCESS ||
        library.run(trial.args()) != HGEMM_STATUS_SUCCESS) {
        std::fprintf(stderr, "%s\n", hgemm_last_error());
        std::exit(1);
    }
    trial.download();
    Errors errors{0, 0};
    for (int64_t i = 0; i < side; ++i)
        for (int64_t j = 0; j < side; ++j) {
            double sum =
                0;  // each product has at most 22 bits: the errors of this sum are far below fp32's
            for (int64_t p = 0; p < k; ++p)
                sum += a(0, i, p) * b(0, p, j);
            const double error = (trial.result(0, i, j) - sum) / sum;
            errors.mean += error / (side * side);
            if (std::abs(error) > std::abs(errors.most))
                errors.most = error;
        }
    return errors;
}

}  // namespace
}  // namespace hg::test

int main(int count, char** arguments)
{
    using namespace hg::test;
    std::vector<int64_t> sizes;
    for (int i = 1; i < count; ++i)
        sizes.push_back(std::atoll(arguments[i]));
    if (sizes.empty())
        sizes = {1024, 8192, 65536};
    constexpr const char* modes[] = {"default", "batch-invariant", "tree"};
    Library library(Cuda::get());
    if (!library.created()) {
        std::fprintf(stderr, "%s\n", library.story().c_str());
        return 1;
    }
    std::printf("device,backend,type,k,mode,mean_relative_error,largest_relative_error\n");
    for (const hgemm_type_t type : {HGEMM_F16, HGEMM_BF16})
        for (const int64_t k : sizes)
            for (size_t mode = 0; mode < std::size(modes); ++mode) {
                const Errors errors = errors_of(library, type, k, static_cast<hgemm_mode_t>(mode));
                std::printf("%s,%s,%s,%lld,%s,%.2e,%.2e\n",
                            Cuda::get() ? Cuda::get()->name().c_str() : "CPU",
                            hgemm_backend(library.handle()), name_of(type), static_cast<long long>(k),
                            modes[mode], errors.mean, errors.most);
                std::fflush(stdout);
            }
    return 0;
}
