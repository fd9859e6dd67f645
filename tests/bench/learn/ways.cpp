// Ways to run products on an H100 or H200, before and after `hgemm-bench ways` measures them. A line for
// each: "m n k layout way us", where k may be KxBATCH, a layout is tn, nn, nt or tt and a way what
// HGEMM_KERNEL takes.
// Products are bf16, and ways that are not allowed are left out.
//   list      reads lines of "m n k layout"; writes the ways that are worth measuring, the best first, with
//             the time that the library expects
//   chosen    reads the same; writes what the library chooses
//   describe  reads measured ways, of batches none; writes what learn.py is told of them in numbers: m, n,
//             k, the layout, the row, microseconds, then what the network of sm90 sees
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/kernels.hpp"
#include "src/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace hg;

// A whole H100 or H200.
Device& device()
{
    static Device d = [] {
        Device whole{};
        whole.cc = 90;
        whole.sm_count = 132;
        whole.smem_per_block = sm90::smem_limit;
        return whole;
    }();
    return d;
}

// "m n k layout" or "m n kxbatch layout".
struct Line {
    int64_t m, n, k, batch;
    std::string layout;

    std::string text() const
    {
        return std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) +
               (batch > 1 ? "x" + std::to_string(batch) : "") + " " + layout;
    }
};

std::istream& operator>>(std::istream& in, Line& line)
{
    line.batch = 1;
    in >> line.m >> line.n >> line.k;
    if (in.peek() == 'x')
        in.ignore() >> line.batch;
    return in >> line.layout;
}

// D = A * B, row-major, packed; nothing is read or written. As in the Fortran BLAS, where D is
// column-major, a layout names the operands' transposes in reverse: in tn both are contiguous along k.
Problem product(const Line& line)
{
    const auto& [m, n, k, batch, layout] = line;
    Problem p{};
    p.m = m;
    p.n = n;
    p.k = k;
    p.batch = batch;
    p.type_ab = p.d.type = Type::BF16;
    p.a = {reinterpret_cast<void*>(0x1000), nullptr, layout[0] == 't' ? k : 1, layout[0] == 't' ? 1 : m, 0};
    p.b = {reinterpret_cast<void*>(0x2000), nullptr, layout[1] == 'n' ? k : 1, layout[1] == 'n' ? 1 : n, 0};
    p.d = {reinterpret_cast<void*>(0x4000), nullptr, n, 0, Type::BF16};
    if (batch > 1) {
        p.a.batch_stride = m * k;
        p.b.batch_stride = n * k;
        p.d.batch_stride = m * n;
    }
    p.alpha = 1;
    p.simplify();
    return p;
}

// The plan that HGEMM_KERNEL=way leads to.
bool force(const Problem& p, const std::string& candidate, Plan& plan)
{
    Options options{};
    options.workspace = size_t{256} << 20;
    options.counters = sm90::counter_words(device(), options.workspace);
    setenv("HGEMM_KERNEL", candidate.c_str(), 1);
    return read_options(options) == ok && sm90::choose(p, device(), options, plan);
}

struct Expected {
    std::string candidate;
    double us;
};

// All ways that are allowed, however slow.
std::vector<Expected> all_ways(const Problem& p)
{
    std::vector<Expected> ways;
    const auto add = [&](const std::string& candidate) {
        if (Plan plan{}; force(p, candidate, plan))
            ways.push_back({candidate, plan.predicted_us});
    };
    for (int row = 0; row < sm90::gemm_count; ++row) {
        const std::string name = sm90::kernels[row].name;
        for (const char* side : {"/swap_ab=0", "/swap_ab=1"}) {
            for (const char* stream_k : {"/stream_k=0", "/stream_k=1"})
                if (!sm90::configs[row].is_split())
                    add(name + side + stream_k + "/pdl=early");
            for (int split = 1; sm90::configs[row].is_split() && split <= sm90::max_slices; ++split)
                for (const char* pdl : {"/pdl=early", "/pdl=late", "/pdl=off"})
                    add(name + "/split=" + std::to_string(split) + side + pdl);
        }
    }
    std::stable_sort(ways.begin(), ways.end(),
                     [](const Expected& x, const Expected& y) { return x.us < y.us; });
    return ways;
}

