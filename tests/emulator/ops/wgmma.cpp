// wgmma: products of 64 rows by a warpgroup, with operands in shared memory.
#include "ops/wgmma.hpp"

#include "numerics/tensor_core.hpp"
#include "ops/async.hpp"

namespace emu {

namespace {

enum Slot { slot_n, slot_flags, slot_accumulators };
enum Flag {
    is_bf16 = 1,
    half_result = 2,
    a_registers = 4,
    negate_a = 8,
    negate_b = 16,
    a_mn_major = 32,
    b_mn_major = 64
};
constexpr int depth = 16;  // K of one product

SharedMatrix matrix_of(uint64_t descriptor, bool mn_major)
{
    constexpr uint32_t spans[] = {0, 128, 64, 32};
    SharedMatrix matrix;
    matrix.start = (descriptor & 0x3fff) << 4;
    matrix.leading = (descriptor >> 16 & 0x3fff) << 4;
    matrix.stride = (descriptor >> 32 & 0x3fff) << 4;
    matrix.base_offset = descriptor >> 49 & 7;
    matrix.span = spans[descriptor >> 62];
    matrix.mn_major = mn_major;
    return matrix;
}

// The same matrix from a row on, a multiple of 16.
SharedMatrix from_row(SharedMatrix matrix, uint32_t row)
{
    uint32_t elements = matrix.span / 2;
    if (matrix.mn_major && matrix.span)
        matrix.start += row / elements * matrix.leading + row % elements * 2;
    else
        matrix.start += row / 8 * matrix.stride;
    return matrix;
}

void read_a_registers(const Warpgroup& group, const Op& op, const WgmmaForm& form, std::vector<uint16_t>& a)
{
    for (int warp = 0; warp < group_warps; warp++) {
        for (int reg = 0; reg < 4; reg++) {
            const uint8_t* base =
                group.warps[warp]->registers.data() + op.args[form.accumulators + reg].reg;
            for (int lane = 0; lane < warp_lanes; lane++) {
                uint32_t pair;
                std::memcpy(&pair, base + lane * 4, sizeof pair);
                int row = 16 * warp + lane / 4 + 8 * (reg & 1), column = 2 * (lane % 4) + 8 * (reg >> 1);
                a[row * depth + column] = static_cast<uint16_t>(pair);
                a[row * depth + column + 1] = static_cast<uint16_t>(pair >> 16);
            }
        }
    }
}

// Every warp reads its rows of A and all of B; each must have waited for them.
void read_operands(Exec& x, Warpgroup& group, const Product& product, std::vector<uint16_t>& a,
                   std::vector<uint16_t>& b)
{
    const WgmmaForm& form = product.chain->form;
    SharedMatrix left = matrix_of(product.a_descriptor, wgmma_form(x.op).a_mn_major);
    SharedMatrix right = matrix_of(product.b_descriptor, wgmma_form(x.op).b_mn_major);
    int readers = x.machine.checker.races() ? group_warps : 1;
    for (int warp = 0; warp < group_warps; warp++) {
        Actor actor{product.agents[warp], Proxy::Async, x.op.line, group.warps[warp]->index, -1};
        if (!wgmma_form(x.op).a_in_registers)
            fetch(x, *group.cta, from_row(left, 16 * warp), 16, depth, actor, a.data() + 16 * warp * depth);
        if (warp < readers)
            fetch(x, *group.cta, right, form.n, depth, actor, b.data());
    }
    if (wgmma_form(x.op).a_in_registers)
        read_a_registers(group, x.op, form, a);
}

void finish_product(Deferred& deferred, const std::shared_ptr<Warpgroup>& group, Product& product)
{
    Exec x = deferred.exec();
    WgmmaForm form = wgmma_form(deferred.op);
    Chain& chain = *product.chain;
    std::vector<uint16_t> a(64 * depth), b(form.n * depth);
    read_operands(x, *group, product, a, b);
    for (uint16_t& value : a)
        value ^= form.negate_a ? 0x8000 : 0;
    for (uint16_t& value : b)
        value ^= form.negate_b ? 0x8000 : 0;
    if (!product.accumulate)
        std::fill(chain.values.begin(), chain.values.end(), 0);
    MatrixShape shape;
    shape.m = 64, shape.n = form.n, shape.k = depth;
    shape.a = shape.b = form.bf16 ? Half::Bf16 : Half::F16;
    shape.half_result = form.half_result;
    multiply_accumulate(tensor_core(x.machine.config), shape, a.data(), b.data(), chain.values.data());
    for (int agent : product.agents) {
        x.machine.checker.release(agent, product.clock);
        x.machine.checker.finish_async(agent);
    }
    deferred.finished();
    group->finished++;
    if (--chain.unfinished == 0) {
        return_registers(*group, chain);
        std::erase(group->chains, product.chain);
    }
}

uint64_t uniform_value(Exec& x, const Arg& arg)
{
    uint64_t value = lane_value(x, arg, 0);
    for (int lane = 1; lane < warp_lanes; lane++)
        if (lane_value(x, arg, lane) != value)
            x.fault("wgmma-divergence", "an operand differs between lanes of a warp");
    return value;
}

// The descriptors and scale-d, which all warps must agree on.
void agree_on_operands(Exec& x, Product& product, bool first)
{
    WgmmaForm form = wgmma_form(x.op);
    size_t next = form.accumulators + (form.a_in_registers ? 4 : 1);
    uint64_t a = form.a_in_registers ? 0 : uniform_value(x, x.op.args[next - 1]);
    uint64_t b = uniform_value(x, x.op.args[next]);
    bool accumulate = uniform_value(x, x.op.args[next + 1]) != 0;
    if (!first && (product.op != &x.op || a != product.a_descriptor || b != product.b_descriptor ||
                   accumulate != product.accumulate))
        x.fault("wgmma-divergence", "the warps of a warpgroup issue different products");
    product.op = &x.op;
    product.a_descriptor = a, product.b_descriptor = b, product.accumulate = accumulate;
}

void run_mma(Exec& x)
{
    x.require_convergence();
    Warpgroup& group = warpgroup_of(x);
    int warp = x.warp.index % group_warps;
    uint64_t number = group.registers[warp].issued++;
    bool first = number == group.first + group.products.size();
    if (first) {
        auto product = std::make_shared<Product>();
        product->chain = find_chain(x, group);
        if (!product->chain)
            group.chains.push_back(product->chain = std::make_shared<Chain>(wgmma_form(x.op)));
        product->chain->unfinished++;
        group.products.push_back(product);
    }
    std::shared_ptr<Product> product = group.product(number);
    agree_on_operands(x, *product, first);
    take_registers(x, group, *product, number);
    product->agents[warp] = x.machine.checker.start_async(x.warp.agent);
    product->issued |= 1u << warp;
    if (product->issued != (1u << group_warps) - 1)
        return;
    x.machine.statistics.mma_flops += 2ull * 64 * product->chain->form.n * depth;
    auto shared = std::static_pointer_cast<Warpgroup>(x.warp.extension[ext_wgmma]);
    auto deferred = std::make_shared<Deferred>(x, all_lanes);
    AsyncOp op;
    op.may_finish = [shared, number] { return shared->finished == number; };
    op.finish = [deferred, shared, product] { finish_product(*deferred, shared, *product); };
    op.name = "wgmma.mma_async";
    op.line = x.op.line;
    x.cta.cluster->start(std::move(op));
}

void run_fence(Exec& x)
{
    x.require_convergence();
    warpgroup_of(x).registers[x.warp.index % group_warps].fences++;
}

void run_commit(Exec& x)
{
    x.require_convergence();
    WarpRegisters& mine = warpgroup_of(x).registers[x.warp.index % group_warps];
    mine.groups.push_back(mine.issued);
}

void forget_products(Warpgroup& group)
{
    uint64_t waited = group.registers[0].waited;
    for (const WarpRegisters& registers : group.registers)
        waited = std::min(waited, registers.waited);
    for (; group.first < waited; group.first++)
        group.products.pop_front();
}

void run_wait(Exec& x)
{
    x.require_convergence();
    Warpgroup* group = &warpgroup_of(x);
    WarpRegisters& mine = group->registers[x.warp.index % group_warps];
    size_t newest = x.op.imm[0];
    if (mine.groups.size() <= newest)
        return;
    uint64_t target = mine.groups[mine.groups.size() - newest - 1];
    if (group->finished < target) {
        auto what = [group, target] {
            std::string text = std::to_string(target - group->finished) + " products of its warpgroup";
            const Product& next = *group->product(group->finished);
            return next.issued == (1u << group_warps) - 1 ? text
                                                          : text + "; not all four warps have issued them";
        };
        x.wait([group, target] { return group->finished >= target; }, what, true);
        return;
    }
    for (uint64_t number = mine.waited; number < target; number++)
        x.machine.checker.acquire(x.warp.agent, group->product(number)->clock);
    mine.waited = std::max(mine.waited, target);
    mine.groups.erase(mine.groups.begin(), mine.groups.end() - static_cast<std::ptrdiff_t>(newest));
    forget_products(*group);
}

}  // namespace

WgmmaForm wgmma_form(const Op& op)
{
    int flags = op.imm[slot_flags];
    WgmmaForm form;
    form.n = op.imm[slot_n];
    form.accumulators = op.imm[slot_accumulators];
    form.bf16 = flags & is_bf16;
    form.half_result = flags & half_result;
    form.a_in_registers = flags & a_registers;
    form.negate_a = flags & negate_a;
    form.negate_b = flags & negate_b;
    form.a_mn_major = flags & a_mn_major;
    form.b_mn_major = flags & b_mn_major;
    return form;
}

Warpgroup& warpgroup_of(Exec& x)
{
    if (!x.warp.extension[ext_wgmma]) {
        size_t first = x.warp.index / group_warps * group_warps;
        if (first + group_warps > x.cta.warps.size())
            x.fault("wgmma-warpgroup", "wgmma needs four warps, the first of a multiple of four");
        auto group = std::make_shared<Warpgroup>();
        group->cta = &x.cta;
        size_t rows = x.grid.program->register_bytes / (warp_lanes * 4) + 1;
        for (int i = 0; i < group_warps; i++) {
            WarpRegisters& registers = group->registers[i];
            group->warps[i] = &x.cta.warps[first + i];
            registers.in_flight.assign(rows, 0);
            registers.read_by.assign(rows, 0);
            registers.touched.assign(rows, 0);
            registers.copied.assign(rows, 0);
            group->warps[i]->extension[ext_wgmma] = group;
        }
    }
    if (x.machine.config.check >= 1)
        x.warp.watch = watch_registers;
    return *static_cast<Warpgroup*>(x.warp.extension[ext_wgmma].get());
}

namespace {

void decode_shape(const ptx::Instruction& i, Program& program, Op& op)
{
    const std::string& shape = i.modifiers.size() == 7 ? i.modifiers[3] : "";
    int n = 0, used = 0;
    if (std::sscanf(shape.c_str(), "m64n%dk16%n", &n, &used) != 1 ||
        used != static_cast<int>(shape.size()) || n < 8 || n > 256 || n % 8 != 0)
        refuse(i, program,
               "wgmma takes one type of result and two of operands, and m64nNk16 with N from 8 to 256 in "
               "steps of 8");
    const std::string &result = i.modifiers[4], &a = i.modifiers[5], &b = i.modifiers[6];
    bool bf16 = a == "bf16";
    if (a != b || !(bf16 || a == "f16") || !(result == "f32" || (result == "f16" && !bf16)))
        refuse(i, program, "types ." + result + "." + a + "." + b + " are not emulated");
    op.imm[slot_n] = n;
    op.imm[slot_flags] |= (bf16 ? is_bf16 : 0) | (result == "f16" ? half_result : 0);
    op.imm[slot_accumulators] = result == "f16" ? n / 4 : n / 2;
}

void add_registers(const ptx::Instruction& i, Program& program, Op& op, const ptx::Operand& operand,
                   size_t count)
{
    if (operand.form != ptx::Operand::Form::Vector || operand.parts.size() != count)
        refuse(i, program, "a vector of " + std::to_string(count) + " registers is expected");
    for (const ptx::Operand& part : operand.parts) {
        if (part.form != ptx::Operand::Form::Register)
            refuse(i, program, "a vector of registers is expected");
        op.args.push_back(decode_arg(part, program, i, {ptx::Kind::Bits, 32, 1}));
    }
}

void decode_mma(const ptx::Instruction& i, Program& program, Op& op)
{
    decode_shape(i, program, op);
    bool registers = i.operands.size() > 1 && i.operands[1].form == ptx::Operand::Form::Vector;
    expect_operands(i, program, registers ? 7 : 8, registers ? 7 : 8);
    add_registers(i, program, op, i.operands[0], op.imm[slot_accumulators]);
    if (registers)
        add_registers(i, program, op, i.operands[1], 4);
    else
        op.args.push_back(decode_arg(i.operands[1], program));
    op.args.push_back(decode_arg(i.operands[2], program));
    op.args.push_back(decode_arg(i.operands[3], program));
    int scale_a = immediate(i, program, i.operands[4]), scale_b = immediate(i, program, i.operands[5]);
    if (std::abs(scale_a) != 1 || std::abs(scale_b) != 1)
        refuse(i, program, "the scales of A and B are 1 or -1");
    int transposed_a = registers ? 0 : immediate(i, program, i.operands[6]);
    int transposed_b = immediate(i, program, i.operands.back());
    if ((transposed_a | transposed_b) & ~1)
        refuse(i, program, "the transpositions of A and B are 0 or 1");
    op.imm[slot_flags] |= (registers ? a_registers : 0) | (scale_a < 0 ? negate_a : 0) |
                          (scale_b < 0 ? negate_b : 0) | (transposed_a ? a_mn_major : 0) |
                          (transposed_b ? b_mn_major : 0);
    op.run = run_mma;
}

void decode_wgmma(const ptx::Instruction& i, Program& program, Op& op)
{
    const std::string what = i.modifiers.empty() ? "" : i.modifiers[0];
    if (!i.has("sync") || !i.has("aligned"))
        refuse(i, program, "wgmma needs .sync.aligned");
    if (what == "mma_async") {
        decode_mma(i, program, op);
        return;
    }
    allow_modifiers(i, program, {"fence", "commit_group", "wait_group", "sync", "aligned"});
    expect_operands(i, program, what == "wait_group", what == "wait_group");
    if (what == "wait_group")
        op.imm[0] = immediate(i, program, i.operands[0]);
    op.run = what == "fence"          ? run_fence
             : what == "commit_group" ? run_commit
             : what == "wait_group"   ? run_wait
                                      : nullptr;
}

}  // namespace

void add_wgmma(DecoderTable& table) { table.by_opcode["wgmma"] = decode_wgmma; }

}  // namespace emu
