// What learn.py is told of measured ways: reads lines of "m n k layout way us", where a layout is tn, nn,
// nt or tt and a way what HGEMM_KERNEL takes, and writes a line of numbers each: m, n, k, the layout, the
// row, microseconds, then what the network of sm90 sees. Products are bf16. Ways that are not allowed are
// left out.
#include "arch/sm90/learned.hpp"
#include "arch/sm90/rows.hpp"
#include "src/handle.hpp"
#include "src/options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

namespace {

using namespace hg;

Device whole_h200()
{
    Device d{};
    d.cc = 90;
    d.sm_count = 132;
    d.smem_per_block = sm90::smem_limit;
    return d;
}

// D = A * B, row-major, packed; nothing is read or written. As in the Fortran BLAS, where D is
// column-major, a layout names the operands' transposes in reverse: in tn both are contiguous along k.
Problem product(int64_t m, int64_t n, int64_t k, const std::string& layout)
{
    Problem p{};
    p.m = m;
    p.n = n;
    p.k = k;
    p.batch = 1;
    p.type_ab = p.d.type = Type::BF16;
    p.a = {reinterpret_cast<void*>(0x1000), nullptr, layout[0] == 't' ? k : 1, layout[0] == 't' ? 1 : m, 0};
    p.b = {reinterpret_cast<void*>(0x2000), nullptr, layout[1] == 'n' ? k : 1, layout[1] == 'n' ? 1 : n, 0};
    p.d = {reinterpret_cast<void*>(0x4000), nullptr, n, 0, Type::BF16};
    p.alpha = 1;
    return p;
}

constexpr const char* layouts[] = {"tn", "nn", "nt", "tt"};

bool write(const Problem& p, int layout, const char* text, double us)
{
    static const Device h200 = whole_h200();
    Options options{};
    options.workspace = size_t{256} << 20;
    options.counters = counter_words_of(options.workspace, h200.sm_count);
    setenv("HGEMM_KERNEL", text, 1);
    Plan plan{};
    if (read_options(options) != ok || !sm90::choose(p, h200, options, plan))
        return false;
    const sm90::Way way{plan.row, plan.swapped, plan.split, plan.streams, plan.tiles, !plan.overlaps};
    const Overlap overlap = way.alone ? Overlap::None : plan.early ? Overlap::Early : Overlap::Late;
    const double predicted = sm90::predict(p, sm90::configs[way.row], way, h200.sm_count).us;
    float features[sm90::Feature::count];
    sm90::describe(p, sm90::configs[way.row], way, overlap, predicted, h200.sm_count, features);
    std::printf("%lld %lld %lld %d %d %.3f", static_cast<long long>(p.m), static_cast<long long>(p.n),
                static_cast<long long>(p.k), layout, way.row, us);
    for (const float feature : features)
        std::printf(" %.6g", feature);
    std::printf("\n");
    return true;
}

}  // namespace

int main()
{
    int64_t m, n, k;
    std::string layout, way;
    double us;
    long long left_out = 0;
    while (std::cin >> m >> n >> k >> layout >> way >> us) {
        const auto* known = std::find(std::begin(layouts), std::end(layouts), layout);
        left_out += known == std::end(layouts) ||
                    !write(product(m, n, k, layout), static_cast<int>(known - layouts), way.c_str(), us);
    }
    std::cerr << left_out << " ways left out\n";
}
