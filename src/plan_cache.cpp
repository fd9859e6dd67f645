#include "plan_cache.hpp"

#include <initializer_list>

namespace hg {
namespace {

// What plans may depend on: pointers become their offset in a 16-byte unit, plus 16 where they are set.
Problem shape_of(const Problem& problem)
{
    const auto alignment = [](const void* pointer) {
        const auto address = reinterpret_cast<uintptr_t>(pointer);
        return address == 0 ? nullptr : reinterpret_cast<void*>(address % 16 + 16);
    };
    const auto presence = [](auto* pointer) {
        return reinterpret_cast<decltype(pointer)>(static_cast<uintptr_t>(pointer ? 16 : 0));
    };
    Problem shape = problem;
    for (Operand* operand : {&shape.a, &shape.b}) {
        operand->ptr = alignment(operand->ptr);
        operand->array = presence(operand->array);
    }
    for (Matrix* matrix : {&shape.c, &shape.d, &shape.aux}) {
        matrix->ptr = alignment(matrix->ptr);
        matrix->array = presence(matrix->array);
    }
    shape.bias.ptr = presence(shape.bias.ptr);
    shape.alpha_device = presence(shape.alpha_device);
    shape.beta_device = presence(shape.beta_device);
    shape.alpha = shape.beta = 1.0f;
    return shape;
}

// What a plan depends on.
Workspace kind_of(const Workspace& workspace) { return {nullptr, workspace.bytes, workspace.counters}; }

size_t mix(size_t hash, size_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u >> 3; }

size_t hash_of(const Problem& p, const Workspace& workspace)
{
    size_t hash = mix(static_cast<size_t>(p.type_ab), workspace.bytes);
    hash = mix(hash, reinterpret_cast<size_t>(workspace.ptr));
    for (const int64_t size : {p.m, p.n, p.k, p.batch, p.a.row_stride, p.b.row_stride, p.d.ld})
        hash = mix(hash, static_cast<size_t>(size));
    for (const void* pointer : {p.a.ptr, p.b.ptr, static_cast<const void*>(p.d.ptr)})
        hash = mix(hash, reinterpret_cast<size_t>(pointer));
    return mix(hash, hash >> 32);
}

}  // namespace

const Plan* PlanCache::find_plan(const Problem& problem, const Workspace& workspace) const
{
    const Problem shape = shape_of(problem);
    const Workspace kind = kind_of(workspace);
    const Decided& entry = decided_[hash_of(shape, kind) % plans];
    return entry.used && entry.shape == shape && entry.workspace == kind ? &entry.plan : nullptr;
}

void PlanCache::keep_plan(const Problem& problem, const Workspace& workspace, const Plan& plan)
{
    const Problem shape = shape_of(problem);
    const Workspace kind = kind_of(workspace);
    decided_[hash_of(shape, kind) % plans] = {true, shape, kind, plan};
}

const PlanCache::Launch* PlanCache::find_launch(const Problem& problem, const Workspace& workspace) const
{
    const Launch& entry = launches_[hash_of(problem, workspace) % launches];
    return entry.used && entry.problem == problem && entry.workspace == workspace ? &entry : nullptr;
}

PlanCache::Launch& PlanCache::place_for(const Problem& problem, const Workspace& workspace)
{
    Launch& entry = launches_[hash_of(problem, workspace) % launches];
    entry.used = false;
    return entry;
}

void PlanCache::clear()
{
    for (Decided& entry : decided_)
        entry.used = false;
    for (Launch& entry : launches_)
        entry.used = false;
}

}  // namespace hg
