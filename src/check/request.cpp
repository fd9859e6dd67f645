#include "src/check/request.hpp"

namespace hg {

bool is_empty(const hgemm_args_t& args) { return args.m == 0 || args.n == 0 || args.batch_count == 0; }

bool reads_ab(const hgemm_args_t& g)
{
    return !is_empty(g) && g.k > 0 && (g.alpha_device || g.alpha != 0.0f);
}
bool reads_c(const hgemm_args_t& g) { return !is_empty(g) && (g.beta_device || g.beta != 0.0f); }

Stored stored_a(const hgemm_args_t& g)
{
    const bool along_m = (g.layout == HGEMM_COL_MAJOR) == (g.transa == HGEMM_NO_TRANS);
    return along_m ? Stored{g.m, g.k, "m"} : Stored{g.k, g.m, "k"};
}

Stored stored_b(const hgemm_args_t& g)
{
    const bool along_k = (g.layout == HGEMM_COL_MAJOR) == (g.transb == HGEMM_NO_TRANS);
    return along_k ? Stored{g.k, g.n, "k"} : Stored{g.n, g.k, "n"};
}

Stored stored_c(const hgemm_args_t& g)
{
    return g.layout == HGEMM_COL_MAJOR ? Stored{g.m, g.n, "m"} : Stored{g.n, g.m, "n"};
}

Stored stored_d(const hgemm_args_t& g)
{
    const Stored d = stored_c(g);
    if (g.gate.block == 0)
        return d;
    return {d.inner / 2, d.outer, *d.inner_name == 'm' ? "m / 2" : "n / 2"};
}

}  // namespace hg
