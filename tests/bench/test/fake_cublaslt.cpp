// Stands for libcublasLt: four proposals of a heuristic, more for pointers that are aligned well, and three
// algorithms to configure.
#include "fake_cublas.hpp"

#include <cstring>
#include <utility>
#include <vector>

namespace {

using namespace fake;

struct Preference {
    uint64_t workspace;
    uint32_t alignment[4];
};
struct Algorithm {
    uint64_t alignment;
    uint32_t id, tile, stages, split, reduction, swizzle;  // id 0: the heuristic's
    uint64_t unused[4];
};
static_assert(sizeof(Algorithm) == 64);
struct Result {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

// One configuration is faster than all others.
std::chrono::microseconds delay_of(const Algorithm& a)
{
    const bool fast = a.id == 21 && a.tile == 18 && a.stages == 12 && a.split == 6 && a.swizzle == 1;
    return std::chrono::microseconds(a.id == 0 || fast ? 0 : 5000);
}

}  // namespace

extern "C" {

int cublasLtCreate(void** handle) { return create(handle, 0); }
int cublasLtDestroy(void* handle) { return destroy<int>(handle); }
size_t cublasLtGetVersion() { return 990200; }
int cublasLtMatmulDescCreate(void** out, int compute, int scale)
{
    return compute == compute_32f && scale == r_32f ? create(out, Operation{}) : invalid;
}
int cublasLtMatmulDescDestroy(void* operation) { return destroy<Operation>(operation); }
int cublasLtMatmulDescSetAttribute(void* operation, int which, const void* value, size_t bytes)
{
    auto* o = static_cast<Operation*>(operation);
    const auto set = [&](auto& attribute) {
        if (bytes != sizeof attribute)
            return invalid;
        std::memcpy(&attribute, value, bytes);
        return success;
    };
    switch (which) {
    case 3: return set(o->first);
    case 4: return set(o->second);
    case 7: return set(o->epilogue);
    case 8: return set(o->bias);
    case 11: return set(o->aux);
    case 12: return set(o->ldaux);
    case 13: return set(o->stride_aux);
    case 26: return set(o->bias_type);
    default: return invalid;
    }
}
int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    return type == r_16f || type == r_16bf || type == r_32f ? create(out, Layout{type, rows, columns, ld})
                                                            : invalid;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int which, const void* value, size_t bytes)
{
    auto* l = static_cast<Layout*>(layout);
    if (which == 5 && bytes == sizeof l->batch)
        std::memcpy(&l->batch, value, bytes);
    else if (which == 6 && bytes == sizeof l->stride)
        std::memcpy(&l->stride, value, bytes);
    else
        return invalid;
    return success;
}
int cublasLtMatrixLayoutDestroy(void* layout) { return destroy<Layout>(layout); }
int cublasLtMatmulPreferenceCreate(void** out) { return create(out, Preference{0, {256, 256, 256, 256}}); }
int cublasLtMatmulPreferenceDestroy(void* preference) { return destroy<Preference>(preference); }
int cublasLtMatmulPreferenceSetAttribute(void* preference, int which, const void* value, size_t bytes)
{
    auto* p = static_cast<Preference*>(preference);
    if (which == 1 && bytes == sizeof p->workspace)
        std::memcpy(&p->workspace, value, bytes);
    else if (which >= 5 && which <= 8 && bytes == sizeof(uint32_t))
        std::memcpy(&p->alignment[which - 5], value, bytes);
    else
        return invalid;
    return success;
}

// One result that does not hold, one that needs too much workspace, one for each alignment up to the
// promised ones.
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void* preference, int wanted,
                                   Result* results, int* count)
{
    const auto* p = static_cast<const Preference*>(preference);
    if (p->workspace != workspace_wanted)
        return invalid;
    *count = 0;
    const auto add = [&](uint64_t alignment, size_t workspace, int state) {
        if (*count < wanted)
            results[(*count)++] = {{alignment, 0, 0, 0, 1, 0, 0, {}}, workspace, state, 1.0f, {}};
    };
    add(1, 0, refused);
    add(1, workspace_wanted + 1, success);
    for (uint32_t alignment = 2; alignment <= 256; alignment *= 2)
        if (alignment <= p->alignment[0] && alignment <= p->alignment[1] && alignment <= p->alignment[2] &&
            alignment <= p->alignment[3])
            add(alignment, workspace_wanted, success);
    return success;
}

