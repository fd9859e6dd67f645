#include "groups.hpp"

#include <algorithm>

namespace hg::fuzz {
namespace {

class JudgeGroups {
public:
    explicit JudgeGroups(const Groups& groups) : q_(groups), g_(groups.g) {}
    Names names();

private:
    void wrong_if(bool condition, const char* name)
    {
        if (condition)
            names_.wrong.push_back(std::string("args->") + name);
    }
    void doubtful_if(bool condition, const char* name)
    {
        if (condition)
            names_.doubtful.push_back(std::string("args->") + name);
    }
    void judge_struct();
    void judge_rows();
    void judge_sizes();
    void judge_pointers();
    void judge_products();

    const Groups& q_;
    const hgemm_grouped_args_t& g_;
    Names names_;
};

void JudgeGroups::judge_struct()
{
    const size_t known = sizeof g_, there = known + static_cast<size_t>(q_.tail);
    wrong_if(g_.size < known || g_.size > there || (g_.size == there && q_.dirty_tail), "size");
    doubtful_if(g_.size % 8 != 0, "size");
    wrong_if(g_.grouping < 1 || g_.grouping > 4, "grouping");
    wrong_if(g_.group_count < 0, "group_count");
}

void JudgeGroups::judge_rows()
{
    const auto shorter = [](int64_t ld, int64_t length) { return ld < std::max<int64_t>(1, length); };
    wrong_if(g_.type_ab != HGEMM_F16 && g_.type_ab != HGEMM_BF16, "type_ab");
    wrong_if(g_.type_d < HGEMM_F16 || g_.type_d > HGEMM_F32, "type_d");
    wrong_if(g_.transb < 111 || g_.transb > 113, "transb");
    wrong_if(g_.m < 0, "m");
    wrong_if(g_.n < 0, "n");
    wrong_if(g_.k < 0, "k");
    wrong_if(shorter(g_.lda, g_.k), "lda");
    wrong_if(shorter(g_.ldd, g_.n), "ldd");
    wrong_if(shorter(g_.ldb, g_.transb == HGEMM_NO_TRANS ? g_.n : g_.k), "ldb");
    const bool several = q_.is_masked() && g_.group_count > 1 && g_.m > 0 && g_.n > 0;
    wrong_if(several && g_.stride_d == 0, "stride_d");
    doubtful_if(several && q_.extent_d().overlaps_itself(), "stride_d");
    doubtful_if(is_far(g_.lda, g_.m, g_.type_ab), "lda");
    doubtful_if(is_far(g_.ldb, q_.extent_b().lines, g_.type_ab), "ldb");
    doubtful_if(is_far(g_.ldd, g_.m, g_.type_d), "ldd");
    doubtful_if(is_far(g_.stride_a, g_.group_count, g_.type_ab), "stride_a");
    doubtful_if(is_far(g_.stride_b, g_.group_count, g_.type_ab), "stride_b");
    doubtful_if(is_far(g_.stride_d, g_.group_count, g_.type_d), "stride_d");
    // More than there is memory for, at most; D may reach over what else there is.
    if (!q_.has_memory)
        for (const char* name : {"d", "lda", "ldb", "ldd", "stride_a", "stride_b", "stride_d"})
            doubtful_if(true, name);
}

void JudgeGroups::judge_sizes()
{
    const std::vector<Groups::Form> forms = q_.forms(q_.is_masked());
    const auto given =
        std::count_if(forms.begin(), forms.end(), [](const auto& form) { return form.pointer; });
    wrong_if(given == 0, forms.front().name);
    bool bad = false;
    for (int64_t i = 0; i < g_.group_count; ++i) {
        const Groups::Rows rows = q_.rows(i);
        bad =
            bad || rows.first < 0 || rows.count < 0 || rows.count > g_.m || rows.first > g_.m - rows.count;
    }
    for (const Groups::Form& form : forms)
        wrong_if(form.pointer && (bad || given > 1 || form.pointer != q_.in_memory.get()), form.name);
    for (const Groups::Form& form : q_.forms(!q_.is_masked()))
        wrong_if(form.pointer, form.name);
}

void JudgeGroups::judge_pointers()
{
    bool has_rows = false;
    for (int64_t i = 0; i < g_.group_count; ++i)
        has_rows = has_rows || q_.rows(i).count > 0;
    const bool writes = has_rows && g_.n > 0, reads = writes && q_.reads();
    const auto judge = [&](const void* pointer, const Block& block, bool is_used, const char* name) {
        const bool bad = pointer != block.ptr();
        wrong_if(bad && is_used, name);
        doubtful_if(bad, name);
    };
    judge(g_.a, q_.a, reads, "a");
    judge(g_.b, q_.b, reads, "b");
    judge(g_.d, q_.d, writes, "d");
}

void JudgeGroups::judge_products()
{
    wrong_if(!g_.problems, "problems");
    if (!g_.problems)
        return;
    const size_t size = q_.products.front().g.size;
    for (size_t i = 0; i < q_.products.size(); ++i) {
        const Product& p = q_.products[i];
        const std::string prefix = "args->problems[" + std::to_string(i) + "].";
        const Verdict verdict = fuzz::judge(p, true);
        const Verdict right{{}, verdict.doubtful};
        for (const std::string& name : names_of(p, {verdict.wrong, {}}, prefix))
            names_.wrong.push_back(name);
        for (const std::string& name : names_of(p, right, prefix))
            names_.doubtful.push_back(name);
        if (p.g.size != size)
            names_.wrong.push_back(prefix + "size");
    }
}

Names JudgeGroups::names()
{
    if (q_.is_null)
        return {{"args"}, {}, false};
    judge_struct();
    names_.anything_goes = g_.group_count == 0 && names_.wrong.empty();
    if (!names_.wrong.empty() || names_.anything_goes)
        return names_;
    if (q_.is_host()) {
        judge_products();
        return names_;
    }
    judge_rows();
    if (!names_.wrong.empty()) {
        judge_sizes();
        return names_;
    }
    judge_sizes();
    judge_pointers();
    return names_;
}

}  // namespace

Names judge(const Groups& groups) { return JudgeGroups(groups).names(); }

}  // namespace hg::fuzz
