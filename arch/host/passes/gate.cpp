#include "arch/host/passes/gate.hpp"

#include "arch/host/epilogue.hpp"
#include "src/base/convert.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hg {
namespace {

constexpr int64_t chunk = 256;  // elements of a row of D that are gated at a time

// NaN stays NaN.
float at_most(float x, float limit) { return x > limit ? limit : x; }
float at_least(float x, float limit) { return x < limit ? limit : x; }

void gate_values(const GatePass& pass, int64_t count, float* gates, const float* others)
{
    const float limit = pass.gate.limit;
    float clamped[chunk];
    for (int64_t e = 0; e < count; ++e) {
        clamped[e] = at_least(at_most(others[e], limit), -limit);
        gates[e] = at_most(gates[e], limit);
    }
    activate(pass.activation, gates, count, pass.gate.slope);
    for (int64_t e = 0; e < count; ++e)
        gates[e] *= clamped[e] + pass.gate.offset;
}

// Elements of row i from j on.
void gate_run(const GatePass& pass, int64_t z, int64_t i, int64_t j, int64_t count)
{
    const float* const line = pass.sums + z * pass.problem_stride + i * pass.ld;
    float gates[chunk], others[chunk];
    for (int64_t e = 0; e < count; ++e) {
        gates[e] = line[pass.place(j + e)];
        others[e] = line[pass.place(j + e) + pass.apart];
    }
    if (pass.aux.ptr)
        for (int64_t e = 0; e < count; ++e) {
            const int64_t to = z * pass.aux.batch_stride + i * pass.aux.ld + pass.place(j + e);
            from_float(pass.aux.type, gates + e, 1, pass.aux.ptr, to, 1);
            from_float(pass.aux.type, others + e, 1, pass.aux.ptr, to + pass.gate.block, 1);
        }
    gate_values(pass, count, gates, others);
    int64_t first;
    void* const d = base(pass.d, z, first);
    from_float(pass.d.type, gates, count, d, first + i * pass.d.ld + j, 1);
}

}  // namespace

void apply_gates(Pool& pool, const GatePass& pass, int threads)
{
    // Fewer elements are not worth a second thread.
    constexpr int64_t elements_of_part = int64_t{1} << 13;
    const int64_t lines = pass.batch * pass.rows;
    const auto parts = std::clamp<int64_t>(lines * pass.columns / elements_of_part, 1, threads);
    pool.parallel_for(static_cast<int>(parts), lines, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line)
            for (int64_t j = 0; j < pass.columns; j += chunk)
                gate_run(pass, line / pass.rows, line % pass.rows, j, std::min(chunk, pass.columns - j));
    });
}

}  // namespace hg
