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

// D before the call and as each library made it, and libhgemm's product without C where that may explain
// what cuBLAS did.
struct Results {
    Bytes before, ours, theirs, product;
};

Difference compare(const Output& output, const Results& r, const hgemm_args_t& args, const Causes& causes)
{
    Difference result{.calls = 1};
    double largest = 0, difference = 0;
    output.each([&](size_t problem, size_t at) {
        const float o = output.decode(&r.ours[at]), t = output.decode(&r.theirs[at]);
        if (std::isfinite(o) != std::isfinite(t)) {
            ++result.only_one_is;
        } else if (std::isfinite(t)) {
            largest = std::max(largest, static_cast<double>(std::abs(t)));
            difference = std::max(difference, std::abs(static_cast<double>(o) - static_cast<double>(t)));
        }
        if (o == t || (std::isnan(o) && std::isnan(t)))
            return;
        const bool twice = !r.product.empty() && t == round_again(args, output.decode(&r.product[at]),
                                                                  output.decode(&r.before[at]));
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
void read_product(void* handle, const Place& place, const hgemm_args_t& args, const Output& output,
                  Bytes& product)
{
    if (!may_round_twice(args))
        return;
    hgemm_args_t alone = args;
    alone.beta = 0;
    const bool multiplied = quietly([&] {
        if (multiply(handle, place, alone) == Reason::None && output.read(product))
            return;
        product.clear();
    });
    if (!multiplied)
        product.clear();
}

}  // namespace

std::optional<int> verify(Product product, void* handle, const Place& place, const hgemm_args_t& args,
                          const RealCall& real_call, Reason& reason)
{
    Output output(args, place.stream);
    Results results;
    const bool compares = !driver::is_capturing(place.stream);
    reason = quietly(Reason::NoHandle, [&] {
        const bool ready = !compares || (output.find() && output.read(results.before));
        return ready ? multiply(handle, place, args) : Reason::NoHandle;
    });
    if (!compares || reason != Reason::None)
        return {};
    const bool have_ours = output.read(results.ours);
    if (have_ours)
        read_product(handle, place, args, output, results.product);
    // If D cannot be restored, the real library would read libhgemm's result as its C.
    if (!output.write(results.before))
        return {};
    const int status = real_call();
    if (have_ours && status == status_success && output.read(results.theirs))
        quietly([&] {
            const Causes causes(product, args, place.stream);
            record(std::string(name_of(product)) + " " + describe(args),
                   compare(output, results, args, causes));
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
