// Target: hgemm_grouped_ex() in all groupings.
#include "groups.hpp"
#include "host_handle.hpp"
#include "report.hpp"

#include <cstring>

namespace hg::fuzz {
namespace {

constexpr const char* function = "hgemm_grouped_ex";

hgemm_status_t call(const Groups& q)
{
    const size_t bytes = sizeof q.g + static_cast<size_t>(q.tail);
    const auto memory = std::make_unique<unsigned char[]>(bytes);
    std::memcpy(memory.get(), &q.g, sizeof q.g);
    if (q.dirty_tail)
        memory[bytes - 1] = 1;
    return hgemm_grouped_ex(
        host_handle(), q.is_null ? nullptr : reinterpret_cast<const hgemm_grouped_args_t*>(memory.get()));
}

// D before the call, by problem, line and position.
std::vector<double> values_of_d(const Groups& q)
{
    const Extent& e = q.d.extent();
    std::vector<double> values;
    for (int64_t z = 0; !e.empty() && z < e.batch; ++z)
        for (int64_t i = 0; i < e.lines; ++i)
            for (int64_t j = 0; j < e.length; ++j)
                values.push_back(q.d.get(z, i, j));
    return values;
}

double sum_of(const Groups& q, int64_t group, int64_t line, int64_t j)
{
    const int64_t z = q.is_masked() ? group : 0;
    double sum = 0;
    for (int64_t l = 0; q.reads() && l < q.g.k; ++l)
        sum += q.a.get(z, line, l) *
               (q.g.transb == HGEMM_NO_TRANS ? q.b.get(group, l, j) : q.b.get(group, j, l));
    return sum;
}

void check_rows(Groups& q, const std::vector<double>& before)
{
    for (int64_t group = 0; group < q.g.group_count; ++group) {
        const Groups::Rows rows = q.rows(group);
        const int64_t z = q.is_masked() ? group : 0;
        for (int64_t i = rows.first; i < rows.first + rows.count; ++i)
            for (int64_t j = 0; j < q.g.n; ++j) {
                const double d =
                    q.g.beta == 0 ? 0 : before[static_cast<size_t>((z * q.g.m + i) * q.g.n + j)];
                const double sum = sum_of(q, group, i, j);
                q.d.expect(z, i, j, double{q.g.alpha} * sum + double{q.g.beta} * d, 0);
            }
    }
}

void check_untouched(const Groups& q)
{
    if (q.a.exists())
        q.a.check("A");
    if (q.b.exists())
        q.b.check("B");
    if (q.d.exists())
        q.d.check("D");
    for (const Product& p : q.products)
        check_untouched(p);
}

bool has_memory(const Groups& q)
{
    bool has = q.has_memory;
    for (const Product& p : q.products)
        has = has && p.has_memory;
    return has;
}

void check_accepted(Groups& q, const std::vector<std::vector<double>>& before)
{
    if (!q.is_host()) {
        if (!q.is_masked() || !q.d.extent().overlaps_itself()) {
            check_rows(q, before.front());
            check_untouched(q);
        }
        return;
    }
    for (size_t i = 0; i < q.products.size(); ++i)
        if (promises_results(q.products[i]))
            check_results(q.products[i], before[i]);
}

void multiply(Input& input)
{
    Groups q = draw_groups(input);
    note("%s", q.describe().c_str());
    for (const Product& p : q.products)
        note("  %s", p.describe().c_str());
    const Names names = judge(q);
    if (names.wrong.empty() && !names.anything_goes && !has_memory(q))
        return;
    std::vector<std::vector<double>> before;
    if (q.is_host())
        for (const Product& p : q.products)
            before.push_back(has_memory(q) && names.wrong.empty() ? c_before(p) : std::vector<double>());
    else
        before.push_back(values_of_d(q));
    const hgemm_status_t status = call(q);
    if (names.anything_goes && (status == HGEMM_STATUS_SUCCESS || status == HGEMM_STATUS_INVALID_ARGUMENT))
        return check_untouched(q);
    if (status == HGEMM_STATUS_SUCCESS && names.wrong.empty())
        return check_accepted(q, before);
    if (status != HGEMM_STATUS_INVALID_ARGUMENT)
        wrong("answered %s (%s), %s", hgemm_status_string(status), hgemm_last_error(),
              names.wrong.empty() ? "but nothing is wrong"
                                  : ("but this is wrong: " + names.wrong[0]).c_str());
    std::vector<std::string> all = names.wrong;
    all.insert(all.end(), names.doubtful.begin(), names.doubtful.end());
    if (all.empty())
        wrong("refused, but all is right: %s", hgemm_last_error());
    check_error(function, 2, all);
    check_untouched(q);
}

}  // namespace
}  // namespace hg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    hg::fuzz::begin();
    hg::fuzz::Input input(data, size);
    for (int calls = 0; calls < 4 && !input.empty(); ++calls)
        hg::fuzz::multiply(input);
    return 0;
}
