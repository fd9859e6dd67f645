// What all arrangements of the library's products share: problems as its dispatcher would pass them to a
// backend.
#pragma once

#include "mutation/kernels.hpp"

#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace mutation {

using hg::Major;
using hg::Type;

// "<kernel>_<type>[_<majors>]", where it is not one for all of them: "<kernel>". An x is K until
// in_turn() says otherwise.
struct Variant {
    bool bf16;
    Major a = Major::K, b = Major::K;
};

inline Variant variant_of(const std::string& name)
{
    Variant variant{name.find("_bf16") != std::string::npos};
    const std::string majors = name.substr(name.rfind('_') + 1);
    if (majors.size() == 2) {
        variant.a = majors[0] == 'm' ? Major::MN : Major::K;
        variant.b = majors[1] == 'n' ? Major::MN : Major::K;
    } else if (majors == "m") {
        variant.a = Major::MN;
    }
    return variant;
}

// An entry point for either major of A serves one in even shapes, the other one in odd ones.
inline Variant in_turn(Variant variant, const std::string& name, int shape)
{
    if (name.rfind("_x") == name.size() - 3 && shape % 2 != 0)
        variant.a = Major::MN;
    return variant;
}

template <size_t Count>
const hg::KernelInfo& info_of(const hg::KernelInfo (&kernels)[Count], const std::string& name)
{
    for (const hg::KernelInfo& kernel : kernels)
        if (name == kernel.name || name.rfind(std::string(kernel.name) + "_f16", 0) == 0 ||
            name.rfind(std::string(kernel.name) + "_bf16", 0) == 0)
            return kernel;
    throw std::runtime_error("no kernel for " + name);
}

// What a shape asks for, beside its sizes.
struct Asked {
    Type type_d = Type::F16;
    int64_t padding = 8;      // of each line of D
    bool everything = false;  // C, bias, activation, aux
    bool nothing = false;     // alpha is 0, which only the device knows
    bool biased = false;      // a bias
    bool for_tma = false;     // lines of C are as long as those of D
    Type type_c = Type::F16;
    bool unaligned = false;  // lines of A and B begin anywhere
};

// The dispatcher turns an alpha of 0 that the host knows into k = 0; backends meet it in device memory.
inline const float* zero_on_device(emu::Machine& machine)
{
    return static_cast<const float*>(std::memset(random_halves(machine, 2, false), 0, sizeof(float)));
}

inline void add_operand(emu::Machine& machine, hg::Operand& o, Major major, int64_t rows, int64_t k,
                        int64_t batch, bool bf16, bool unaligned)
{
    const int64_t line = ((major == Major::K ? k : rows) + 15) / 8 * 8 + (unaligned ? 1 : 0);
    const int64_t lines = major == Major::K ? rows : k;
    o.row_stride = major == Major::K ? line : 1;
    o.k_stride = major == Major::K ? 1 : line;
    o.batch_stride = line * lines;
    o.ptr = random_halves(machine, static_cast<size_t>(line * lines * batch), bf16);
}

inline hg::Problem make_problem(emu::Machine& machine, Setup& setup, int64_t m, int64_t n, int64_t k,
                                int64_t batch, const Variant& variant, const Asked& asked)
{
    hg::Problem p{};
    p.m = m, p.n = n, p.k = k, p.batch = batch;
    p.type_ab = variant.bf16 ? Type::BF16 : Type::F16;
    p.alpha = 1.5f;
    if (asked.nothing)
        p.alpha_device = zero_on_device(machine);
    add_operand(machine, p.a, variant.a, m, k, batch, variant.bf16, asked.unaligned);
    add_operand(machine, p.b, variant.b, n, k, batch, variant.bf16, asked.unaligned);
    const int64_t ld = n + asked.padding, bytes = hg::bytes_of(asked.type_d);
    p.d.type = asked.type_d;
    p.d.ld = ld;
    p.d.batch_stride = m * ld;
    p.d.ptr = empty_result(machine, setup, static_cast<size_t>(m * ld * batch * bytes));
    if (asked.biased || asked.everything) {
        p.bias.type = Type::F16;
        p.bias.along = hg::BiasAlong::Columns;
        p.bias.batch_stride = n;
        p.bias.ptr = random_halves(machine, static_cast<size_t>(n * batch), false);
    }
    if (!asked.everything)
        return p;
    p.beta = 0.5f;
    const bool floats = asked.type_c == Type::F32;
    p.c.type = asked.type_c;
    p.c.ld = asked.for_tma ? ld : n + 1;
    p.c.batch_stride = m * p.c.ld;
    p.c.ptr = random_halves(machine, static_cast<size_t>(p.c.batch_stride * batch * (floats ? 2 : 1)),
                            asked.type_c == Type::BF16);
    p.aux.type = asked.type_d;
    p.aux.ld = ld;
    p.aux.batch_stride = m * ld;
    p.aux.ptr = empty_result(machine, setup, static_cast<size_t>(m * ld * batch * bytes));
    p.activation = hg::Activation::Relu;
    return p;
}

// The launch that a plan means.
template <typename Params>
void set_launch(Setup& setup, const hg::KernelInfo& kernel, const hg::Plan& plan, const Params& params)
{
    setup.launch.grid.x = static_cast<uint32_t>(plan.grid);
    setup.launch.cluster.x = static_cast<uint32_t>(std::max(plan.cluster, 1));
    setup.launch.block.x = kernel.threads;
    setup.launch.dynamic_shared = kernel.smem_bytes;
    setup.launch.overlaps = plan.uses_pdl();
    set_parameters(setup, params);
}

}  // namespace mutation
