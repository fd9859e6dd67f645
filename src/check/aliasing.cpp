#include "src/check/aliasing.hpp"

#include "src/check/overlap.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>

namespace hg {
namespace {

Region region_of(const hgemm_args_t& g, const void* ptr, const Stored& s, int64_t ld, int64_t stride,
                 hgemm_type_t type)
{
    const int64_t bytes = bytes_of(static_cast<Type>(type));
    const Region problem{reinterpret_cast<uintptr_t>(ptr), s.outer, ld * bytes, s.inner * bytes};
    return g.batch_count > 1 ? region_of_batch(problem, stride * bytes, g.batch_count) : problem;
}

Region region_of_a(const hgemm_args_t& g)
{
    return region_of(g, g.a, stored_a(g), g.lda, g.stride_a, g.type_ab);
}
Region region_of_b(const hgemm_args_t& g)
{
    return region_of(g, g.b, stored_b(g), g.ldb, g.stride_b, g.type_ab);
}
Region region_of_c(const hgemm_args_t& g)
{
    return region_of(g, g.c, stored_c(g), g.ldc, g.stride_c, g.type_c);
}
Region region_of_bias(const hgemm_args_t& g)
{
    const int64_t count = g.bias_mode == HGEMM_BIAS_M ? g.m : g.n;
    return region_of(g, g.bias, {count, 1, "elements"}, count, g.stride_bias, g.bias_type);
}

struct Named {
    Arg arg;
    Region region;
};

class Overlaps {
public:
    explicit Overlaps(const Signature& signature) : signature_(signature) {}

    // Against what every product reads.
    Status check_operands(const Named& output, const hgemm_args_t& g) const
    {
        Status status = ok;
        if (reads_ab(g))
            status = check(output, {Arg::A, region_of_a(g)});
        if (status == ok && reads_ab(g))
            status = check(output, {Arg::B, region_of_b(g)});
        if (status == ok && g.bias_mode != HGEMM_BIAS_NONE)
            status = check(output, {Arg::Bias, region_of_bias(g)});
        return status;
    }

    Status check(const Named& output, const Named& other) const
    {
        if (!overlap(output.region, other.region))
            return ok;
        return fail_argument(position_of(output.arg), name(output.arg),
                             "overlaps %s, must lie apart from it", name(other.arg));
    }

    Arg output() const { return has(Arg::InOut) ? Arg::InOut : Arg::D; }

private:
    bool has(Arg arg) const { return std::ranges::find(signature_.args, arg) != signature_.args.end(); }
    const char* name(Arg arg) const { return name_of(arg, signature_.in_struct, false); }
    int position_of(Arg arg) const
    {
        const auto index = std::ranges::find(signature_.args, arg) - signature_.args.begin();
        return signature_.in_struct ? 2 : static_cast<int>(index) + 1;
    }

    const Signature& signature_;
};

}  // namespace

Status check_apart(const Signature& signature, const hgemm_args_t& g)
{
    if (g.a_array || g.b_array || g.c_array || g.d_array)
        return ok;
    const Overlaps overlaps(signature);
    const Stored stored = stored_d(g);
    const Named d{overlaps.output(), region_of(g, g.d, stored, g.ldd, g.stride_d, g.type_d)};
    Status status = overlaps.check_operands(d, g);
    if (status == ok && reads_c(g) && g.c != g.d)
        status = overlaps.check({Arg::C, region_of_c(g)}, d);
    if (status != ok || !g.aux)
        return status;
    const Named aux{Arg::Aux, region_of(g, g.aux, stored_c(g), g.ldaux, g.stride_aux, g.type_d)};
    status = overlaps.check(aux, d);
    if (status == ok && reads_c(g))
        status = overlaps.check(aux, {Arg::C, region_of_c(g)});
    return status == ok ? overlaps.check_operands(aux, g) : status;
}

}  // namespace hg
