#include "product.hpp"

#include <algorithm>
#include <climits>
#include <cmath>

namespace hg::fuzz {
namespace {

using test::Form;

constexpr int64_t most_listed = 63;

int draw_odd_enum(Input& input)
{
    constexpr int values[] = {0, -1, 1, 3, 4, 5, 100, 103, 110, 114, INT_MAX, INT_MIN, 256, 65536, 2, 111};
    return input.pick(values);
}

class Draw {
public:
    Draw(Input& input, Form form) : input_(input)
    {
        p_.form = form;
        // Half of all products are right.
        const int kind = input.byte();
        if (kind >= 128)
            odd_[0] = static_cast<Field>(input.below(static_cast<int>(Field::last)));
        if (kind >= 240)
            odd_[1] = static_cast<Field>(input.below(static_cast<int>(Field::last)));
    }

    Product draw();

private:
    bool is_odd(Field field) const { return odd_[0] == field || odd_[1] == field; }
    bool is_general() const { return p_.form == Form::General; }
    // Arrays have an entry for each problem, unless none is looked at.
    bool can_be_listed() const { return g_.batch_count <= most_listed || p_.is_empty(); }
    template <typename Enum>
    Enum odd(Field field, Enum usual)
    {
        return is_odd(field) ? static_cast<Enum>(draw_odd_enum(input_)) : usual;
    }
    int64_t odd(Field field, int64_t usual) { return is_odd(field) ? draw_odd_integer(input_) : usual; }

    void draw_types();
    void draw_sizes();
    void draw_scalars();
    int64_t draw_ld(Field field, const Extent& extent);
    int64_t draw_stride(Field field, const Extent& extent, bool is_output);
    void draw_strides();
    void draw_epilogue();
    void draw_scalar_pointers();
    Block make(hgemm_type_t type, const Extent& extent);
    void make_memory();
    void make_special();
    void set_pointers();
    void make_lists();
    void draw_gate();
    template <typename Pointer>
    void spoil(Field field, Pointer& pointer);

