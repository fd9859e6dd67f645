// tcgen05.mma of kind::f16: one thread starts a product of the whole CTA or CTA pair, which reads its
// operands later.
#include "ops/tcgen05.hpp"

#include "ops/shared_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace emu {

namespace {

constexpr uint32_t a_columns = product_k / 2;  // of A in tensor memory, two elements each

// What the decoder remembers: Op::imm, and the places of values in Op::args.
enum { imm_group, imm_weights, imm_a_in_tmem, imm_scale, imm_masks };
enum { arg_b, arg_descriptor, arg_enable, arg_a };  // then the masks

struct Work {
    TensorProduct product;
    std::vector<Cta*> ctas;
    uint32_t column = 0, a_column = 0;
    bool half = false;  // the other half of each quarter of the lanes
    bool a_in_tmem = false, accumulate = false;
    int scale = 0;
    SharedMatrix a, b;
    uint32_t disabled[8] = {};
    std::shared_ptr<Deferred> deferred;
    std::shared_ptr<TensorOperation> operation = std::make_shared<TensorOperation>();
    TensorOperations before;  // which act first

    bool lane_disabled(int cta, int lane) const { return disabled[cta * 4 + lane / 32] >> lane % 32 & 1; }
};

// Tells the checker of the lanes of a strip, as runs of 16.
void note_lanes(const Work& work, const Strip& strip, uint32_t column, uint32_t columns, Access kind)
{
    Checker& checker = work.deferred->machine.checker;
    for (size_t i = 0; i < strip.lanes.size(); i += 16)
        checker.access_tmem(*work.ctas[strip.cta], column, columns, strip.lanes[i].first, 16, kind,
                            work.deferred->actor(Proxy::Async));
}

// Rows of A of one CTA, from its shared memory.
std::vector<uint16_t> read_a(Exec& x, const Work& work, int cta)
{
    const int rows = work.product.m / work.product.group;
    std::vector<uint16_t> a(rows * product_k);
    fetch(x, *work.ctas[cta], work.a, rows, product_k, work.deferred->actor(Proxy::Async), a.data());
    return a;
}

// All columns of B; of a pair each CTA holds half.
std::vector<uint16_t> read_b(Exec& x, const Work& work)
{
    const int columns = work.product.n / work.product.group;
    std::vector<uint16_t> b(work.product.n * product_k);
    for (int cta = 0; cta < work.product.group; ++cta)
        fetch(x, *work.ctas[cta], work.b, columns, product_k, work.deferred->actor(Proxy::Async),
              b.data() + cta * columns * product_k);
    return b;
}

void negate(std::vector<uint16_t>& elements)
{
    for (uint16_t& element : elements)
        element ^= 0x8000;
}

std::vector<uint16_t> rows_of(const Work& work, const Strip& strip,
                              const std::vector<uint16_t>& from_shared)
{
    std::vector<uint16_t> a(strip.lanes.size() * product_k);
    TensorMemory& memory = tensor_memory(*work.ctas[strip.cta]);
    if (work.a_in_tmem)
        note_lanes(work, strip, work.a_column, a_columns, Access::Read);
    uint16_t* out = a.data();
    for (const auto& [lane, row] : strip.lanes) {
        if (work.a_in_tmem)
            std::memcpy(out, &memory.cell(lane, work.a_column), product_k * sizeof *out);
        else
            std::copy_n(from_shared.data() + row * product_k, product_k, out);
        out += product_k;
    }
    if (work.product.negate_a)
        negate(a);
    return a;
}

uint32_t scaled(uint32_t bits, int scale, bool half)
{
    if (scale == 0)
        return bits;
    if (half)
        return double_to_f16(std::ldexp(half_to_float(static_cast<uint16_t>(bits), Half::F16), -scale));
    return std::bit_cast<uint32_t>(std::ldexp(std::bit_cast<float>(bits), -scale));
}

void multiply_strip(const Work& work, const Strip& strip, const std::vector<uint16_t>& a_rows,
                    const std::vector<uint16_t>& b)
{
    const TensorProduct& product = work.product;
    Machine& machine = work.deferred->machine;
    TensorMemory& memory = tensor_memory(*work.ctas[strip.cta]);
    const std::vector<uint16_t> a = rows_of(work, strip, a_rows);
    const size_t count = strip.count;
    std::vector<uint32_t> d(strip.lanes.size() * count);
    if (work.accumulate) {
        note_lanes(work, strip, work.column, strip.count, Access::Read);
        for (size_t i = 0; i < strip.lanes.size(); ++i)
            for (size_t column = 0; column < count; ++column)
                d[i * count + column] = scaled(memory.cell(strip.lanes[i].first, work.column + column),
                                               work.scale, product.half_result);
    }
    const MatrixShape shape{static_cast<int>(strip.lanes.size()),
                            strip.count,
                            product_k,
                            product.a,
                            product.b,
                            product.half_result};
    multiply_accumulate(tensor_core(machine.config), shape, a.data(), b.data() + strip.first * product_k,
                        d.data());
    note_lanes(work, strip, work.column, strip.count, Access::Write);
    for (size_t i = 0; i < strip.lanes.size(); ++i)
        if (!work.lane_disabled(strip.cta, strip.lanes[i].first))
            std::copy_n(d.data() + i * count, count, &memory.cell(strip.lanes[i].first, work.column));
}

void finish(const Work& work)
{
    Exec x = work.deferred->exec();
    for (const Cta* cta : work.ctas)
        check_alive(x, *cta);
    const std::vector<Strip> strips = result_layout(work.product, work.half);
    for (const Strip& strip : strips)
        check_still_allocated(x, *work.ctas[strip.cta], work.column, strip.count);
    std::vector<uint16_t> b = read_b(x, work);
    if (work.product.negate_b)
        negate(b);
    std::vector<uint16_t> a[2];
    if (!work.a_in_tmem)
        for (int cta = 0; cta < work.product.group; ++cta)
            a[cta] = read_a(x, work, cta);
    for (const Strip& strip : strips)
        multiply_strip(work, strip, a[strip.cta], b);
    work.deferred->machine.statistics.mma_flops +=
        uint64_t{2} * product_k * work.product.m * work.product.n;
    work.operation->done = true;
    work.deferred->finished();
}

SharedMatrix operand(Exec& x, const Arg& arg, int lane, bool mn_major, const char* name)
{
    std::string error;
    const SharedMatrix matrix = tcgen05_matrix(lane_value(x, arg, lane), mn_major, error);
    if (!error.empty())
        x.fault("tcgen05-descriptor", std::string("descriptor of ") + name + ": " + error);
    return matrix;
}

// The accumulator must be allocated and start where its layout allows.
void place_result(Exec& x, Work& work, int lane)
{
    const TensorProduct& product = work.product;
    const auto address = static_cast<uint32_t>(address_of(x, x.op.address, lane));
    const uint32_t first_lane = address >> 16;
    const bool half_lanes = product.group == 1 && product.m == 64 && !product.weights;
    if (first_lane != 0 && !(half_lanes && first_lane == 16))
        x.fault("tmem-lane-alignment", "D starts at lane " + std::to_string(first_lane));
    work.half = first_lane == 16;
    work.column = address & 0xffff;
    for (const Strip& strip : result_layout(product, work.half))
        require_allocated(x, *work.ctas[strip.cta], work.column, strip.count, "D");
    if (!work.a_in_tmem)
        return;
    const auto a_address = static_cast<uint32_t>(address_of(x, x.op.address2, lane));
    if (a_address >> 16 != first_lane)
        x.fault("tmem-lane-alignment", "A starts at lane " + std::to_string(a_address >> 16) +
                                           ", D at lane " + std::to_string(first_lane));
    work.a_column = a_address & 0xffff;
    for (Cta* cta : work.ctas)
        require_allocated(x, *cta, work.a_column, a_columns, "A");
}

// Products with the same accumulator and shape follow one another, and all of them earlier copies.
void follow(Exec& x, Work& work)
{
    TensorMemory& memory = tensor_memory(*work.ctas[0]);
    const TensorProduct& p = work.product;
    const uint64_t key = uint64_t{work.column} | uint64_t{work.half} << 10 | uint64_t(p.m) << 11 |
                         uint64_t(p.n) << 20 | uint64_t{p.half_result} << 29 | uint64_t{p.weights} << 30;
    std::shared_ptr<TensorOperation>& last = memory.pipelines[key];
    work.before = memory.copies;
    memory.copies.clear();
    if (last)
        work.before.push_back(last);
    for (const auto& operation : work.before)
        x.machine.checker.join_tensor(work.deferred->agent, operation->clock);
    last = work.operation;
}

void issue(Exec& x, int lane)
{
    auto work = std::make_shared<Work>();
    const int group = x.op.imm[imm_group];
    work->ctas = group_ctas(x, group);
    work->a_in_tmem = x.op.imm[imm_a_in_tmem];
    std::string error;
    const auto descriptor = static_cast<uint32_t>(lane_value(x, x.op.args[arg_descriptor], lane));
    work->product = read_instruction_descriptor(descriptor, group, x.op.imm[imm_weights], error);
    if (error.empty() && work->a_in_tmem && work->product.m_major)
        error = "A in tensor memory is not transposed";
    if (!error.empty())
        x.fault("tcgen05-descriptor",
                "instruction descriptor " + std::to_string(descriptor) + ": " + error);
    if (!work->a_in_tmem)
        work->a = operand(x, x.op.args[arg_a], lane, work->product.m_major, "A");
    work->b = operand(x, x.op.args[arg_b], lane, work->product.n_major, "B");
    place_result(x, *work, lane);
    work->accumulate = lane_value(x, x.op.args[arg_enable], lane) != 0;
    work->scale = x.op.imm[imm_scale];
    for (int i = 0; i < x.op.imm[imm_masks]; ++i)
        work->disabled[i] = static_cast<uint32_t>(lane_value(x, x.op.args[arg_a + 1 + i], lane));

    work->deferred = std::make_shared<Deferred>(x, Mask{1} << lane);
    follow(x, *work);
    track(x, lane, work->operation, work->deferred->agent);
    AsyncOp op;
    op.name = "tcgen05.mma";
    op.line = x.op.line;
    op.may_finish = [work] {
        return std::all_of(work->before.begin(), work->before.end(),
                           [](const auto& other) { return other->done; });
    };
    op.finish = [work] { finish(*work); };
    x.cta.cluster->start(std::move(op));
}

// Each thread that executes it starts a product of its own.
void run_product(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        issue(x, std::countr_zero(rest));
}

void check_modifiers(const ptx::Instruction& instruction, const Program& program, bool weights)
{
    for (const std::string& modifier : instruction.modifiers) {
        const bool collector = modifier.rfind(weights ? "collector::b" : "collector::a::", 0) == 0;
        if (collector || modifier == "mma" || modifier == "ws" || modifier == "kind::f16" ||
            modifier.rfind("cta_group::", 0) == 0)
            continue;
        refuse(instruction, program, "." + modifier + " is not supported, only dense .kind::f16");
    }
    if (!instruction.has("kind::f16"))
        refuse(instruction, program, "needs .kind::f16");
}

// What follows enable-input-d; only the plain form scales.
void decode_scale(const ptx::Instruction& instruction, Program& program, Op& op,
                  const ptx::Operand& operand)
{
    if (op.imm[imm_weights])
        refuse(instruction, program, "zero-column masks are not supported");
    op.imm[imm_scale] = immediate(instruction, program, operand);
    if (op.imm[imm_scale] < 0 || op.imm[imm_scale] > 15)
        refuse(instruction, program, "scale-input-d must be from 0 to 15");
}

}  // namespace

