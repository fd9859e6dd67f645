#include "counts.hpp"

#include "hgemm_shim.h"
#include "quietly.hpp"
#include "settings.hpp"
#include "verify.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace hg::shim {
namespace {

constexpr int products = static_cast<int>(Product::count), reasons = static_cast<int>(Reason::count);
constexpr const char* names[] = {
#define HGEMM_REAL(library, name, type) #name,
#include "products.def"
#undef HGEMM_REAL
};

// [function][reason]; the reason None counts served calls.
std::atomic<uint64_t> counts[products][reasons];

uint64_t served(int product) { return counts[product][0].load(std::memory_order_relaxed); }

uint64_t passed_on(int product)
{
    uint64_t sum = 0;
    for (int reason = 1; reason < reasons; ++reason)
        sum += counts[product][reason].load(std::memory_order_relaxed);
    return sum;
}

uint64_t total(uint64_t (*part)(int))
{
    uint64_t sum = 0;
    for (int product = 0; product < products; ++product)
        sum += part(product);
    return sum;
}

void add_product(std::string& text, int product)
{
    char line[160];
    std::snprintf(line, sizeof line, "\n  %-32s%10llu served%10llu passed on", names[product],
                  static_cast<unsigned long long>(served(product)),
                  static_cast<unsigned long long>(passed_on(product)));
    text += line;
    for (int reason = 1; reason < reasons; ++reason)
        if (const uint64_t n = counts[product][reason].load(std::memory_order_relaxed)) {
            std::snprintf(line, sizeof line, "\n  %-32s%17s%10llu: %s", "", "",
                          static_cast<unsigned long long>(n), text_of(static_cast<Reason>(reason)));
            text += line;
        }
}

[[gnu::destructor]] void print_summary()
{
    if (!logs(LogLevel::Summary))
        return;
    const std::string text = quietly(std::string(), summary);
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        log_line("%.*s", static_cast<int>(end - begin), text.data() + begin);
        begin = end + 1;
    }
}

}  // namespace

const char* name_of(Product product) { return names[static_cast<int>(product)]; }

void count(Product product, Reason reason)
{
    counts[static_cast<int>(product)][static_cast<int>(reason)].fetch_add(1, std::memory_order_relaxed);
}

void reset_counts()
{
    for (auto& product : counts)
        for (auto& reason : product)
            reason = 0;
}

std::string summary()
{
    if (total(served) + total(passed_on) == 0)
        return {};
    char line[160];
    std::snprintf(line, sizeof line, "%llu products of cuBLAS served, %llu passed on (HGEMM_SHIM=%s)",
                  static_cast<unsigned long long>(total(served)),
                  static_cast<unsigned long long>(total(passed_on)), name_of(mode()));
    std::string text = line;
    for (int product = 0; product < products; ++product)
        if (served(product) + passed_on(product) > 0)
            add_product(text, product);
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