    Input& input_;
    Product p_;
    hgemm_args_t& g_ = p_.g;
    Field odd_[2] = {Field::last, Field::last};
};

int draw_size(Input& input)
{
    const int value = input.byte();
    return value < 192 ? value % 9 : value % 41;
}

void Draw::draw_types()
{
    constexpr hgemm_type_t halves[] = {HGEMM_F16, HGEMM_BF16}, all[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};
    constexpr hgemm_op_t ops[] = {HGEMM_NO_TRANS, HGEMM_TRANS, HGEMM_CONJ_TRANS};
    constexpr hgemm_layout_t layouts[] = {HGEMM_COL_MAJOR, HGEMM_ROW_MAJOR};
    g_.layout = odd(Field::Layout, input_.pick(layouts));
    g_.transa = odd(Field::TransA, input_.pick(ops));
    g_.transb = odd(Field::TransB, input_.pick(ops));
    g_.type_ab = odd(Field::TypeAb, input_.pick(halves));
    g_.type_d = odd(Field::TypeD, input_.pick(all));
    g_.type_c = odd(Field::TypeC, input_.pick(all));
    if (is_general())
        return;
    g_.type_ab = g_.type_ab == HGEMM_BF16 ? HGEMM_BF16 : HGEMM_F16;
    g_.type_c = g_.type_d = g_.type_ab;
    if (p_.form == Form::Short) {
        g_.layout = HGEMM_COL_MAJOR;
        g_.transa = g_.transa == HGEMM_NO_TRANS ? HGEMM_NO_TRANS : HGEMM_TRANS;
        g_.transb = g_.transb == HGEMM_NO_TRANS ? HGEMM_NO_TRANS : HGEMM_TRANS;
    }
}

void Draw::draw_sizes()
{
    p_.special = input_.one_in(16);
    g_.m = odd(Field::M, draw_size(input_));
    g_.n = odd(Field::N, draw_size(input_));
    if (is_general() && input_.one_in(8)) {
        constexpr hgemm_uplo_t uplos[] = {HGEMM_UPPER, HGEMM_LOWER, HGEMM_BOTH};
        g_.uplo = input_.pick(uplos);
        g_.n = is_odd(Field::Uplo) ? g_.n : g_.m;
    }
    if (is_general())
        g_.uplo = odd(Field::Uplo, g_.uplo);
    g_.k = odd(Field::K, draw_size(input_));
    if (p_.special)
        g_.k = 1;
    g_.batch_count = 1;
    if (is_general() || p_.form == Form::Strided || p_.form == Form::Batched)
        g_.batch_count = odd(Field::Count, input_.below(2) == 0 ? 1 : input_.below(5));
    if (p_.form == Form::Batched && !can_be_listed())
        g_.batch_count = most_listed;
}

// Powers of two, so that every step is exact in fp32; the smallest make results that only a caller's
// floating-point environment would flush to 0.
void Draw::draw_scalars()
{
    constexpr float alphas[] = {1, -1, 2, 0.5f, 0, 1, 0x1p-136f, 4},
                    betas[] = {0, 1, -1, 0.5f, 2, 0, -0.0f, 1};
    g_.alpha = p_.scalars[0] = p_.special ? 1 : input_.pick(alphas);
    g_.beta = p_.scalars[1] = p_.special                                     ? 0
                              : std::fabs(g_.alpha) < 0.25f && g_.alpha != 0 ? 0
                                                                             : input_.pick(betas);
}

int64_t Draw::draw_ld(Field field, const Extent& extent)
{
    const int64_t least = extent.length < 1 ? 1 : extent.length;
    const int kind = input_.byte();
    // Now and then lines of other problems fit between two.
    const int64_t gap = kind < 128 || least > 64 ? 0 : kind < 240 ? kind % 4 : 4 * least;
    if (!is_odd(field))
        return least + gap;
    // One line may be as far from the next as it likes.
    return input_.below(2) == 0 ? extent.length - 1 : draw_odd_integer(input_);
}

int64_t Draw::draw_stride(Field field, const Extent& extent, bool is_output)
{
    if (is_odd(field))
        return draw_odd_integer(input_);
    const int64_t span = Extent{extent.lines, extent.length, extent.ld}.span();
    const int kind = input_.below(8);
    if (kind == 6 && !is_output)
        return 0;
    if (kind == 7)
        return -(span + 1);
    if (kind == 5)
        return is_output ? std::max<int64_t>(extent.length, 1) : 1;
    return (span < 1 ? 1 : span) + kind % 3;
}

void Draw::draw_strides()
{
    g_.lda = draw_ld(Field::Lda, p_.extent_a());
    g_.ldb = draw_ld(Field::Ldb, p_.extent_b());
    g_.ldd = draw_ld(Field::Ldd, p_.extent_d());
    g_.ldaux = draw_ld(Field::Ldaux, p_.extent_d());
    p_.separate_c = is_general() && input_.below(4) < 3;
    if (p_.separate_c) {
        g_.ldc = draw_ld(Field::Ldc, p_.extent_d());
    } else {
        g_.type_c = g_.type_d;
        g_.ldc = is_general() && is_odd(Field::Ldc) ? draw_odd_integer(input_) : g_.ldd;
    }
    if (g_.batch_count == 1 && !is_odd(Field::StrideA) && !is_odd(Field::StrideD))
        return;
    g_.stride_a = draw_stride(Field::StrideA, p_.extent_a(), false);
    g_.stride_b = draw_stride(Field::StrideB, p_.extent_b(), false);
    g_.stride_d = draw_stride(Field::StrideD, p_.extent_d(), true);
    g_.stride_c = p_.separate_c || is_odd(Field::StrideC)
                      ? draw_stride(Field::StrideC, p_.extent_d(), false)
                      : g_.stride_d;
    if (!is_general())
        g_.stride_c = g_.stride_d;
}

void Draw::draw_epilogue()
{
    g_.size = sizeof g_;
    if (!is_general())
        return;
    if (is_odd(Field::Size)) {
        constexpr int64_t sizes[] = {0, 8, 207, 284, 4104, 100'000'000'000, INT64_MAX, -1};
        const int kind = input_.below(16);
        g_.size = kind < 8 ? static_cast<size_t>(sizes[kind]) : input_.bits(2);
    }
    p_.tail = input_.one_in(8) ? 8 * (1 + input_.below(8)) : 0;
    if (!is_odd(Field::Size))
        g_.size += static_cast<size_t>(p_.tail);
    if (g_.size < sizeof g_)  // the struct of an older version, which had none
        g_.uplo = HGEMM_UPLO_NONE;
    p_.dirty_tail = p_.tail > 0 && input_.one_in(4);
    p_.is_null = is_odd(Field::Args);
    constexpr hgemm_type_t all[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};
    const bool plain = g_.uplo != HGEMM_UPLO_NONE && !is_odd(Field::Uplo);
    if (!plain && (p_.special || input_.one_in(4)))
        g_.activation = static_cast<hgemm_activation_t>(input_.below(5));
    g_.activation = odd(Field::Activation, g_.activation);
    if (!plain && !p_.special && input_.one_in(4))
        g_.bias_mode = static_cast<hgemm_bias_t>(1 + input_.below(2));
    g_.bias_mode = odd(Field::BiasMode, g_.bias_mode);
    g_.bias_type = odd(Field::BiasType, g_.bias_mode == HGEMM_BIAS_NONE ? HGEMM_F16 : input_.pick(all));
    if (g_.batch_count > 1 && g_.bias_mode != HGEMM_BIAS_NONE)
        g_.stride_bias =
            odd(Field::StrideBias, input_.below(3) * (g_.bias_mode == HGEMM_BIAS_M ? g_.m : g_.n));
    g_.stride_aux =
        draw_stride(Field::StrideAux, Extent{p_.extent_d().lines, p_.extent_d().length, g_.ldaux}, true);
    g_.flags = is_odd(Field::Flags) ? static_cast<uint32_t>(1 + input_.below(255)) : 0;
}

// What is read when the kernel runs makes operands ones that are read, whatever it is.
void Draw::draw_scalar_pointers()
{
    if (is_general() && input_.one_in(8)) {
        g_.alpha_device = &p_.scalars[0];
        g_.alpha = NAN;
    }
    if (is_general() && input_.one_in(8)) {
        g_.beta_device = &p_.scalars[1];
        g_.beta = NAN;
    }
}

Block Draw::make(hgemm_type_t type, const Extent& extent)
{
    if (type < HGEMM_F16 || type > HGEMM_F32 || (extent.span() < 0)) {
        p_.has_memory = p_.has_memory && extent.empty();
        return Block(HGEMM_F16, {}, 0);
    }
    Block block(type, extent, input_.below(2) == 0 ? 0 : input_.below(8));
    block.fill(input_.byte());
    return block;
}

// Infinities, NaN, the largest and the smallest numbers, each alone in its result: k = 1 and B = 1.
void Draw::make_special()
{
    constexpr double values[] = {-INFINITY, INFINITY, NAN, 65504, -65504, 0x1p-24, -0x1p-24, 10, -10, 0};
    const Extent& a = p_.a.extent();
    const Extent& b = p_.b.extent();
    for (int64_t z = 0; z < a.batch; ++z)
        for (int64_t line = 0; line < a.lines; ++line)
            for (int64_t i = 0; i < a.length; ++i)
                p_.a.set(z, line, i, input_.pick(values));
    for (int64_t z = 0; z < b.batch; ++z)
        for (int64_t line = 0; line < b.lines; ++line)
            for (int64_t i = 0; i < b.length; ++i)
                p_.b.set(z, line, i, 1);
    p_.a.remember();
    p_.b.remember();
}

void Draw::make_memory()
{
    p_.a = make(g_.type_ab, p_.reads_ab() ? p_.extent_a() : Extent{});
    p_.b = make(g_.type_ab, p_.reads_ab() ? p_.extent_b() : Extent{});
    p_.d = make(g_.type_d, p_.is_empty() ? Extent{} : p_.extent_d());
    if (p_.separate_c)
        p_.c = make(g_.type_c, p_.reads_c() ? p_.extent_c() : Extent{});
    if (is_general() && (is_odd(Field::Aux) || (g_.uplo == HGEMM_UPLO_NONE && input_.one_in(8))))
        p_.aux = make(g_.type_d, p_.is_empty() ? Extent{} : p_.extent_aux());
    if (g_.bias_mode == HGEMM_BIAS_M || g_.bias_mode == HGEMM_BIAS_N)
        p_.bias = make(g_.bias_type, Extent{1, g_.bias_mode == HGEMM_BIAS_M ? g_.m : g_.n, 1,
                                            g_.batch_count, g_.stride_bias});
    if (p_.special && p_.reads_ab() && p_.has_memory && !p_.a.extent().empty() && !p_.b.extent().empty())
        make_special();
}

// NULL, or one byte behind where it should be.
template <typename Pointer>
void Draw::spoil(Field field, Pointer& pointer)
{
    if (is_odd(field))
        pointer = input_.below(2) == 0
                      ? nullptr
                      : reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(p_.d.ptr()) / 16 * 16 + 1);
}

// Of a batch by arrays of pointers. The matrices lie where strides put them.
void Draw::make_lists()
{
    const int64_t count = g_.batch_count >= 0 && g_.batch_count <= most_listed ? g_.batch_count : 0;
    p_.has_memory = p_.has_memory && (count == g_.batch_count || p_.is_empty());
    for (int64_t z = 0; z < count; ++z) {
        p_.a_list.push_back(p_.a.ptr(p_.a.extent().empty() ? 0 : z));
        p_.b_list.push_back(p_.b.ptr(p_.b.extent().empty() ? 0 : z));
        p_.d_list.push_back(p_.d.ptr(p_.d.extent().empty() ? 0 : z));
        p_.c_list.push_back(p_.separate_c ? p_.c.ptr(p_.c.extent().empty() ? 0 : z) : p_.d_list.back());
    }
    p_.a_list.reserve(1), p_.b_list.reserve(1), p_.c_list.reserve(1), p_.d_list.reserve(1);
    g_.a_array = p_.a_list.data();
    g_.b_array = p_.b_list.data();
    g_.d_array = p_.d_list.data();
    g_.c_array = p_.separate_c ? p_.c_list.data() : const_cast<const void* const*>(g_.d_array);
    spoil(Field::A, g_.a_array);
    spoil(Field::B, g_.b_array);
    spoil(Field::C, g_.c_array);
    spoil(Field::D, g_.d_array);
    if (!is_general())  // one array is both
        g_.c_array = const_cast<const void* const*>(g_.d_array);
    if (!is_odd(Field::Entry) || count == 0)
        return;
    std::vector<const void*>* const lists[] = {&p_.a_list, &p_.b_list, &p_.c_list};
    const int which = input_.below(4);
    const auto entry = static_cast<size_t>(input_.below(static_cast<int>(count)));
    if (which < 3)
        spoil(Field::Entry, (*lists[which])[entry]);
    else
        spoil(Field::Entry, p_.d_list[entry]);
}

void Draw::set_pointers()
{
    g_.a = p_.a.ptr();
    g_.b = p_.b.ptr();
    g_.d = p_.d.ptr();
    g_.c = p_.separate_c ? p_.c.ptr() : g_.d;
    spoil(Field::A, g_.a);
    spoil(Field::B, g_.b);
    spoil(Field::D, g_.d);
    if (is_general())
        spoil(Field::C, g_.c);
    else
        g_.c = g_.d;
    // D over an operand.
    if (is_odd(Field::Entry) && p_.form != Form::Batched && p_.reads_ab()) {
        g_.d = const_cast<void*>(input_.below(2) == 0 ? g_.a : g_.b);
        g_.c = p_.separate_c ? g_.c : g_.d;
    }
    if (p_.form == Form::Batched || (is_general() && !p_.aux.exists() && g_.uplo == HGEMM_UPLO_NONE &&
                                     input_.one_in(4) && can_be_listed()))
        make_lists();
    if (!is_general())
        return;
    if (p_.aux.exists())
        g_.aux = p_.aux.ptr();
    if (p_.aux.exists())
        spoil(Field::Aux, g_.aux);
    if (p_.bias.exists())
        g_.bias = p_.bias.ptr();
    spoil(Field::Bias, g_.bias);
    spoil(Field::Alpha, g_.alpha_device);
    spoil(Field::Beta, g_.beta_device);
}

// Behind all other choices.
void Draw::draw_gate()
{
    if (!is_general() || !draw_gates(input_, p_))
        return;
    // Lines of D that are as short as they may be.
    if (odd_[0] == Field::last && p_.is_gated() && p_.has_memory && input_.one_in(2)) {
        g_.ldd = std::max<int64_t>(p_.extent_d().length, 1);
        p_.d = make(g_.type_d, p_.is_empty() ? Extent{} : p_.extent_d());
        g_.d = p_.d.ptr();
        g_.c = p_.separate_c ? g_.c : g_.d;
    }
}

Product Draw::draw()
{
    draw_types();
    draw_sizes();
    draw_scalars();
    draw_strides();
    draw_epilogue();
    draw_scalar_pointers();
    make_memory();
    set_pointers();
    draw_gate();
    return std::move(p_);
}

}  // namespace

int64_t draw_odd_integer(Input& input)
{
    constexpr int64_t values[] = {0,
                                  -1,
                                  1,
                                  2,
                                  3,
                                  INT64_MIN,
                                  INT64_MAX,
                                  int64_t{1} << 31,
                                  INT32_MAX,
                                  int64_t{1} << 32,
                                  int64_t{1} << 40,
                                  int64_t{1} << 60,
                                  int64_t{1} << 61,
                                  int64_t{1} << 62,
                                  -(int64_t{1} << 62),
                                  -7};
    const int kind = input.byte();
    return kind < 192 ? values[kind % 16] : static_cast<int64_t>(input.bits(8));
}

Product draw_product(Input& input, test::Form form) { return Draw(input, form).draw(); }

}  // namespace hg::fuzz
