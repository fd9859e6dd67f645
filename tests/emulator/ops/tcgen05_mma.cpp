// tcgen05.mma: one thread starts a product of the whole CTA or CTA pair, which reads its
// operands later.
#include "ops/tcgen05.hpp"

#include "core/values.hpp"
#include "ops/shared_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace emu {

namespace {

constexpr uint32_t a_columns = 8;  // of A in tensor memory: 32 bytes

using Codes = std::vector<uint32_t>;

struct Work {
    TensorProduct product;
    std::vector<Cta*> ctas;
    uint32_t column = 0, a_column = 0, a_scales = 0, b_scales = 0;
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
Codes read_a(Exec& x, const Work& work, int cta)
{
    const TensorProduct& p = work.product;
    const int rows = p.m / p.group;
    Codes a(rows * p.k);
    const Actor reader = work.deferred->actor(Proxy::Async);
    fetch(x, *work.ctas[cta], work.a, p.a, rows, p.k, {&reader, 1}, a.data());
    return a;
}

// All columns of B; of a pair each CTA holds half.
Codes read_b(Exec& x, const Work& work)
{
    const TensorProduct& p = work.product;
    const int columns = p.n / p.group;
    Codes b(p.n * p.k);
    const Actor reader = work.deferred->actor(Proxy::Async);
    for (int cta = 0; cta < p.group; ++cta)
        fetch(x, *work.ctas[cta], work.b, p.b, columns, p.k, {&reader, 1}, b.data() + cta * columns * p.k);
    return b;
}

Codes rows_of(const Work& work, const Strip& strip, const Codes& from_shared)
{
    const TensorProduct& p = work.product;
    Codes a(strip.lanes.size() * p.k);
    TensorMemory& memory = tensor_memory(*work.ctas[strip.cta]);
    if (work.a_in_tmem)
        note_lanes(work, strip, work.a_column, a_columns, Access::Read);
    uint32_t* out = a.data();
    for (const auto& [lane, row] : strip.lanes) {
        if (work.a_in_tmem)
            unpack(in_tensor_memory(p), reinterpret_cast<uint8_t*>(&memory.cell(lane, work.a_column)), p.k,
                   out);
        else
            std::copy_n(from_shared.data() + row * p.k, p.k, out);
        out += p.k;
    }
    if (p.negate_a)
        negate(p.a, a.data(), a.size());
    return a;
}

uint32_t scaled(uint32_t bits, int scale, bool half)
{
    if (scale == 0)
        return bits;
    if (half)
        return double_to_f16(std::ldexp(half_to_float(static_cast<uint16_t>(bits), FormatId::F16), -scale));
    return std::bit_cast<uint32_t>(std::ldexp(std::bit_cast<float>(bits), -scale));
}

// ISA 9.7.16.10.7: the scales of row r stand in lane r % 32 of each 32, in the column r / 32 behind the
// first.
std::vector<uint8_t> read_scales(const Work& work, int cta, int quarter, int rows, uint32_t column,
                                 int byte)
{
    TensorMemory& memory = tensor_memory(*work.ctas[cta]);
    work.deferred->machine.checker.access_tmem(*work.ctas[cta], column, (rows + 31) / 32, quarter * 32, 32,
                                               Access::Read, work.deferred->actor(Proxy::Async));
    std::vector<uint8_t> scales;
    for (int row = 0; row < rows; ++row)
        for (int i = 0; i < work.product.scale_vector; ++i)
            scales.push_back(static_cast<uint8_t>(memory.cell(quarter * 32 + row % 32, column + row / 32) >>
                                                  8 * (byte + i)));
    return scales;
}

// Products of the lanes from `first` on that share a quarter of the tensor memory, and with it the scales.
void multiply_scaled(const Work& work, const Strip& strip, size_t first, size_t count, const uint32_t* a,
                     const uint32_t* b, uint32_t* d)
{
    const TensorProduct& p = work.product;
    const int quarter = strip.lanes[first].first / 32, rows = p.m / p.group, vector = p.scale_vector;
    const auto of_cta = read_scales(work, strip.cta, quarter, rows, work.a_scales, p.a_scale_byte);
    const auto columns = read_scales(work, strip.cta, quarter, p.n, work.b_scales, p.b_scale_byte);
    std::vector<uint8_t> lanes;
    for (size_t i = 0; i < count; ++i)
        lanes.insert(lanes.end(), of_cta.begin() + strip.lanes[first + i].second * vector,
                     of_cta.begin() + (strip.lanes[first + i].second + 1) * vector);
    const uint8_t* b_scales = columns.data() + strip.first * vector;
    const int m = static_cast<int>(count);
    if (vector == 1)
        multiply_accumulate(tensor_core(work.deferred->machine.config, MatrixUnit::Tcgen05, p.a.format),
                            {m, strip.count, p.k, p.a.format, p.b.format, false, lanes.data(), b_scales}, a,
                            b, d);
    else
        multiply_accumulate({m, strip.count, p.k, p.k / vector, p.ue4m3}, a, b, lanes.data(), b_scales, d);
}

void multiply(const Work& work, const Strip& strip, const uint32_t* a, const uint32_t* b, uint32_t* d)
{
    const TensorProduct& p = work.product;
    const size_t rows = strip.lanes.size();
    if (is_scaled(p.kind)) {
        for (size_t first = 0; first < rows; first += 32)
            multiply_scaled(work, strip, first, std::min<size_t>(32, rows - first), a + first * p.k, b,
                            d + first * strip.count);
        return;
    }
    const ElementProduct product{
        static_cast<int>(rows), strip.count, p.k, p.a, p.b, p.half_result, p.saturate,
        IntegerShape::Multiply};
    multiply_accumulate(work.deferred->machine.config, MatrixUnit::Tcgen05, product, a, b, d);
}

void multiply_strip(const Work& work, const Strip& strip, const Codes& a_rows, const Codes& b)
{
    const TensorProduct& product = work.product;
    TensorMemory& memory = tensor_memory(*work.ctas[strip.cta]);
    const Codes a = rows_of(work, strip, a_rows);
    const size_t count = strip.count;
    std::vector<uint32_t> d(strip.lanes.size() * count);
    if (work.accumulate) {
        note_lanes(work, strip, work.column, strip.count, Access::Read);
        for (size_t i = 0; i < strip.lanes.size(); ++i)
            for (size_t column = 0; column < count; ++column)
                d[i * count + column] = scaled(memory.cell(strip.lanes[i].first, work.column + column),
                                               work.scale, product.half_result);
    }
    multiply(work, strip, a.data(), b.data() + strip.first * product.k, d.data());
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
    Codes b = read_b(x, work);
    if (work.product.negate_b)
        negate(work.product.b, b.data(), b.size());
    Codes a[2];
    if (!work.a_in_tmem)
        for (int cta = 0; cta < work.product.group; ++cta)
            a[cta] = read_a(x, work, cta);
    for (const Strip& strip : strips)
        multiply_strip(work, strip, a[strip.cta], b);
    work.deferred->machine.statistics.mma_flops +=
        uint64_t{2} * work.product.k * work.product.m * work.product.n;
    work.operation->done = true;
    work.deferred->finished();
}

// ISA 9.7.16.10.1: transposed tf32 has the swizzle of 32-byte atoms, and nothing else that is transposed.
SharedMatrix operand(Exec& x, const Arg& arg, int lane, TensorKind kind, bool mn_major, const char* name)
{
    std::string error;
    const SharedMatrix matrix = tcgen05_matrix(lane_value(x, arg, lane), mn_major, error);
    if (!error.empty())
        x.fault("tcgen05-descriptor", std::string("descriptor of ") + name + ": " + error);
    if (mn_major && (matrix.atom == 32) != (kind == TensorKind::Tf32))
        x.fault("tcgen05-descriptor", std::string("descriptor of ") + name +
                                          ": swizzle mode 1, of 32-byte atoms, does not suit the type");
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
    std::erase_if(memory.copies, [](const auto& copy) { return copy->done; });
    work.before = memory.copies;
    x.machine.checker.join_tensor(work.deferred->agent, memory.copied);
    if (last) {
        work.before.push_back(last);
        x.machine.checker.join_tensor(work.deferred->agent, last->clock);
    }
    last = work.operation;
}

// Where the scales of A and B start; both CTAs of a pair hold those of their rows, and all of B's.
void place_scales(Exec& x, Work& work, int lane)
{
    const TensorProduct& p = work.product;
    const auto place = [&](size_t arg, int rows, const char* name) {
        const uint64_t address = lane_value(x, x.op.args[arg], lane) + x.op.args[arg + 1].constant;
        const uint32_t column = address & 0xffff;
        if (address >> 16 & 0xffff)
            x.fault("tmem-lane-alignment",
                    std::string(name) + " start at lane " + std::to_string(address >> 16 & 0xffff));
        for (Cta* cta : work.ctas)
            require_allocated(x, *cta, column, (rows + 31) / 32, name);
        return column;
    };
    work.a_scales = place(arg_a + 1, p.m / p.group, "scales of A");
    work.b_scales = place(arg_a + 3, p.n, "scales of B");
}

void issue_mma(Exec& x, int lane)
{
    auto work = std::make_shared<Work>();
    const int group = x.op.imm[imm_group];
    work->ctas = group_ctas(x, group);
    work->a_in_tmem = x.op.imm[imm_a_in_tmem];
    std::string error;
    const auto descriptor = static_cast<uint32_t>(lane_value(x, x.op.args[arg_descriptor], lane));
    work->product.kind = static_cast<TensorKind>(x.op.imm[imm_kind]);
    work->product.group = group;
    work->product.weights = x.op.imm[imm_weights];
    work->product.scale_vector = static_cast<int>(x.op.wide);
    read_instruction_descriptor(descriptor, work->product, error);
    if (error.empty() && work->a_in_tmem && work->product.m_major)
        error = "A in tensor memory is not transposed";
    if (!error.empty())
        x.fault("tcgen05-descriptor",
                "instruction descriptor " + std::to_string(descriptor) + ": " + error);
    if (!work->a_in_tmem)
        work->a = operand(x, x.op.args[arg_a], lane, work->product.kind, work->product.m_major, "A");
    work->b = operand(x, x.op.args[arg_b], lane, work->product.kind, work->product.n_major, "B");
    place_result(x, *work, lane);
    if (is_scaled(work->product.kind))
        place_scales(x, *work, lane);
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

}  // namespace

// Each thread that executes it starts a product of its own.
void run_tensor_product(Exec& x)
{
    for (Mask rest = x.lanes; rest; rest &= rest - 1)
        issue_mma(x, std::countr_zero(rest));
}

}  // namespace emu
