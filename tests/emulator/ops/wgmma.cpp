// wgmma: products of 64 rows by a warpgroup, with operands in shared memory.
#include "ops/wgmma.hpp"

#include "core/values.hpp"
#include "ops/async.hpp"

#include <array>
#include <cstring>
#include <deque>

namespace emu {

namespace {

// Op::imm[0] of a product is the number of its form.
std::deque<WgmmaForm>& wgmma_forms()
{
    static auto* const all = new std::deque<WgmmaForm>;
    return *all;
}

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

void read_a_registers(const Warpgroup& group, const Op& op, const WgmmaForm& form, std::vector<uint32_t>& a)
{
    const int per_register = 32 / form.a.bits;
    for (int warp = 0; warp < group_warps; warp++) {
        for (int reg = 0; reg < 4; reg++) {
            const uint8_t* base =
                group.warps[warp]->registers.data() + op.args[form.accumulators + reg].reg;
            for (int lane = 0; lane < warp_lanes; lane++) {
                const int row = 16 * warp + lane / 4 + 8 * (reg & 1),
                          column = (lane % 4 + 4 * (reg >> 1)) * per_register;
                uint32_t word;
                std::memcpy(&word, base + lane * 4, sizeof word);
                unpack_register(form.a, word, a.data() + row * form.k + column);
            }
        }
    }
}

// Every warp reads its rows of A and all of B; each must have waited for them.
void read_operands(Exec& x, Warpgroup& group, const Product& product, std::vector<uint32_t>& a,
                   std::vector<uint32_t>& b)
{
    const WgmmaForm& form = wgmma_form(x.op);
    SharedMatrix left = matrix_of(product.a_descriptor, form.a_mn_major);
    SharedMatrix right = matrix_of(product.b_descriptor, form.b_mn_major);
    std::array<Actor, group_warps> actors;
    for (int warp = 0; warp < group_warps; warp++)
        actors[warp] = {product.agents[warp], Proxy::Async, x.op.line, group.warps[warp]->index, -1};
    for (int warp = 0; warp < group_warps && !form.a_in_registers; warp++)
        fetch(x, *group.cta, from_row(left, 16 * warp), form.a, 16, form.k, {&actors[warp], 1},
              a.data() + 16 * warp * form.k);
    fetch(x, *group.cta, right, form.b, form.n, form.k, actors, b.data());
    if (form.a_in_registers)
        read_a_registers(group, x.op, form, a);
}

void finish_product(Deferred& deferred, const std::shared_ptr<Warpgroup>& group, Product& product)
{
    Exec x = deferred.exec();
    const WgmmaForm& form = wgmma_form(deferred.op);
    Chain& chain = *product.chain;
    std::vector<uint32_t> a(64 * form.k), b(form.n * form.k);
    read_operands(x, *group, product, a, b);
    if (form.negate_a)
        negate(form.a, a.data(), a.size());
    if (form.negate_b)
        negate(form.b, b.data(), b.size());
    if (!product.accumulate)
        std::fill(chain.values.begin(), chain.values.end(), 0);
    ElementProduct numbers{64, form.n, form.k, form.a, form.b, form.half_result, form.saturate};
    numbers.combine = form.a.kind == ElementKind::Bit ? IntegerShape::And : IntegerShape::Multiply;
    multiply_accumulate(x.machine.config, MatrixUnit::Wgmma, numbers, a.data(), b.data(),
                        chain.values.data());
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
    const WgmmaForm& form = wgmma_form(x.op);
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

void run_wgmma(Exec& x)
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
    x.machine.statistics.mma_flops += 2ull * 64 * product->chain->form.n * product->chain->form.k;
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

void run_wgmma_commit(Exec& x)
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

void run_wgmma_wait(Exec& x)
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

const WgmmaForm& wgmma_form(const Op& op) { return wgmma_forms()[op.imm[0]]; }

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

// m64nNkK, where a row of A has 32 bytes; integers have fewer widths.
void decode_shape(const ptx::Instruction& i, const Program& program, const std::string& shape,
                  WgmmaForm& form)
{
    int used = 0;
    const bool read = std::sscanf(shape.c_str(), "m64n%dk%d%n", &form.n, &form.k, &used) == 2 &&
                      used == static_cast<int>(shape.size());
    const bool integers = form.a.kind != ElementKind::Float;
    if (!read || form.k * form.a.bits != 256 || form.n < 8 || form.n > 256 || form.n % 8 != 0 ||
        (integers && form.n > 32 && form.n % 16 != 0) || (integers && form.n == 40))
        refuse(i, program, "no shape ." + shape + " with these types");
}

WgmmaForm decode_types(const ptx::Instruction& i, const Program& program)
{
    WgmmaForm form;
    Modifiers m(i, program);
    for (const char* word : {"mma_async", "sync", "aligned"})
        m.take(word);
    form.saturate = m.take("satfinite");
    const bool bits = m.take("and") && m.take("popc");
    std::vector<std::string> words;
    for (const std::string& word : i.modifiers)
        if (m.take(word))
            words.push_back(word);
    if (words.size() != 4 || !parse_matrix_element(words[2], false, form.a) ||
        !parse_matrix_element(words[3], false, form.b))
        refuse(i, program, "wgmma takes a shape, one type of result and two of operands");
    const std::string& result = words[1];
    const bool eights = form.a.kind == form.b.kind && form.a.bits == 8 && form.b.bits == 8 &&
                        form.a.width == 8 && form.b.width == 8;
    const bool floats = form.a.kind == ElementKind::Float, half = words[2] == "f16" || eights;
    if (!(words[2] == words[3] || eights) || form.a.kind == ElementKind::Double || form.a.bits == 4 ||
        form.a.width == 4 || form.a.width == 6 || bits != (form.a.kind == ElementKind::Bit) ||
        (floats ? result != "f32" && !(result == "f16" && half) : result != "s32") ||
        (form.saturate && form.a.kind != ElementKind::Integer))
        refuse(i, program, "types ." + result + "." + words[2] + "." + words[3] + " do not go together");
    form.half_result = result == "f16";
    decode_shape(i, program, words[0], form);
    form.accumulators = form.half_result ? form.n / 4 : form.n / 2;
    return form;
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

// What follows scale-d: signs of float operands, and which 16-bit ones are transposed.
void decode_signs(const ptx::Instruction& i, const Program& program, WgmmaForm& form)
{
    const bool floats = form.a.kind == ElementKind::Float, halves = floats && form.a.bits == 16;
    const size_t transposes = !halves ? 0 : form.a_in_registers ? 1 : 2;
    const size_t count = 4 + (floats ? 2 : 0) + transposes;
    expect_operands(i, program, count, count);
    if (!floats)
        return;
    const int scale_a = immediate(i, program, i.operands[4]),
              scale_b = immediate(i, program, i.operands[5]);
    if (std::abs(scale_a) != 1 || std::abs(scale_b) != 1)
        refuse(i, program, "the scales of A and B are 1 or -1");
    const int transposed_a = transposes == 2 ? immediate(i, program, i.operands[6]) : 0;
    const int transposed_b = transposes ? immediate(i, program, i.operands.back()) : 0;
    if ((transposed_a | transposed_b) & ~1)
        refuse(i, program, "the transpositions of A and B are 0 or 1");
    form.negate_a = scale_a < 0, form.negate_b = scale_b < 0;
    form.a_mn_major = transposed_a, form.b_mn_major = transposed_b;
}

void decode_wgmma_mma(const ptx::Instruction& i, Program& program, Op& op)
{
    WgmmaForm form = decode_types(i, program);
    form.a_in_registers = i.operands.size() > 1 && i.operands[1].form == ptx::Operand::Form::Vector;
    decode_signs(i, program, form);
    add_registers(i, program, op, i.operands[0], form.accumulators);
    if (form.a_in_registers)
        add_registers(i, program, op, i.operands[1], 4);
    else
        op.args.push_back(decode_arg(i.operands[1], program));
    op.args.push_back(decode_arg(i.operands[2], program));
    op.args.push_back(decode_arg(i.operands[3], program));
    op.imm[0] = static_cast<int>(wgmma_forms().size());
    wgmma_forms().push_back(form);
    op.run = run_wgmma;
}

void decode_wgmma(const ptx::Instruction& i, Program& program, Op& op)
{
    const std::string what = i.modifiers.empty() ? "" : i.modifiers[0];
    if (!i.has("sync") || !i.has("aligned"))
        refuse(i, program, "wgmma needs .sync.aligned");
    if (what == "mma_async") {
        decode_wgmma_mma(i, program, op);
        return;
    }
    allow_modifiers(i, program, {"fence", "commit_group", "wait_group", "sync", "aligned"});
    expect_operands(i, program, what == "wait_group", what == "wait_group");
    if (what == "wait_group")
        op.imm[0] = immediate(i, program, i.operands[0]);
    op.run = what == "fence"          ? run_fence
             : what == "commit_group" ? run_wgmma_commit
             : what == "wait_group"   ? run_wgmma_wait
                                      : nullptr;
}

}  // namespace

void add_wgmma(DecoderTable& table) { table.by_opcode["wgmma"] = decode_wgmma; }

}  // namespace emu