void decode_tensor_product(const ptx::Instruction& instruction, Program& program, Op& op)
{
    const bool weights = instruction.has("ws");
    check_modifiers(instruction, program, weights);
    op.imm[imm_group] = cta_group_of(instruction, program);
    op.imm[imm_weights] = weights;
    if (weights && op.imm[imm_group] != 1)
        refuse(instruction, program, ".ws needs .cta_group::1");

    const auto& list = instruction.operands;
    expect_operands(instruction, program, 5, 7);
    op.address = decode_address(list[0], program);
    op.imm[imm_a_in_tmem] = list[1].form == ptx::Operand::Form::Address;
    const ptx::Type wide{ptx::Kind::Bits, 64, 1}, word{ptx::Kind::Bits, 32, 1};
    op.args = {decode_arg(list[2], program, instruction, wide),
               decode_arg(list[3], program, instruction, word)};
    size_t next = 4;
    const bool masked = list[next].form == ptx::Operand::Form::Vector;
    next += masked;
    if (next >= list.size() ||
        (list[next].form == ptx::Operand::Form::Register && !is_predicate(list[next], program)))
        refuse(instruction, program, "enable-input-d must be a predicate");
    op.args.push_back(decode_arg(list[next++], program));
    op.args.emplace_back();
    if (op.imm[imm_a_in_tmem])
        op.address2 = decode_address(list[1], program);
    else
        op.args[arg_a] = decode_arg(list[1], program, instruction, wide);
    if (masked) {
        op.imm[imm_masks] = static_cast<int>(list[4].parts.size());
        if (weights || op.imm[imm_masks] != 4 * op.imm[imm_group])
            refuse(instruction, program, "wrong number of disable-output-lane masks");
        for (const ptx::Operand& part : list[4].parts)
            op.args.push_back(decode_arg(part, program, instruction, word));
    }
    if (next < list.size())
        decode_scale(instruction, program, op, list[next++]);
    if (next != list.size())
        refuse(instruction, program, "too many operands");
    op.run = run_product;
}

}  // namespace emu
