// Launches of what is no product: a triangle is moved.
#include "mutation/kernels.hpp"
#include "mutation/products.hpp"

#include "arch/common/host/triangle.hpp"
#include "arch/sm80/kernels.hpp"
#include "src/plan/triangle.hpp"

#include <cstdint>
#include <cstring>

namespace mutation {
namespace {

// A result that begins with random numbers, as two bytes each.
void* changed_result(emu::Machine& machine, Setup& setup, int64_t elements)
{
    const auto count = static_cast<size_t>(elements);
    void* const to = empty_result(machine, setup, 2 * count);
    return std::memcpy(to, random_halves(machine, count, false), 2 * count);
}

}  // namespace

// Shape 0: by vectors, from the upper half of two matrices to the lower one, tiles of all kinds. Then
// floats by elements: the lower half of a block to a matrix whose rows are not aligned; and a matrix in a
// pointer array, from half to half. One CTA has all tiles.
Setup arrange_sm80_triangle(emu::Machine& machine, const std::string& name, int shape)
{
    const hg::KernelInfo& kernel = info_of(hg::sm80::kernels, name);
    const bool copies = shape == 1;
    const int64_t n = 4 * hg::triangle_tile - (copies ? 27 : 24), batch = shape == 0 ? 2 : 1;
    const int64_t ld = n + (copies ? 1 : 8), words = shape == 0 ? 1 : 2;
    Setup setup;
    hg::Matrix d{};
    d.type = shape == 0 ? Type::F16 : Type::F32;
    d.ld = ld;
    d.batch_stride = n * ld;
    d.ptr = changed_result(machine, setup, words * batch * n * ld);
    hg::TriangleMove move{d, d, n, batch, !copies, !copies};
    if (copies)
        move.from.ptr = random_halves(machine, static_cast<size_t>(words * n * ld), false);
    if (shape == 2) {
        void* const first = static_cast<float*>(d.ptr) - 8;
        auto* const array = reinterpret_cast<void**>(random_halves(machine, sizeof(void*) / 2, false));
        *array = first;
        move.from.ptr = move.to.ptr = nullptr;
        move.from.array = move.to.array = array;
        move.from.offset = move.to.offset = 8;
    }
    const hg::TriangleParams params = hg::pack_triangle(move, 0, batch);
    setup.launch.grid.x = 1;
    setup.launch.block.x = kernel.threads;
    setup.launch.dynamic_shared = kernel.smem_bytes;
    set_parameters(setup, params);
    return setup;
}

}  // namespace mutation
