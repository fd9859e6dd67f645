#include "src/run/triangle.hpp"

#include "src/base/decimal.hpp"
#include "src/base/status.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/dispatch.hpp"
#include "src/plan/problem.hpp"
#include "src/plan/sums.hpp"
#include "src/plan/triangle.hpp"
#include "src/run/execute.hpp"
#include "src/run/reserved.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace hg {
namespace {

// Chunks of a triangle are counted with 30 bits.
constexpr int64_t max_n = int64_t{1} << 21;

// How a triangle is cut, and what that takes.
struct Cut {
    int64_t block;  // rows and columns of blocks on the diagonal; 0: by a kernel, which is planned
    Plan plan;
    int64_t at_once;      // blocks that lie in the workspace
    size_t blocks_bytes;  // that these take; 0: they are computed where they belong
    Needs needs;
    int64_t launches = 0;
    int64_t elements = 0;  // that are computed
    bool mirrors;          // the other half is written by a pass of its own

    // Time that the cost models expect, then work.
    bool is_better_than(const Cut& other) const
    {
        constexpr double us_of_launch = 2;
        const double mine = needs.predicted_us + us_of_launch * static_cast<double>(launches);
        const double its = other.needs.predicted_us + us_of_launch * static_cast<double>(other.launches);
        if (needs.predicted_us > 0 && mine != its)
            return mine < its;
        return elements < other.elements;
    }
};

// Of a kernel that serves the whole problem.
Cut cut_of(const Plan& plan)
{
    Cut cut{};
    cut.plan = plan;
    cut.needs = {plan.workspace, plan.counts, plan.predicted_us};
    cut.launches = 1;
    const int64_t tile = plan.backend->kernels[plan.kernel].tile_m;
    cut.elements = plan.tiles * tile * tile;
    return cut;
}

int find_mover(const hg::Handle& handle) { return find_backend(handle, &Backend::move_triangle); }

// Blocks of D in the workspace. Before there is one plans depend on its alignment alone.
Matrix blocks_of(const hg::Handle& handle, const Problem& p, int64_t block)
{
    constexpr int64_t vector = 8;  // elements
    const int64_t ld = round_up(block, vector);
    void* const ptr = handle.workspace().ptr;
    return {ptr ? ptr : reinterpret_cast<void*>(workspace_alignment), nullptr, ld, block * ld, p.d.type, 0};
}

// Blocks may take so many bytes, but room for one there must be.
void make_room(const hg::Handle& handle, const Problem& p, size_t room, Cut& cut)
{
    const Matrix blocks = blocks_of(handle, p, cut.block);
    const int64_t bytes = blocks.batch_stride * bytes_of(p.d.type);
    const int64_t wanted = std::max(p.batch, p.n / cut.block);
    cut.at_once = p.mirrored ? wanted : std::clamp<int64_t>(static_cast<int64_t>(room) / bytes, 1, wanted);
    cut.blocks_bytes =
        p.mirrored
            ? 0
            : static_cast<size_t>(round_up(cut.at_once * bytes, static_cast<int64_t>(workspace_alignment)));
}

// The product of a piece, and where its D is.
Problem product_of(const Problem& p, const Cut& cut, const TrianglePiece& piece, const Matrix& blocks)
{
    Problem product = problem_of(p, piece);
    if (piece.on_diagonal && cut.blocks_bytes > 0)
        product.d = blocks;
    product.simplify();
    return product;
}

Problem whole_of(const Problem& p)
{
    Problem whole = p;
    whole.triangle = Triangle::Whole;
    whole.mirrored = false;
    return whole;
}

// Is a D that is computed whole symmetric in all bits? An element and its mirror are sums of the same
// products in the same order, unless that depends on the place, or shares of K begin elsewhere in each
// tile.
Status find_mirrors(hg::Handle& handle, const Problem& p, Cut& cut)
{
    cut.mirrors = p.mirrored;
    if (!p.mirrored || cut.block < p.n || p.a != p.b || p.c.exists())
        return ok;
    const Problem whole = whole_of(p);
    if (composite_of(handle, whole))
        return ok;
    Plan decided;
    const Status status = decide(handle, whole, decided);
    cut.mirrors = status != ok || decided.sm90.stream_k || decided.backend->kernels[decided.kernel].uneven;
    return status;
}

// A mirror reads half of D, and writes half of it.
void predict_mirror(const hg::Handle& handle, const Problem& p, Cut& cut)
{
    if (!cut.mirrors)
        return;
    ++cut.launches;
    const double bytes = static_cast<double>(p.batch * bytes_of(p.d.type)) * static_cast<double>(p.n) *
                         static_cast<double>(p.n);
    if (cut.needs.predicted_us > 0 && handle.device.memory_bandwidth > 0)
        cut.needs.predicted_us += 1e6 * bytes / static_cast<double>(handle.device.memory_bandwidth);
}

// What the products need, and how many there are.
Status count_products(hg::Handle& handle, const Problem& p, Cut& cut, Needs& needs)
{
    const Matrix blocks = blocks_of(handle, p, cut.block);
    const Reserved reserved(handle, cut.blocks_bytes);
    Status status = ok;
    cut.launches = cut.elements = 0;
    for_each_piece(p, cut.block, cut.at_once, [&](const TrianglePiece& piece) {
        const Problem product = product_of(p, cut, piece, blocks);
        Needs of_piece;
        if (status == ok)
            status = needs_of(handle, product, of_piece);
        needs.include(of_piece);
        cut.elements += product.m * product.n * product.batch;
        ++cut.launches;
    });
    return status;
}

// One block at a time is the least that blocks can have.
Status plan_cut(hg::Handle& handle, const Problem& p, Cut& cut)
{
    Status status = plan_in_workspace(handle, cut.needs, [&](size_t room, Needs& needs, size_t& kept) {
        make_room(handle, p, room, cut);
        kept = cut.blocks_bytes;
        return count_products(handle, p, cut, needs);
    });
    if (status == ok)
        status = find_mirrors(handle, p, cut);
    predict_mirror(handle, p, cut);
    return status;
}

// The problem as the plan cache is asked for its cut, which depends on whether A is B.
Problem key_of(const Problem& p)
{
    Problem key = p;
    if (p.a == p.b)
        key.b.ptr = nullptr, key.b.array = nullptr;
    return key;
}

// A kernel for the whole problem; false where there is none, or in a mode in which sums are made of parts.
bool find_kernel(hg::Handle& handle, const Problem& p, Cut& cut)
{
    Plan found{};
    if (composite_of(handle, whole_of(p)) ||
        !try_plan(p, handle.device, handle.planning_options(), handle.served_by(), found) ||
        found.workspace > handle.workspace().bytes)
        return false;
    cut = cut_of(found);
    return true;
}

// The best of some cuts that the workspace suffices for, else the one that needs the least. The kernel that
// was forced, if it serves all at once.
Status search_cut(hg::Handle& handle, const Problem& p, Cut& best)
{
    constexpr int64_t tile = 128, most_blocks = 32, smallest = 2 * tile;
    const size_t bytes = handle.workspace().bytes;
    best.needs.bytes = std::numeric_limits<size_t>::max();
    if (find_kernel(handle, p, best) && best.plan.why == Why::Forced)
        return ok;
    for (int64_t blocks = 1; blocks <= most_blocks; blocks *= 2) {
        const int64_t block = round_up((p.n + blocks - 1) / blocks, blocks > 1 ? tile : 1);
        if (blocks > 1 && block < smallest)
            break;
        Cut cut{};
        cut.block = block;
        if (const Status status = plan_cut(handle, p, cut); status != ok)
            return status;
        const bool fits = cut.needs.bytes <= bytes, best_fits = best.needs.bytes <= bytes;
        if (fits && best_fits ? cut.is_better_than(best) : cut.needs.bytes < best.needs.bytes)
            best = cut;
    }
    return ok;
}

Status find_cut(hg::Handle& handle, const Problem& p, Cut& cut)
{
    if (find_mover(handle) == handle.backend_count)
        return fail(HGEMM_STATUS_NOT_SUPPORTED, "no backend of the handle has triangles");
    if (p.n > max_n)
        return fail(HGEMM_STATUS_NOT_SUPPORTED,
                    "triangles are served up to n = %" PRId64 ", this one has %" PRId64, max_n, p.n);
    if (const Plan* known = handle.cache->find_plan(key_of(p), handle.workspace())) {
        if (known->triangle_block == 0) {
            cut = cut_of(*known);
            return ok;
        }
        cut.block = known->triangle_block;
        return plan_cut(handle, p, cut);
    }
    const Status status = search_cut(handle, p, cut);
    Plan found = cut.plan;
    found.triangle_block = cut.block;
    if (status == ok)
        handle.cache->keep_plan(key_of(p), handle.workspace(), found);
    return status;
}

Status check_triangle(hg::Handle& handle, const Problem& p, Needs& needs)
{
    Cut cut{};
    const Status status = find_cut(handle, p, cut);
    needs = cut.needs;
    return status;
}

Status explain_triangle(hg::Handle& handle, const Problem& p, char* text, size_t length)
{
    Cut cut{};
    const Status status = find_cut(handle, p, cut);
    const double all = static_cast<double>(p.n) * static_cast<double>(p.n) * static_cast<double>(p.batch);
    if (status == ok && cut.block == 0)
        cut.plan.print(text, length);
    else if (status == ok)
        std::snprintf(text, length,
                      "triangle%s in %" PRId64 " launches with blocks of %" PRId64
                      " on the diagonal, of %s %% of D, workspace=%zu, moved by %s predicted_us=%s",
                      cut.mirrors ? " and its mirror" : "", cut.launches, cut.block,
                      fixed(100.0 * static_cast<double>(cut.elements) / all, 1).text(), cut.needs.bytes,
                      handle.backends[find_mover(handle)]->name, fixed(cut.needs.predicted_us, 1).text());
    return status;
}

Status move(hg::Handle& handle, const TriangleMove& what)
{
    const int mover = find_mover(handle);
    return handle.backends[mover]->move_triangle(handle, handle.states[mover], what);
}

// A block on the diagonal must not touch the half that was not asked for, so it is computed elsewhere.
Status run_piece(hg::Handle& handle, const Problem& p, const Cut& cut, const TrianglePiece& piece,
                 const Matrix& blocks)
{
    const Reserved reserved(handle, cut.blocks_bytes);
    const Status status = run_part(handle, product_of(p, cut, piece, blocks));
    const bool moves = piece.on_diagonal && cut.blocks_bytes > 0;
    return status == ok && moves ? move(handle, move_of_blocks(p, piece, blocks)) : status;
}

Status run_triangle(hg::Handle& handle, const Problem& p)
{
    Cut cut{};
    Status status = find_cut(handle, p, cut);
    if (status == ok)
        status = provide(handle, triangle_composite, cut.needs);
    if (status == ok)
        log_composite(handle, triangle_composite, p, "");
    if (status == ok && cut.block == 0)
        return run_plan(handle, p, cut.plan);
    const Matrix blocks = blocks_of(handle, p, cut.block);
    if (status == ok)
        for_each_piece(p, cut.block, cut.at_once, [&](const TrianglePiece& piece) {
            if (status == ok)
                status = run_piece(handle, p, cut, piece, blocks);
        });
    return status == ok && cut.mirrors ? move(handle, mirror_of(p)) : status;
}

}  // namespace

const Composite triangle_composite = {
    .what = "for a triangle", .check = check_triangle, .run = run_triangle, .explain = explain_triangle};

}  // namespace hg
