#include "verify.hpp"

#include "causes.hpp"
#include "describe.hpp"
#include "driver.hpp"
#include "lazy.hpp"
#include "output.hpp"
#include "quietly.hpp"

#include "src/base/decimal.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace hg::shim {
namespace {

struct Difference {
    uint64_t calls = 0;
    double largest = 0;        // relative to the largest element of the same result
    uint64_t only_one_is = 0;  // elements that are finite in one of the two results
    CauseCounts causes{};
};

struct Differences {
    std::mutex mutex;
    std::map<std::string, Difference> by_shape;
};
constinit Lazy<Differences> found;

// One product of a call: its D before the call and as each library made it, and libhgemm's product without
// C where that may explain what cuBLAS did.
struct Compared {
    Compared(const hgemm_args_t& g, void* stream) : args(g), output(g, stream) {}

    const hgemm_args_t& args;
    Output output;
    Bytes before, ours, theirs, product;
};
using Calls = std::vector<Compared>;

bool read_all(Calls& all, Bytes Compared::*to)
{
    return std::ranges::all_of(all, [&](Compared& c) { return c.output.read(c.*to); });
}

bool write_all(const Calls& all, Bytes Compared::*from)
{
    return std::ranges::all_of(all, [&](const Compared& c) { return c.output.write(c.*from); });
}

// False if the results cannot be kept.
bool keep_before(std::span<const hgemm_args_t> products, void* stream, Calls& all)
{
    for (const hgemm_args_t& args : products)
        if (!all.emplace_back(args, stream).output.find())
            return false;
    return read_all(all, &Compared::before);
}

Difference compare(const Compared& c, const Causes& causes)
{
    Difference result{.calls = 1};
    double largest = 0, difference = 0;
    c.output.each([&](size_t problem, size_t at) {
        const auto value = [&](const Bytes& of) { return c.output.decode(&of[at]); };
        const float o = value(c.ours), t = value(c.theirs);
        if (std::isfinite(o) != std::isfinite(t)) {
            ++result.only_one_is;
        } else if (std::isfinite(t)) {
            largest = std::max(largest, static_cast<double>(std::abs(t)));
            difference = std::max(difference, std::abs(static_cast<double>(o) - static_cast<double>(t)));
        }
        if (o == t || (std::isnan(o) && std::isnan(t)))
            return;
        const bool twice =
            !c.product.empty() && t == round_again(c.args, value(c.product), value(c.before));
        ++result.causes[static_cast<size_t>(causes.of({problem, o, t}, twice))];
    });
    result.largest = difference == 0 ? 0 : difference / largest;
    return result;
}

void record(const std::string& shape, const Difference& d)
{
    Differences& all = found.get();
    const std::lock_guard lock(all.mutex);
    Difference& known = all.by_shape[shape];
    known.calls += d.calls;
    known.largest = std::max(known.largest, d.largest);
    known.only_one_is += d.only_one_is;
    for (size_t i = 0; i < cause_count; ++i)
        known.causes[i] += d.causes[i];
}

// alpha * A * B, rounded, in the place of D. Nothing where it explains nothing or was not computed.
void read_product(void* handle, const Place& place, Compared& c)
{
    if (!may_round_twice(c.args))
        return;
    hgemm_args_t alone = c.args;
    alone.beta = 0;
    const bool multiplied = quietly([&] {
        if (multiply(handle, place, {&alone, 1}) == Reason::None && c.output.read(c.product))
            return;
        c.product.clear();
    });
    if (!multiplied)
        c.product.clear();
}

}  // namespace

std::optional<int> verify(Product product, void* handle, const Place& place,
                          std::span<const hgemm_args_t> products, const RealCall& real_call, Reason& reason)
{
    Calls all;
    const bool compares = !driver::is_capturing(place.stream);
    reason = quietly(Reason::NoHandle, [&] {
        const bool ready = !compares || keep_before(products, place.stream, all);
        return ready ? multiply(handle, place, products) : Reason::NoHandle;
    });
    if (!compares || reason != Reason::None)
        return {};
    const bool have_ours = read_all(all, &Compared::ours);
    if (have_ours)
        for (Compared& c : all)
            read_product(handle, place, c);
    // If D cannot be restored, the real library would read libhgemm's result as its C.
    if (!write_all(all, &Compared::before)) {
        if (have_ours)
            write_all(all, &Compared::ours);
        return {};
    }
    const int status = real_call();
    if (have_ours && status == status_success && read_all(all, &Compared::theirs))
        quietly([&] {
            for (const Compared& c : all)
                record(std::string(name_of(product)) + " " + describe(c.args),
                       compare(c, Causes(product, c.args, place.stream)));
        });
    return status;
}

void leave_differences_behind() { found.leave_behind(); }

std::string differences()
{
    std::string text;
    Differences& all = found.get();
    const std::lock_guard lock(all.mutex);
    for (const auto& [shape, d] : all.by_shape) {
        text += "\n  " + shape + ": " + std::to_string(d.calls) + " compared, largest difference " +
                scientific(d.largest, 2).text();
        if (d.only_one_is > 0)
            text += ", " + std::to_string(d.only_one_is) + " elements finite in one alone";
        for (size_t i = 0; i < cause_count; ++i)
            if (d.causes[i] > 0)
                text += "\n    " + std::to_string(d.causes[i]) + " elements differ, " +
                        text_of(static_cast<Cause>(i));
    }
    return text;
}

}  // namespace hg::shim