void list(double within, size_t most)
{
    Line line;
    while (std::cin >> line) {
        const std::vector<Expected> ways = all_ways(product(line));
        for (size_t i = 0; i < std::min(most, ways.size()) && ways[i].us <= within * ways[0].us; ++i)
            std::printf("%s %s %.3f\n", line.text().c_str(), ways[i].candidate.c_str(), ways[i].us);
    }
}

// As HGEMM_KERNEL would ask for it.
std::string way_of(const Plan& plan)
{
    const bool persistent = !sm90::is_direct(plan.kernel) && !sm90::configs[plan.kernel].is_split();
    const std::string stream_k = !persistent          ? "/split=" + std::to_string(plan.split)
                                 : plan.sm90.stream_k ? "/stream_k=1"
                                                      : "/stream_k=0";
    return sm90::kernels[plan.kernel].name + stream_k + (plan.swap_ab ? "/swap_ab=1" : "/swap_ab=0") +
           (!plan.uses_pdl()         ? "/pdl=off"
            : plan.pdl == Pdl::Early ? "/pdl=early"
                                     : "/pdl=late");
}

void list_chosen()
{
    Line line;
    while (std::cin >> line)
        if (Plan plan{}; force(product(line), "", plan))
            std::printf("%s %s %.3f\n", line.text().c_str(), way_of(plan).c_str(), plan.predicted_us);
}

constexpr const char* layouts[] = {"tn", "nn", "nt", "tt"};

bool describe(const Problem& p, int layout, const std::string& text, double us)
{
    Plan plan{};
    if (!force(p, text, plan) || plan.sm90.repack_a || plan.sm90.repack_b)  // its time has the copy's in it
        return false;
    const sm90::Candidate candidate{plan.kernel,        plan.swap_ab, plan.split,
                                    plan.sm90.stream_k, plan.tiles,   !plan.uses_pdl()};
    const Pdl pdl = candidate.pdl_off ? Pdl::Off : plan.pdl == Pdl::Early ? Pdl::Early : Pdl::Late;
    const double predicted =
        sm90::predict(p, sm90::configs[candidate.kernel], candidate, device().sm_count).us;
    float features[sm90::Feature::count];
    sm90::describe(p, sm90::configs[candidate.kernel], candidate, pdl, predicted, device().sm_count,
                   features);
    std::printf("%" PRId64 " %" PRId64 " %" PRId64 " %d %d %.3f", p.m, p.n, p.k, layout, candidate.kernel,
                us);
    for (const float feature : features)
        std::printf(" %.6g", feature);
    std::printf("\n");
    return true;
}

void describe_all()
{
    Line line;
    std::string candidate;
    double us;
    long long left_out = 0;
    while (std::cin >> line >> candidate >> us) {
        const auto* known = std::find(std::begin(layouts), std::end(layouts), line.layout);
        left_out += known == std::end(layouts) || line.batch > 1 ||
                    !describe(product(line), static_cast<int>(known - layouts), candidate, us);
    }
    std::cerr << left_out << " ways left out\n";
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app("Ways to run products on an H100 or H200: from standard input to standard output.");
    int64_t gigabytes = 0;
    app.add_option("--memory", gigabytes, "Its bandwidth by clock and bus, GB/s; an H200's without")
        ->check(CLI::Range(1, 100'000));
    CLI::App* const listing = app.add_subcommand("list", "m n k layout -> ways worth measuring");
    double within = 1.3;
    size_t most = 24;
    listing->add_option("--within", within, "Times what the best one is expected to take")
        ->capture_default_str();
    listing->add_option("--most", most, "Ways a product")->capture_default_str();
    CLI::App* const choosing = app.add_subcommand("chosen", "m n k layout -> what the library chooses");
    app.add_subcommand("describe", "m n k layout candidate us -> remap for learn.py");
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    device().memory_bandwidth = gigabytes * 1'000'000'000;
    if (*listing)
        list(within, most);
    else if (*choosing)
        list_chosen();
    else
        describe_all();
}