// Three algorithms. Id 21 has all choices and wants 16 bytes of alignment, 23 has one tile and nothing to
// choose, and 66 is none that the benchmark looks for.
int cublasLtMatmulAlgoGetIds(void*, int compute, int scale, int, int, int, int, int wanted, int* ids,
                             int* count)
{
    if (compute != compute_32f || scale != r_32f || wanted < 3)
        return invalid;
    for (const int id : {66, 21, 23})
        *ids++ = id;
    *count = 3;
    return success;
}
int cublasLtMatmulAlgoInit(void*, int compute, int scale, int type_a, int type_b, int type_c, int type_d,
                           int id, Algorithm* algorithm)
{
    if (compute != compute_32f || scale != r_32f || type_a != type_b || type_c != type_d)
        return invalid;
    if (id != 21 && id != 23 && id != 66)
        return refused;
    *algorithm = {id == 21 ? 16u : 2u, static_cast<uint32_t>(id), 0, 0, 1, 0, 0, {}};
    return success;
}
int cublasLtMatmulAlgoCapGetAttribute(const Algorithm* algorithm, int which, void* value, size_t bytes,
                                      size_t* written)
{
    const bool full = algorithm->id == 21;
    std::vector<uint32_t> numbers;
    switch (which) {
    case 0: numbers = {full}; break;  // may K be split?
    case 2: numbers = {full}; break;  // ... thread blocks be swizzled?
    case 6: numbers = full ? std::vector<uint32_t>{15, 18, 20} : std::vector<uint32_t>{18}; break;
    case 13: numbers = full ? std::vector<uint32_t>{11, 12} : std::vector<uint32_t>{}; break;
    case 16:
    case 17:
    case 19: numbers = {static_cast<uint32_t>(algorithm->alignment)}; break;
    default: return invalid;
    }
    *written = numbers.size() * sizeof(uint32_t);
    if (bytes != 0 && bytes != *written)
        return invalid;
    if (bytes != 0)
        std::memcpy(value, numbers.data(), bytes);
    return success;
}
int cublasLtMatmulAlgoConfigSetAttribute(Algorithm* algorithm, int which, const void* value, size_t bytes)
{
    const std::pair<int, uint32_t*> attributes[] = {{1, &algorithm->tile},
                                                    {2, &algorithm->split},
                                                    {3, &algorithm->reduction},
                                                    {4, &algorithm->swizzle},
                                                    {6, &algorithm->stages}};
    for (const auto& [number, attribute] : attributes)
        if (number == which && bytes == sizeof *attribute) {
            std::memcpy(attribute, value, bytes);
            return success;
        }
    return invalid;
}
// Refuses an odd k, and tile 20 in more than 4 slices. Tile 15 in 16 slices wants too much workspace, and
// in 12 slices it does not hold.
int cublasLtMatmulAlgoCheck(void*, void* operation, void* first, void* second, void* third, void* result,
                            const Algorithm* algorithm, Result* found)
{
    const auto* o = static_cast<const Operation*>(operation);
    if (third != result ||
        !match({nullptr, *static_cast<Layout*>(first), o->first},
               {nullptr, *static_cast<Layout*>(second), o->second}, *static_cast<Layout*>(result)))
        return invalid;
    const auto& a = *static_cast<const Layout*>(first);
    const uint64_t k = o->first == 1 ? a.rows : a.columns;
    if ((algorithm->split > 1) != (algorithm->reduction == 2) ||
        (algorithm->tile == 20 && algorithm->split > 4) || k % 2 != 0)
        return refused;
    const bool too_large = algorithm->tile == 15 && algorithm->split == 16;
    const bool does_not_hold = algorithm->tile == 15 && algorithm->split == 12;
    *found = {{}, workspace_wanted + (too_large ? 1 : 0), does_not_hold ? refused : success, 1.0f, {}};
    return success;
}

int cublasLtMatmul(void*, void* operation, const void* alpha, const void* a, void* layout_a, const void* b,
                   void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
                   const Algorithm* algorithm, void*, size_t workspace, void* stream)
{
    const auto misaligned = [&](const void* pointer) {
        return reinterpret_cast<uintptr_t>(pointer) % algorithm->alignment != 0;
    };
    if (c != d || layout_c != layout_d || workspace != workspace_wanted || misaligned(a) || misaligned(b) ||
        misaligned(d) || value_of(alpha) != 1)
        return invalid;
    const auto* o = static_cast<const Operation*>(operation);
    return launch(*o, {a, *static_cast<const Layout*>(layout_a), o->first},
                  {b, *static_cast<const Layout*>(layout_b), o->second}, value_of(beta), d,
                  *static_cast<const Layout*>(layout_d), stream, delay_of(*algorithm));
}

}  // extern "C"
