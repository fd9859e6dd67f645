// Matrix-vector products.
#include "caller.hpp"
#include "oracle.hpp"
#include "report.hpp"
#include "wall.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>

namespace hg::fuzz {
namespace {

using test::GemvArgs;

// In hgemm.h's order.
enum Position { M = 2, N, Alpha, A, Lda, X, Incx, Beta, Y, Incy };

struct VectorProduct {
    GemvArgs g;
    Block a, x, y;
    bool has_memory = true;

    int64_t length_x() const { return g.trans == HGEMM_NO_TRANS ? g.n : g.m; }
    int64_t length_y() const { return g.trans == HGEMM_NO_TRANS ? g.m : g.n; }
    bool is_empty() const { return g.m == 0 || g.n == 0; }
    bool reads() const { return !is_empty() && g.alpha != 0; }
};

// A vector's elements as lines of one, the first at the end of the memory where the increment is negative.
Block make_vector(hgemm_type_t type, int64_t length, int64_t increment, Input& input, bool& has_memory)
{
    const Extent extent{length, 1, std::abs(std::max(increment, -INT64_MAX))};
    if (extent.span() < 0) {
        has_memory = false;
        return Block(type, {}, 0);
    }
    Block block(type, extent, input.below(3));
    block.fill(input.byte());
    return block;
}

int64_t line_of(int64_t index, int64_t length, int64_t increment)
{
    return increment < 0 ? length - 1 - index : index;
}

void draw_pointer(Input& input, bool odd, const void*& pointer, const Block& block)
{
    pointer = block.ptr();
    if (odd)
        pointer = input.below(2) == 0 ? nullptr : static_cast<const char*>(pointer) + 1;
}

VectorProduct draw(Input& input)
{
    constexpr float alphas[] = {1, -1, 2, 0}, betas[] = {0, 1, -1, 0.5f};
    VectorProduct p;
    GemvArgs& g = p.g;
    const int odd = input.byte() < 128 ? 0 : input.below(Incy + 1);
    const auto size = [&](int position) {
        return odd == position ? draw_odd_integer(input) : input.byte() % 41;
    };
    g.type = input.one_in(2) ? HGEMM_BF16 : HGEMM_F16;
    g.trans = input.one_in(2) ? HGEMM_TRANS : HGEMM_NO_TRANS;
    g.m = size(M);
    g.n = size(N);
    g.alpha = input.pick(alphas);
    g.beta = input.pick(betas);
    g.lda =
        odd == Lda ? draw_odd_integer(input) : std::max<int64_t>(g.m, 1) + (g.m < 64 ? input.below(3) : 0);
    g.incx = odd == Incx ? draw_odd_integer(input) : 1 + input.below(3);
    g.incy = odd == Incy ? draw_odd_integer(input) : 1 + input.below(3);
    if (input.one_in(4))
        g.incx = g.incx == INT64_MIN ? g.incx : -g.incx;
    if (input.one_in(4))
        g.incy = g.incy == INT64_MIN ? g.incy : -g.incy;
    const Extent extent{g.n, g.m, g.lda};
    p.has_memory = extent.span() >= 0;
    p.a = Block(g.type, p.has_memory ? extent : Extent{}, input.below(3));
    p.a.fill(input.byte());
    p.x = make_vector(g.type, p.length_x(), g.incx, input, p.has_memory);
    p.y = make_vector(g.type, p.length_y(), g.incy, input, p.has_memory);
    const void* y = nullptr;
    draw_pointer(input, odd == A, g.a, p.a);
    draw_pointer(input, odd == X, g.x, p.x);
    draw_pointer(input, odd == Y, y, p.y);
    g.y = const_cast<void*>(y);
    return p;
}

bool is_bad(const void* pointer) { return !pointer || reinterpret_cast<uintptr_t>(pointer) % 2 != 0; }

struct Positions {
    std::vector<int> wrong, doubtful;
};

Positions judge(const VectorProduct& p)
{
    const GemvArgs& g = p.g;
    Positions found;
    const auto wrong_if = [&](bool condition, int position) {
        if (condition)
            found.wrong.push_back(position);
    };
    wrong_if(g.m < 0, M);
    wrong_if(g.n < 0, N);
    wrong_if(p.reads() && is_bad(g.a), A);
    wrong_if(g.lda < std::max<int64_t>(1, g.m), Lda);
    wrong_if(p.reads() && is_bad(g.x), X);
    wrong_if(g.incx == 0, Incx);
    wrong_if(!p.is_empty() && is_bad(g.y), Y);
    wrong_if(g.incy == 0, Incy);
    if (!p.has_memory)
        found.doubtful = {Lda, Incx, Incy};
    // Refused even where there is one line, or a vector has one element, whose neighbour is never read.
    if (is_far(g.lda, g.n, g.type))
        found.doubtful.push_back(Lda);
    if (is_far(g.incx, p.length_x(), g.type))
        found.doubtful.push_back(Incx);
    if (is_far(g.incy, p.length_y(), g.type))
        found.doubtful.push_back(Incy);
    return found;
}

// `y`: as it was, line by line.
void check_values(VectorProduct& p, const std::vector<double>& y)
{
    const GemvArgs& g = p.g;
    const bool no = g.trans == HGEMM_NO_TRANS;
    for (int64_t i = 0; !p.is_empty() && i < p.length_y(); ++i) {
        double sum = 0;
        for (int64_t l = 0; p.reads() && l < p.length_x(); ++l)
            sum += (no ? p.a.get(0, l, i) : p.a.get(0, i, l)) *
                   p.x.get(0, line_of(l, p.length_x(), g.incx), 0);
        const int64_t line = line_of(i, p.length_y(), g.incy);
        const double kept = g.beta == 0 ? 0 : static_cast<double>(g.beta) * y[static_cast<size_t>(line)];
        p.y.expect(0, line, 0, static_cast<double>(g.alpha) * sum + kept, 0);
    }
}

}  // namespace

void Wall::multiply_vector()
{
    Live& live = live_[0];
    VectorProduct p = draw(input_);
    const GemvArgs& g = p.g;
    const std::string function =
        std::string(g.type == HGEMM_BF16 ? "bgemv_" : "hgemv_") + (g.trans == HGEMM_NO_TRANS ? "n" : "t");
    note("%s %" PRId64 "x%" PRId64 " alpha=%g beta=%g A=%p lda=%" PRId64 " x=%p incx=%" PRId64
         " y=%p incy=%" PRId64,
         function.c_str(), g.m, g.n, double{g.alpha}, double{g.beta}, g.a, g.lda, g.x, g.incx, g.y, g.incy);
    const Positions positions = judge(p);
    if (positions.wrong.empty() && !p.has_memory && !p.is_empty())
        return;
    std::vector<double> before;
    for (int64_t i = 0; p.has_memory && i < p.length_y(); ++i)
        before.push_back(p.y.get(0, i, 0));
    const hgemm_status_t status = test::call_gemv(live.handle, g);
    if (positions.wrong.empty() && status == HGEMM_STATUS_SUCCESS)
        check_values(p, before);
    else if (!positions.wrong.empty() || status != HGEMM_STATUS_WORKSPACE_TOO_SMALL ||
             live.least() == SIZE_MAX) {
        if (status != HGEMM_STATUS_INVALID_ARGUMENT)
            wrong("%s answered %s (%s)", function.c_str(), hgemm_status_string(status), hgemm_last_error());
        std::vector<int> all = positions.wrong;
        all.insert(all.end(), positions.doubtful.begin(), positions.doubtful.end());
        if (std::ranges::find(all, hgemm_last_error_argument()) == all.end())
            wrong("argument %d is right: %s", hgemm_last_error_argument(), hgemm_last_error());
        check_error(function, hgemm_last_error_argument(), {});
    }
    for (const auto& [block, name] : {std::pair{&p.a, "A"}, {&p.x, "x"}, {&p.y, "y"}})
        block->check(name);
}

}  // namespace hg::fuzz
