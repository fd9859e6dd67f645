#include "groups.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace hg::fuzz {
namespace {

// What is wrong with groups of rows, if anything.
enum class Odd {
    Nothing,
    Args,
    Size,
    Grouping,
    TransB,
    TypeAb,
    TypeD,
    Count,
    M,
    N,
    K,
    A,
    Lda,
    StrideA,
    B,
    Ldb,
    StrideB,
    D,
    Ldd,
    StrideD,
    Sizes,
    SizesPointer,
    SizesTwice,
    Problems,
    last
};

class DrawGroups {
public:
    explicit DrawGroups(Input& input) : input_(input)
    {
        if (input.byte() >= 128)
            odd_ = static_cast<Odd>(input.below(static_cast<int>(Odd::last)));
    }
    Groups draw();

private:
    bool is_odd(Odd odd) const { return odd_ == odd; }
    int64_t size(Odd odd, int limit)
    {
        return is_odd(odd) ? draw_odd_integer(input_) : input_.byte() % limit;
    }
    int64_t ld(Odd odd, int64_t length)
    {
        if (is_odd(odd))
            return input_.below(2) == 0 ? length - 1 : draw_odd_integer(input_);
        return std::clamp<int64_t>(length, 1, INT64_MAX - 4) + (input_.one_in(2) ? input_.below(4) : 0);
    }
    int64_t stride(Odd odd, const Extent& extent, bool is_output)
    {
        const int64_t span = Extent{extent.lines, extent.length, extent.ld}.span();
        const int kind = input_.below(8);
        if (is_odd(odd))
            return draw_odd_integer(input_);
        return kind == 6 && !is_output ? 0
               : kind == 7             ? -(span + 1)
                                       : std::max<int64_t>(span, 1) + kind % 3;
    }
    template <typename Pointer>
    void spoil(Odd odd, Pointer& pointer)
    {
        if (is_odd(odd))
            pointer = input_.below(2) == 0
                          ? nullptr
                          : reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer) + 1);
    }
    void draw_struct();
    void draw_rows();
    void draw_sizes();
    void point_to_sizes(bool narrow);
    Block make(hgemm_type_t type, const Extent& extent);
    void draw_products();

    Input& input_;
    Groups q_;
    hgemm_grouped_args_t& g_ = q_.g;
    Odd odd_ = Odd::Nothing;
};

