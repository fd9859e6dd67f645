#include "random_problem.hpp"

#include "src/api/general_form.hpp"
#include "src/check/canonical.hpp"
#include "src/plan/dispatch.hpp"

#include <algorithm>
#include <cstring>

namespace hg::planning {
namespace {

Device gpu(const char* name, int cc, int sm_count, int smem_kib, int64_t l2_mib, int64_t gigabytes_a_second)
{
    Device device{};
    device.cc = cc;
    device.sm_count = sm_count;
    device.smem_per_block = smem_kib * 1024;
    device.l2_bytes = l2_mib << 20;
    device.memory_bandwidth = gigabytes_a_second * 1'000'000'000;
    std::strcpy(device.name, name);
    return device;
}

// Sizes: small, large, multiples of a vector, powers of two and their neighbours, those of language models,
// any.
int64_t draw_size(Random& random)
{
    constexpr int64_t usual[] = {128,  576,   1536,  4096,  5120,  7168,
                                 8192, 11008, 14336, 28672, 57344, 128256};
    switch (random.below(12)) {
    case 0:
    case 1: return 1 + random.below(16);
    case 2:
    case 3: return 1 + random.below(512);
    case 4: return 8 * (1 + random.below(2048));
    case 5: return std::max<int64_t>((int64_t{1} << random.below(33)) + random.below(3) - 1, 1);
    case 6: return std::max<int64_t>(static_cast<int64_t>(random.next() >> (1 + random.below(63))), 1);
    default: return random.pick(usual);
    }
}

// Used for half of the problems, so that their rows can be read by vectors.
int64_t round_up(int64_t size)
{
    constexpr int64_t vector = 8;
    return size > INT64_MAX - vector ? size : (size + vector - 1) / vector * vector;
}

// A leading dimension for lines of `inner` elements.
int64_t draw_line(Random& random, int64_t inner)
{
    constexpr int64_t most = INT64_MAX / 2;
    inner = std::clamp<int64_t>(inner, 1, most);
    switch (random.below(16)) {
    case 0: return inner + random.below(9);
    case 1: return round_up(inner);
    case 2: return inner + random.below(1 << 20);
    case 3: return inner + static_cast<int64_t>(random.next() >> (2 + random.below(61)));
    default: return inner;
    }
}

// The step to the next problem, of matrices with so many lines.
int64_t draw_stride(Random& random, int64_t line, int64_t lines)
{
    const int64_t padding = random.one_in(4) ? random.below(64) : 0;
    int64_t dense;
    if (__builtin_mul_overflow(line, lines, &dense) || __builtin_add_overflow(dense, padding, &dense) ||
        random.one_in(16))
        return random.below(1 << 20);
    return dense;
}

int64_t draw_operand_stride(Random& random, int64_t line, int64_t lines)
{
    const int64_t stride = draw_stride(random, line, lines);
    return random.one_in(6) ? 0 : random.one_in(12) ? -stride : stride;
}

// An address for elements of `bytes` bytes; most are aligned to vectors.
template <typename T>
T* draw_address(Random& random, int64_t bytes)
{
    const int64_t offset = random.one_in(12) ? bytes * random.below(16) : 0;
    return reinterpret_cast<T*>((int64_t{1} << 40) + 256 * random.below(1 << 20) + offset);
}

void draw_scalars(Random& random, hgemm_args_t& g)
{
    constexpr float alphas[] = {1.0f, 1.0f, 1.0f, -2.5f, 0.0f}, betas[] = {0.0f, 0.0f, 1.0f, -0.5f};
    g.alpha = random.pick(alphas);
    g.beta = random.pick(betas);
    if (random.one_in(12)) {
        g.alpha_device = draw_address<float>(random, 4);
        g.beta_device = draw_address<float>(random, 4);
    }
}

void draw_matrices(Random& random, hgemm_args_t& g)
{
    const bool column = g.layout == HGEMM_COL_MAJOR;
    const bool a_along_m = column == (g.transa == HGEMM_NO_TRANS);
    const bool b_along_k = column == (g.transb == HGEMM_NO_TRANS);
    const int64_t lines_of_d = column ? g.n : g.m, line_of_d = column ? g.m : g.n;
    const int64_t bytes_d = g.type_d == HGEMM_F32 ? 4 : 2, bytes_c = g.type_c == HGEMM_F32 ? 4 : 2;
    g.lda = draw_line(random, a_along_m ? g.m : g.k);
    g.ldb = draw_line(random, b_along_k ? g.k : g.n);
    g.ldc = draw_line(random, line_of_d);
    g.ldd = draw_line(random, line_of_d);
    g.stride_a = draw_operand_stride(random, g.lda, a_along_m ? g.k : g.m);
    g.stride_b = draw_operand_stride(random, g.ldb, b_along_k ? g.n : g.k);
    g.stride_c = draw_operand_stride(random, g.ldc, lines_of_d);
    g.stride_d = draw_stride(random, g.ldd, lines_of_d);
    g.a = draw_address<void>(random, 2);
    g.b = draw_address<void>(random, 2);
    g.c = draw_address<void>(random, bytes_c);
    g.d = draw_address<void>(random, bytes_d);
    if (random.one_in(16)) {
        g.a_array = draw_address<const void* const>(random, 8);
        g.b_array = draw_address<const void* const>(random, 8);
        g.c_array = draw_address<const void* const>(random, 8);
        g.d_array = draw_address<void* const>(random, 8);
    }
}

void draw_epilogue(Random& random, hgemm_args_t& g)
{
    if (random.one_in(5)) {
        g.bias_mode = static_cast<hgemm_bias_t>(1 + random.below(2));
        g.bias_type = static_cast<hgemm_type_t>(1 + random.below(3));
        g.bias = draw_address<void>(random, 4);
        g.stride_bias = random.below(1 << 16);
    }
    if (random.one_in(5))
        g.activation = static_cast<hgemm_activation_t>(1 + random.below(4));
    if (random.one_in(12) && !g.d_array) {
        g.aux = draw_address<void>(random, 4);
        g.ldaux = draw_line(random, g.layout == HGEMM_COL_MAJOR ? g.m : g.n);
        g.stride_aux = draw_stride(random, g.ldaux, g.layout == HGEMM_COL_MAJOR ? g.n : g.m);
    }
}

hgemm_args_t draw_args(Random& random)
{
    constexpr hgemm_op_t ops[] = {HGEMM_NO_TRANS, HGEMM_TRANS, HGEMM_CONJ_TRANS};
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.layout = random.one_in(2) ? HGEMM_ROW_MAJOR : HGEMM_COL_MAJOR;
    g.transa = random.pick(ops);
    g.transb = random.pick(ops);
    g.type_ab = random.one_in(2) ? HGEMM_F16 : HGEMM_BF16;
    g.type_c = static_cast<hgemm_type_t>(1 + random.below(3));
    g.type_d = random.one_in(4) ? static_cast<hgemm_type_t>(1 + random.below(3)) : g.type_ab;
    g.m = draw_size(random);
    g.n = draw_size(random);
    g.k = random.one_in(24) ? 0 : draw_size(random);
    if (random.one_in(2)) {
        g.m = round_up(g.m);
        g.n = round_up(g.n);
        g.k = round_up(g.k);
    }
    g.batch_count = random.one_in(4) ? draw_size(random) : 1;
    draw_scalars(random, g);
    draw_matrices(random, g);
    draw_epilogue(random, g);
    return g;
}

// Turns a problem into one with groups, as hgemm_grouped_ex makes them: C is D, A is K-major.
Problem to_groups(Random& random, const Problem& product)
{
    constexpr int64_t max_groups = 4096;
    const bool masked = random.one_in(2);
    auto* const sizes = draw_address<const int64_t>(random, 8);
    Problem p{};
    p.m = product.m;
    p.n = product.n;
    p.k = product.k;
    p.batch = 1 + random.below(max_groups);
    p.type_ab = product.type_ab;
    p.alpha = product.alpha;
    p.beta = product.beta;
    if (p.k > 0) {
        const int64_t line = product.a.k_stride == 1 ? product.a.row_stride : product.k;
        p.a = {product.a.ptr, nullptr, line, 1, masked ? product.a.batch_stride : 0};
        p.b = product.b;
    }
    p.d = {product.d.ptr, nullptr, product.d.ld, masked ? product.d.batch_stride : 0, product.d.type};
    if (p.beta != 0.0f)
        p.c = p.d;
    p.groups = {sizes, masked ? GroupsBy::Counts : GroupsBy::Offsets, false, false, 0};
    p.simplify();
    return p;
}

// A kernel to force; seldom one that does not run on the device.
void force_kernel(Random& random, const Device& device, Options& options)
{
    const auto backends = all_backends();
    const auto draw = [&] { return backends[random.below(static_cast<int64_t>(backends.size()))]; };
    const Backend* drawn = draw();
    while (!drawn->serves(device) && !random.one_in(16))
        drawn = draw();
    const Backend& backend = *drawn;
    std::strcpy(options.kernel, backend.kernels[random.below(backend.kernel_count)].name);
    if (random.one_in(3))
        options.split = static_cast<int>(1 + random.below(18));
    if (random.one_in(3))
        options.swap_ab = random.one_in(2) ? SwapAb::Off : SwapAb::On;
    if (random.one_in(3))
        options.stream_k = random.one_in(2) ? StreamK::Off : StreamK::On;
    if (random.one_in(3))
        options.pdl = static_cast<Pdl>(1 + random.below(3));
}

}  // namespace

uint64_t Random::next()
{
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;  // splitmix64
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

std::span<const Device> devices()
{
    static const Device all[] = {
        gpu("A100", 80, 108, 163, 40, 1'555),      gpu("A10", 86, 72, 99, 6, 600),
        gpu("Orin", 87, 16, 163, 4, 204),          gpu("L40", 89, 142, 99, 96, 864),
        gpu("H100", 90, 132, 227, 50, 3'352),      gpu("H200", 90, 132, 227, 50, 4'890),
        gpu("H100 PCIe", 90, 114, 227, 50, 2'039), gpu("a seventh of an H100", 90, 16, 227, 6, 419),
        gpu("B200", 100, 148, 227, 126, 8'000),    gpu("B300", 103, 148, 227, 126, 8'000),
        gpu("Rubin", 107, 224, 227, 126, 0),       gpu("Thor", 110, 20, 227, 32, 273),
        gpu("RTX 5090", 120, 170, 99, 96, 1'792),  gpu("GB10", 121, 48, 99, 24, 0),
    };
    return all;
}

Problem draw_problem(Random& random)
{
    for (;;) {
        const hgemm_args_t args = draw_args(random);
        hgemm_args_t checked;
        if (check_args(&args, Pointers::Unchecked, checked) != ok || is_empty(checked))
            continue;
        const Problem product = to_problem(checked);
        const bool plain = !product.d.array && product.activation == Activation::None && !product.aux.ptr &&
                           product.bias.along == BiasAlong::None && !product.alpha_device;
        return plain && random.one_in(12) ? to_groups(random, product) : product;
    }
}

Options draw_options(Random& random, const Device& device)
{
    constexpr size_t workspaces[] = {
        0, 4, 256, 100'000, size_t{192} << 20, size_t{192} << 20, size_t{1} << 46};
    Options options{};
    options.workspace = random.pick(workspaces);
    if (random.one_in(4))
        force_kernel(random, device, options);
    else if (random.one_in(8))
        std::strcpy(options.backend, all_backends()[random.below(all_backends().size())]->name);
    if (random.one_in(6))
        options.mode = Mode::BatchInvariant;
    if (random.one_in(5))
        options.sm_limit = static_cast<int>(1 + random.below(2 * device.sm_count));
    return options;
}

}  // namespace hg::planning
