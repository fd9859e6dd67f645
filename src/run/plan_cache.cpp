#include "src/run/plan_cache.hpp"

#include "src/plan/problem.hpp"

#include <array>
#include <cstring>
#include <initializer_list>

namespace hg {

// Pointers become their offset in a 16-byte unit, plus 16 if they are set.
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
        operand->offset = 0;
    }
    for (Matrix* matrix : {&shape.c, &shape.d, &shape.aux}) {
        matrix->ptr = alignment(matrix->ptr);
        matrix->array = presence(matrix->array);
        matrix->offset = 0;
    }
    shape.bias.ptr = presence(shape.bias.ptr);
    shape.alpha_device = presence(shape.alpha_device);
    shape.beta_device = presence(shape.beta_device);
    shape.groups.sizes = presence(shape.groups.sizes);
    shape.groups.origin = 0;
    shape.alpha = shape.beta = 1.0f;
    shape.gate.limit = shape.gate.slope = shape.gate.offset = 0.0f;
    return shape;
}

namespace {

// What plans depend on of a workspace: all but its addresses.
Workspace kind_of(const Workspace& workspace)
{
    return {nullptr, workspace.bytes, nullptr, workspace.counter_words, 0};
}

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u >> 3; }

uint64_t bits(const auto* pointer) { return reinterpret_cast<uint64_t>(pointer); }

uint64_t hash_of(const Operand& o)
{
    uint64_t hash = mix(bits(o.ptr) << 32, bits(o.array));
    for (const int64_t stride : {o.row_stride, o.k_stride, o.batch_stride})
        hash = mix(hash, static_cast<uint64_t>(stride));
    return hash;
}

uint64_t hash_of(const Matrix& m)
{
    uint64_t hash = mix(bits(m.ptr) << 32, bits(m.array) + static_cast<uint64_t>(m.type));
    for (const int64_t stride : {m.ld, m.batch_stride})
        hash = mix(hash, static_cast<uint64_t>(stride));
    return hash;
}

// Covers all members of a shape, since entries with the same hash replace each other.
uint64_t hash_of(const Problem& p, const Workspace& workspace)
{
    uint64_t hash = mix(workspace.bytes, workspace.counter_words);
    for (const int64_t size : {p.m, p.n, p.k, p.batch, p.leaves, p.gate.block, p.bias.batch_stride})
        hash = mix(hash, static_cast<uint64_t>(size));
    for (const uint64_t part : {hash_of(p.a), hash_of(p.b), hash_of(p.c), hash_of(p.d), hash_of(p.aux)})
        hash = mix(hash, part);
    for (const auto kind :
         {static_cast<int>(p.type_ab), static_cast<int>(p.bias.type), static_cast<int>(p.bias.along),
          static_cast<int>(p.activation), static_cast<int>(p.triangle), static_cast<int>(p.mirrored)})
        hash = mix(hash, static_cast<uint64_t>(kind));
    hash = mix(hash, bits(p.bias.ptr) << 32 | bits(p.alpha_device) << 8 | bits(p.beta_device));
    hash = mix(hash, bits(p.groups.sizes) << 8 | static_cast<uint64_t>(p.groups.of_k != 0) << 4 |
                         static_cast<uint64_t>(p.groups.by) << 1 | static_cast<uint64_t>(p.groups.narrow));
    return mix(hash, hash >> 32);
}

constexpr size_t request_words = sizeof(Request) / sizeof(uint64_t);
static_assert(sizeof(Request) % sizeof(uint64_t) == 0);

// Odd numbers without a pattern, by splitmix64.
constexpr auto multipliers = [] {
    std::array<uint64_t, request_words + 2> numbers{};
    uint64_t state = 0;
    for (uint64_t& number : numbers) {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        number = (z ^ z >> 31) | 1;
    }
    return numbers;
}();

// One multiplication a word, none waiting for another.
uint64_t hash_of(const Request& request, const Workspace& workspace)
{
    uint64_t words[request_words];
    std::memcpy(words, &request, sizeof words);
    uint64_t sum = reinterpret_cast<uint64_t>(workspace.ptr) * multipliers[request_words] +
                   workspace.bytes * multipliers[request_words + 1];
    for (size_t i = 0; i < request_words; ++i)
        sum += words[i] * multipliers[i];
    sum = (sum ^ sum >> 32) * multipliers[0];
    return sum ^ sum >> 29;
}

bool is_same(const Request& x, const Request& y) { return std::memcmp(&x, &y, sizeof x) == 0; }

}  // namespace

const Plan* PlanCache::find_plan(const Problem& problem, const Workspace& workspace) const
{
    const Problem shape = shape_of(problem);
    const Workspace kind = kind_of(workspace);
    const Decided* known = decided_.find(hash_of(shape, kind), [&](const Decided& entry) {
        return entry.shape == shape && entry.workspace == kind;
    });
    return known ? &known->plan : nullptr;
}

void PlanCache::keep_plan(const Problem& problem, const Workspace& workspace, const Plan& plan)
{
    const Problem shape = shape_of(problem);
    const Workspace kind = kind_of(workspace);
    const uint64_t hash = hash_of(shape, kind);
    Decided& entry = decided_.entry_for(hash);
    entry = {shape, kind, plan};
    decided_.keep(entry, hash);
}

const PlanCache::Launch* PlanCache::find_launch(const Request& request, const Workspace& workspace) const
{
    return launches_.find(hash_of(request, workspace), [&](const Launch& entry) {
        return is_same(entry.request, request) && entry.workspace == workspace;
    });
}

PlanCache::Launch& PlanCache::entry_for(const Request& request, const Workspace& workspace)
{
    Launch& entry = launches_.entry_for(hash_of(request, workspace));
    entry.request = request;
    entry.workspace = workspace;
    return entry;
}

void PlanCache::keep(const Launch& launch)
{
    launches_.keep(launch, hash_of(launch.request, launch.workspace));
}

void PlanCache::clear()
{
    decided_.clear();
    launches_.clear();
}

}  // namespace hg