void DrawGroups::draw_struct()
{
    constexpr hgemm_grouping_t groupings[] = {HGEMM_GROUPED_CONTIGUOUS, HGEMM_GROUPED_MASKED,
                                              HGEMM_GROUPED_HOST, HGEMM_GROUPED_HOST};
    constexpr int odd_groupings[] = {0, 5, -1, 255, 1 << 30};
    q_.is_null = is_odd(Odd::Args);
    q_.tail = input_.one_in(8) ? 8 * (1 + input_.below(8)) : 0;
    q_.dirty_tail = q_.tail > 0 && input_.one_in(4);
    g_.size = sizeof g_ + static_cast<size_t>(q_.tail);
    if (is_odd(Odd::Size)) {
        constexpr int64_t sizes[] = {0, 8, 100, 284, 5000, 100'000'000'000, INT64_MAX, -1};
        g_.size = static_cast<size_t>(input_.pick(sizes));
    }
    g_.grouping = is_odd(Odd::Grouping) ? static_cast<hgemm_grouping_t>(input_.pick(odd_groupings))
                                        : input_.pick(groupings);
    // An array has no more entries than there are.
    g_.group_count = is_odd(Odd::Count) ? std::min<int64_t>(draw_odd_integer(input_), 0) : input_.below(6);
}

Block DrawGroups::make(hgemm_type_t type, const Extent& extent)
{
    if (type < HGEMM_F16 || type > HGEMM_F32 || extent.span() < 0) {
        q_.has_memory = q_.has_memory && extent.empty();
        return Block(HGEMM_F16, {}, 0);
    }
    Block block(type, extent, input_.below(4));
    block.fill(input_.byte());
    return block;
}

// Right ones, and one of them perhaps another number.
void DrawGroups::draw_sizes()
{
    const bool narrow = input_.one_in(2);
    q_.ends = !q_.is_masked() && input_.one_in(2);
    const int64_t count = std::max<int64_t>(g_.group_count, 0);
    const int64_t length = q_.is_masked() || q_.ends ? count : count + 1,
                  m = std::clamp<int64_t>(g_.m, 0, 64);
    for (int64_t i = 0; i < length; ++i)
        q_.sizes.push_back(input_.byte() % (m + 1));
    if (!q_.is_masked())
        std::sort(q_.sizes.begin(), q_.sizes.end());
    if (is_odd(Odd::Sizes) && length > 0)
        q_.sizes[static_cast<size_t>(input_.below(static_cast<int>(length)))] = draw_odd_integer(input_);
    const size_t bytes = q_.sizes.size() * (narrow ? sizeof(int32_t) : sizeof(int64_t));
    q_.in_memory = std::make_unique<char[]>(bytes);
    if (narrow)
        for (int64_t& size : q_.sizes)
            size = static_cast<int32_t>(size);
    const std::vector<int32_t> narrowed(q_.sizes.begin(), q_.sizes.end());
    if (bytes > 0)
        std::memcpy(q_.in_memory.get(),
                    narrow ? static_cast<const void*>(narrowed.data()) : q_.sizes.data(), bytes);
    point_to_sizes(narrow);
}

void DrawGroups::point_to_sizes(bool narrow)
{
    const void* pointer = q_.in_memory.get();
    spoil(Odd::SizesPointer, pointer);
    const auto* const wide = static_cast<const int64_t*>(pointer);
    const auto* const of_32 = static_cast<const int32_t*>(pointer);
    if (narrow)
        (q_.is_masked() ? g_.counts_i32 : q_.ends ? g_.ends_i32 : g_.offsets_i32) = of_32;
    else
        (q_.is_masked() ? g_.counts : q_.ends ? g_.ends : g_.offsets) = wide;
    if (is_odd(Odd::SizesTwice)) {
        const bool counts =
            q_.is_masked() != input_.one_in(2);  // if not, the members of the other grouping
        (counts ? g_.counts_i32 : g_.ends_i32) = of_32;
        (counts ? g_.counts : g_.offsets) = wide;
    }
}

void DrawGroups::draw_rows()
{
    constexpr hgemm_type_t all[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32}, halves[] = {HGEMM_F16, HGEMM_BF16};
    constexpr hgemm_op_t ops[] = {HGEMM_TRANS, HGEMM_NO_TRANS, HGEMM_CONJ_TRANS};
    constexpr float alphas[] = {1, -1, 2, 0}, betas[] = {0, 1, -1, 0.5f};
    constexpr int odd_enums[] = {0, 3, 4, -1, 100, 110, 114, 65536};
    g_.transb = is_odd(Odd::TransB) ? static_cast<hgemm_op_t>(input_.pick(odd_enums)) : input_.pick(ops);
    g_.type_ab =
        is_odd(Odd::TypeAb) ? static_cast<hgemm_type_t>(input_.pick(odd_enums)) : input_.pick(halves);
    g_.type_d = is_odd(Odd::TypeD) ? static_cast<hgemm_type_t>(input_.pick(odd_enums)) : input_.pick(all);
    g_.m = size(Odd::M, 13);
    g_.n = size(Odd::N, 9);
    g_.k = size(Odd::K, 9);
    g_.alpha = input_.pick(alphas);
    g_.beta = input_.pick(betas);
    g_.lda = ld(Odd::Lda, g_.k);
    g_.ldb = ld(Odd::Ldb, g_.transb == HGEMM_NO_TRANS ? g_.n : g_.k);
    g_.ldd = ld(Odd::Ldd, g_.n);
    g_.stride_a = stride(Odd::StrideA, Extent{g_.m, g_.k, g_.lda}, false);
    g_.stride_b = stride(Odd::StrideB, q_.extent_b(), false);
    g_.stride_d = stride(Odd::StrideD, Extent{g_.m, g_.n, g_.ldd}, true);
    q_.a = make(g_.type_ab, q_.extent_a());
    q_.b = make(g_.type_ab, q_.extent_b());
    q_.d = make(g_.type_d, q_.extent_d());
    g_.a = q_.a.ptr();
    g_.b = q_.b.ptr();
    g_.d = q_.d.ptr();
    spoil(Odd::A, g_.a);
    spoil(Odd::B, g_.b);
    spoil(Odd::D, g_.d);
    draw_sizes();
}

// Their sizes agree, or one is odd; the first one's says how far apart they lie.
void DrawGroups::draw_products()
{
    const int64_t count = std::max<int64_t>(g_.group_count, 0);
    const int tail = input_.one_in(4) ? 8 * (1 + input_.below(8)) : 0;
    for (int64_t i = 0; i < count; ++i) {
        q_.products.push_back(draw_product(input_, test::Form::General));
        Product& p = q_.products.back();
        p.is_null = false;
        if (p.g.size == sizeof p.g + static_cast<size_t>(p.tail))
            p.g.size = sizeof p.g + static_cast<size_t>(tail);
        p.tail = tail;
        p.dirty_tail = p.dirty_tail && tail > 0;
    }
    const size_t step = sizeof(hgemm_args_t) + static_cast<size_t>(tail);
    const size_t length = static_cast<size_t>(count) * (step + most_struct_bytes);
    q_.entries = std::make_unique<unsigned char[]>(length);
    std::memset(q_.entries.get(), foreign_byte, length);
    for (int64_t i = 0; i < count; ++i) {
        const std::vector<unsigned char> copy = q_.products[static_cast<size_t>(i)].bytes();
        std::memcpy(q_.entries.get() + static_cast<size_t>(i) * step, copy.data(), step);
    }
    g_.problems = reinterpret_cast<const hgemm_args_t*>(q_.entries.get());
    if (is_odd(Odd::Problems))
        g_.problems = nullptr;
}

Groups DrawGroups::draw()
{
    draw_struct();
    if (q_.is_host())
        draw_products();
    else
        draw_rows();
    return std::move(q_);
}

}  // namespace

