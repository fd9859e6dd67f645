#include "lt_call.hpp"

#include "lazy.hpp"
#include "quietly.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace hg::shim {
namespace {

// An attribute that this version of cuBLAS does not have keeps its default.
template <typename T>
void read(LtGetAttribute* get, void* object, int attribute, T& value)
{
    get(object, attribute, &value, sizeof value, nullptr);
}

LtMatrix read_layout(const Real& real, void* layout)
{
    LtMatrix x;
    const auto get = [&](int attribute, auto& value) {
        read(real.cublasLtMatrixLayoutGetAttribute, layout, attribute, value);
    };
    get(layout_type, x.type);
    get(layout_order, x.order);
    get(layout_rows, x.rows);
    get(layout_cols, x.columns);
    get(layout_ld, x.ld);
    get(layout_batch_count, x.batch);
    get(layout_batch_mode, x.batch_mode);
    if (x.batch > 1)
        get(layout_batch_stride, x.stride);
    return x;
}

// Does the call have scale factors, maxima, or counters of chunks of D?
bool has_scaling(const Real& real, void* desc)
{
    for (const int attribute : {desc_a_scale_pointer, desc_b_scale_pointer, desc_c_scale_pointer,
                                desc_d_scale_pointer, desc_d_out_scale_pointer, desc_amax_d_pointer,
                                desc_atomic_sync_in_counters, desc_atomic_sync_out_counters}) {
        const void* pointer = nullptr;
        read(real.cublasLtMatmulDescGetAttribute, desc, attribute, pointer);
        if (pointer)
            return true;
    }
    return false;
}

size_t hash_of(const LtAlgorithm& algorithm)
{
    const std::string_view bytes(reinterpret_cast<const char*>(&algorithm), sizeof algorithm);
    return std::hash<std::string_view>()(bytes);
}

// Beyond max_known algorithms, or without memory for them, the shim honours every algorithm.
constexpr size_t max_known = 4096;

struct Known {
    std::mutex mutex;
    std::unordered_map<size_t, Reason> reasons;  // by the algorithm's hash
};
constinit Lazy<Known> known;
std::atomic<size_t> known_count;

}  // namespace

void read_descriptors(const Real& real, void* desc, const LtLayouts& layouts, LtCall& call)
{
    const auto get = [&](int attribute, auto& value) {
        read(real.cublasLtMatmulDescGetAttribute, desc, attribute, value);
    };
    get(desc_compute_type, call.compute);
    get(desc_scale_type, call.scale_type);
    get(desc_pointer_mode, call.pointer_mode);
    get(desc_transa, call.transa);
    get(desc_transb, call.transb);
    get(desc_transc, call.transc);
    get(desc_fill_mode, call.fill);
    get(desc_epilogue, call.epilogue);
    get(desc_sm_count_target, call.sm_count);
    if (call.epilogue & epilogue_bias) {
        get(desc_bias_pointer, call.bias);
        get(desc_bias_data_type, call.bias_type);
        get(desc_bias_batch_stride, call.bias_stride);
    }
    call.scaled = has_scaling(real, desc);
    call.a = read_layout(real, layouts.a);
    call.b = layouts.b == layouts.a ? call.a : read_layout(real, layouts.b);
    call.d = read_layout(real, layouts.d);
    call.c = !layouts.c || layouts.c == layouts.d ? call.d : read_layout(real, layouts.c);
}

bool forbids_split(const Real& real, void* preference)
{
    uint32_t mask = reduction_schemes;
    if (real.cublasLtMatmulPreferenceGetAttribute)
        read(real.cublasLtMatmulPreferenceGetAttribute, preference, preference_reduction_mask, mask);
    return (mask & reduction_schemes) == 0;
}

void remember(const LtAlgorithm& algorithm, Reason reason)
{
    const bool done = quietly([&] {
        Known& all = known.get();
        const std::lock_guard lock(all.mutex);
        if (all.reasons.size() < max_known)
            all.reasons.insert_or_assign(hash_of(algorithm), reason);
        known_count = all.reasons.size();
    });
    if (!done)
        known_count = max_known;
}

void leave_algorithms_behind()
{
    known.leave_behind();
    known_count = 0;
}

Reason check(const LtAlgorithm* algorithm)
{
    const size_t count = known_count.load(std::memory_order_acquire);
    if (!algorithm || count == 0)
        return Reason::None;
    if (count == max_known)
        return Reason::Algorithm;
    Known& all = known.get();
    const std::lock_guard lock(all.mutex);
    const auto place = all.reasons.find(hash_of(*algorithm));
    return place == all.reasons.end() ? Reason::None : place->second;
}

bool is_empty(const LtAlgorithm* algorithm)
{
    return algorithm && std::ranges::all_of(algorithm->data, [](uint64_t word) { return word == 0; });
}

}  // namespace hg::shim
