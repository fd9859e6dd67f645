#include "counts.hpp"

#include "hgemm_shim.h"
#include "quietly.hpp"
#include "real.hpp"
#include "settings.hpp"
#include "verify.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <numeric>

namespace hg::shim {
namespace {

constexpr int products = static_cast<int>(Product::count), reasons = static_cast<int>(Reason::count);
constexpr const char* names[] = {
#define HGEMM_REAL(library, name, type) #name,
#include "products.def"
#undef HGEMM_REAL
};

using Count = std::atomic<uint64_t>;
using Counts = Count[reasons];  // by reason; the reason None counts served calls

Counts counts[products];

// Of all functions: half-precision products in batch-invariant mode whose result is cuBLAS's (None: because
// of HGEMM_SHIM=verify), and products that were refused in strict mode.
Counts left_to_cublas, refused;

uint64_t value(const Count& count) { return count.load(std::memory_order_relaxed); }

uint64_t sum_from(int first, const Counts& list)
{
    return std::accumulate(list + first, list + reasons, uint64_t{0},
                           [](uint64_t sum, const Count& count) { return sum + value(count); });
}

uint64_t served(int product) { return value(counts[product][0]); }
uint64_t passed_on(int product) { return sum_from(1, counts[product]); }

uint64_t total(uint64_t (*part)(int))
{
    uint64_t sum = 0;
    for (int product = 0; product < products; ++product)
        sum += part(product);
    return sum;
}

void add_reasons(std::string& text, int width, int first, const Counts& list)
{
    char line[160];
    for (int reason = first; reason < reasons; ++reason)
        if (const uint64_t n = value(list[reason])) {
            std::snprintf(line, sizeof line, "\n%*llu: %s", width, static_cast<unsigned long long>(n),
                          reason == 0 ? "HGEMM_SHIM=verify" : text_of(static_cast<Reason>(reason)));
            text += line;
        }
}

void add_product(std::string& text, int product)
{
    char line[160];
    std::snprintf(line, sizeof line, "\n  %-32s%10llu served%10llu passed on", names[product],
                  static_cast<unsigned long long>(served(product)),
                  static_cast<unsigned long long>(passed_on(product)));
    text += line;
    add_reasons(text, 61, 1, counts[product]);
}

void add_list(std::string& text, const char* heading, const Counts& list)
{
    text += "\n  " + std::to_string(sum_from(0, list)) + " half-precision products " + heading;
    add_reasons(text, 10, 0, list);
}

// A program that wants strict mode must not believe that it had it.
std::string last_words()
{
    const std::string text = summary(), unseen = text.empty() ? find_unseen() : "";
    if (unseen.empty())
        return logs(LogLevel::Summary) ? text : "";
    return unseen + " is loaded, but none of its products came through the shim: there was none, or the " +
           "program finds the functions by dlsym() or binds them deeply (README.md, Limits)";
}

[[gnu::destructor]] void print_summary()
{
    if (!logs(LogLevel::Summary) && !current_settings().strict)
        return;
    const std::string text = quietly(std::string(), last_words);
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        log_line("%.*s", static_cast<int>(end - begin), text.data() + begin);
        begin = end + 1;
    }
}

}  // namespace

const char* name_of(Product product) { return names[static_cast<int>(product)]; }

bool count(Product product, const Outcome& outcome)
{
    const auto add = [](Count& count) { return count.fetch_add(1, std::memory_order_relaxed); };
    const auto why = static_cast<int>(outcome.reason);
    if (outcome.refused)
        return add(refused[why]) == 0;
    add(counts[static_cast<int>(product)][why]);
    if (outcome.left_to_cublas)
        add(left_to_cublas[why]);
    return false;
}

void reset_counts()
{
    const auto reset = [](Counts& list) { std::ranges::fill(list, 0); };
    std::ranges::for_each(counts, reset);
    reset(left_to_cublas);
    reset(refused);
}

std::string summary()
{
    const uint64_t all_refused = sum_from(0, refused);
    if (total(served) + total(passed_on) + all_refused == 0)
        return {};
    char line[160];
    std::snprintf(line, sizeof line, "%llu products of cuBLAS served, %llu passed on (HGEMM_SHIM=%s)",
                  static_cast<unsigned long long>(total(served)),
                  static_cast<unsigned long long>(total(passed_on)), value_of("HGEMM_SHIM"));
    std::string text = line;
    for (int product = 0; product < products; ++product)
        if (served(product) + passed_on(product) > 0)
            add_product(text, product);
    const Settings settings = current_settings();
    if (settings.is_batch_invariant() || sum_from(0, left_to_cublas) > 0)
        add_list(text, "came from cuBLAS in batch-invariant mode: their bits may depend on the batch",
                 left_to_cublas);
    if (settings.strict || all_refused > 0)
        add_list(text, "refused (HGEMM_SHIM_STRICT)", refused);
    return text + differences();
}

}  // namespace hg::shim

using namespace hg::shim;

extern "C" uint64_t hgemm_shim_served(void) { return total(served); }

extern "C" uint64_t hgemm_shim_passed_on(void) { return total(passed_on); }

extern "C" size_t hgemm_shim_summary(char* text, size_t length)
{
    const std::string full = quietly(std::string(), summary);
    if (text && length > 0) {
        const size_t end = full.copy(text, length - 1);
        text[end] = '\0';
    }
    return full.size();
}