Groups draw_groups(Input& input) { return DrawGroups(input).draw(); }

Groups::Rows Groups::rows(int64_t group) const
{
    const size_t i = static_cast<size_t>(group);
    if (is_masked())
        return {0, sizes[i]};
    const int64_t first = !ends ? sizes[i] : i > 0 ? sizes[i - 1] : 0, end = sizes[ends ? i : i + 1];
    // A difference that does not fit is no count.
    int64_t count = 0;
    return {first, __builtin_sub_overflow(end, first, &count) ? -1 : count};
}

std::vector<Groups::Form> Groups::forms(bool masked) const
{
    if (masked)
        return {{g.counts, "counts"}, {g.counts_i32, "counts_i32"}};
    return {
        {g.offsets, "offsets"}, {g.ends, "ends"}, {g.ends_i32, "ends_i32"}, {g.offsets_i32, "offsets_i32"}};
}

Extent Groups::extent_a() const
{
    return is_masked() ? Extent{g.m, g.k, g.lda, g.group_count, g.stride_a} : Extent{g.m, g.k, g.lda};
}

Extent Groups::extent_b() const
{
    const bool no = g.transb == HGEMM_NO_TRANS;
    return {no ? g.k : g.n, no ? g.n : g.k, g.ldb, g.group_count, g.stride_b};
}

Extent Groups::extent_d() const
{
    return is_masked() ? Extent{g.m, g.n, g.ldd, g.group_count, g.stride_d} : Extent{g.m, g.n, g.ldd};
}

std::string Groups::describe() const
{
    char text[512];
    std::snprintf(text, sizeof text,
                  "grouped size=%zu tail=%d%s grouping=%d transb=%d types=%d,%d groups=%" PRId64 " %" PRId64
                  "x%" PRId64 "x%" PRId64 " alpha=%g beta=%g a=%p lda=%" PRId64 " stride=%" PRId64
                  " b=%p ldb=%" PRId64 " stride=%" PRId64 " d=%p ldd=%" PRId64 " stride=%" PRId64
                  " problems=%p",
                  g.size, tail, dirty_tail ? " (not 0)" : "", g.grouping, g.transb, g.type_ab, g.type_d,
                  g.group_count, g.m, g.n, g.k, double{g.alpha}, double{g.beta}, g.a, g.lda, g.stride_a,
                  g.b, g.ldb, g.stride_b, g.d, g.ldd, g.stride_d, static_cast<const void*>(g.problems));
    std::string all = text;
    for (const bool masked : {false, true})
        for (const Form& form : forms(masked)) {
            std::snprintf(text, sizeof text, " %s=%p", form.name, form.pointer);
            all += text;
        }
    return all;
}

}  // namespace hg::fuzz
