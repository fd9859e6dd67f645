// Candidates for GEMMs on an H100 or H200, before and after `hgemm-bench candidates` measures them. A line
// for each: "m n k layout candidate us", where k may be KxBATCH, a layout is tn, nn, nt or tt and a
// candidate what HGEMM_KERNEL takes.
// GEMMs are bf16, and candidates that are not legal are left out.
//   list      reads lines of "m n k layout"; writes the candidates that are worth measuring, the best
//   first,
//             with the time that the library expects
//   chosen    reads the same; writes what the library chooses
//   describe  reads measured candidates, of batches none; writes what learn.py is told of them in numbers:
//             m, n, k, the layout, the kernel, microseconds, then what the network of sm90 sees
#include "arch/sm90/choose/choose.hpp"
#include "arch/sm90/choose/correction.hpp"
#include "arch/sm90/kernels.hpp"
#include "src/plan/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
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

// The plan that HGEMM_KERNEL=candidate leads to.
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

// All candidates that are legal, however slow.
std::vector<Expected> all_candidates(const Problem& p)
{
    std::vector<Expected> candidates;
    const auto add = [&](const std::string& candidate) {
        if (Plan plan{}; force(p, candidate, plan))
            candidates.push_back({candidate, plan.predicted_us});
    };
    for (int kernel = 0; kernel < sm90::gemm_count; ++kernel) {
        const std::string name = sm90::kernels[kernel].name;
        for (const char* side : {"/swap_ab=0", "/swap_ab=1"}) {
            for (const char* stream_k : {"/stream_k=0", "/stream_k=1"})
                if (!sm90::configs[kernel].is_split())
                    add(name + side + stream_k + "/pdl=early");
            for (int split = 1; sm90::configs[kernel].is_split() && split <= sm90::max_slices; ++split)
                for (const char* pdl : {"/pdl=early", "/pdl=late", "/pdl=off"})
                    add(name + "/split=" + std::to_string(split) + side + pdl);
        }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Expected& x, const Expected& y) { return x.us < y.us; });
    return candidates;
}

void list(double within, size_t most)
{
    Line line;
    while (std::cin >> line) {
        const std::vector<Expected> candidates = all_candidates(product(line));
        for (size_t i = 0;
             i < std::min(most, candidates.size()) && candidates[i].us <= within * candidates[0].us; ++i)
            std::printf("%s %s %.3f\n", line.text().c_str(), candidates[i].candidate.c_str(),
                        candidates[i].us);
    }
}

// As HGEMM_KERNEL would ask for it.
std::string candidate_text(const Plan& plan)
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
            std::printf("%s %s %.3f\n", line.text().c_str(), candidate_text(plan).c_str(),
                        plan.predicted_us);
}

constexpr const char* layouts[] = {"tn", "nn", "nt", "tt"};

bool describe(const Problem& p, int layout, const std::string& text, double us)
{
    Plan plan{};
    // The networks know no direct kernels, and the time of a repacked candidate has the copy's in it.
    if (!force(p, text, plan) || plan.kernel >= sm90::gemm_count || plan.repack_a || plan.repack_b)
        return false;
    const sm90::Candidate candidate{plan.kernel,        plan.swap_ab, plan.split,
                                    plan.sm90.stream_k, plan.tiles,   !plan.uses_pdl()};
    const Pdl pdl = candidate.pdl_off ? Pdl::Off : plan.pdl == Pdl::Early ? Pdl::Early : Pdl::Late;
    const double predicted = sm90::predict(p, candidate, device().sm_count).us;
    float features[sm90::Feature::count];
    sm90::describe(p, candidate, pdl, predicted, device().sm_count, features);
    std::printf("%" PRId64 " %" PRId64 " %" PRId64 " %d %d %.3f", p.m, p.n, p.k, layout, candidate.kernel,
                us);
    for (const float feature : features)
        std::printf(" %.6g", feature);
    std::printf("\n");
    return true;
}

void describe_all()
{
    long long left_out = 0;
    for (std::string text; std::getline(std::cin, text);) {
        if (text.empty() || text[0] == '#')
            continue;
        Line line;
        std::string candidate;
        double us;
        if (!(std::istringstream(text) >> line >> candidate >> us))
            throw std::runtime_error("not \"m n k layout candidate us\": " + text);
        const auto* known = std::find(std::begin(layouts), std::end(layouts), line.layout);
        left_out += known == std::end(layouts) || line.batch > 1 ||
                    !describe(product(line), static_cast<int>(known - layouts), candidate, us);
    }
    std::cerr << left_out << " candidates left out\n";
}

}  // namespace

int main(int argc, char** argv)
try {
    CLI::App app("Candidates for GEMMs on an H100 or H200: from standard input to standard output.");
    int64_t gigabytes = 0;
    app.add_option("--memory", gigabytes, "Its bandwidth by clock and bus, GB/s; an H200's without")
        ->check(CLI::Range(1, 100'000));
    CLI::App* const listing = app.add_subcommand("list", "m n k layout -> candidates worth measuring");
    double within = 1.3;
    size_t most = 24;
    listing->add_option("--within", within, "Times what the best one is expected to take")
        ->capture_default_str();
    listing->add_option("--most", most, "Candidates a GEMM")->capture_default_str();
    CLI::App* const choosing = app.add_subcommand("chosen", "m n k layout -> what the library chooses");
    app.add_subcommand("describe", "m n k layout candidate us -> numbers for learn.py");
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    device().memory_bandwidth = gigabytes * 1'000'000'000;
    if (*listing)
        list(within, most);
    else if (*choosing)
        list_chosen();
    else
        describe_all();
    return 0;
} catch (const std::exception& error) {
    std::cerr << "hgemm-candidates: " << error.what() << '\n';
    return 2;
}
