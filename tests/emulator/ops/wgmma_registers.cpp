// Who owns a register while products are in flight. A plain mov is let pass: compilers rename accumulators
// with it between products, and an assembler removes it; the copy then takes part.
#include "ops/wgmma.hpp"

#include <algorithm>
#include <bit>

namespace emu {

namespace {

constexpr uint32_t nan_poison = 0x7fffffff;  // NaN, as one fp32 and as two f16

struct RegisterUse {
    std::vector<int> rows;  // 32-bit registers that the instruction names
    bool move = false, constant_move = false, wgmma = false;
};

int row_of(int offset) { return offset / (warp_lanes * 4); }

// The element of the 64 x n accumulators that a lane's register holds; for f16 the first of two.
int element_of(const WgmmaForm& form, int warp, int lane, int reg)
{
    int value = form.half_result ? 2 * reg : reg;
    int row = 16 * warp + lane / 4 + 8 * (value >> 1 & 1);
    int column = 8 * (value >> 2) + 2 * (lane % 4) + (value & 1);
    return row * form.n + column;
}

void collect(const ptx::Operand& operand, const Program& program, std::vector<int>& rows)
{
    if (operand.form == ptx::Operand::Form::Register) {
        const ptx::Type& type = program.kernel->registers[operand.index].type;
        if (type.bits * type.packed == 32)
            rows.push_back(row_of(program.register_offset[operand.index]));
    }
    for (const ptx::Operand& part : operand.parts)
        collect(part, program, rows);
}

const RegisterUse& use_of(Exec& x)
{
    using Form = ptx::Operand::Form;
    const Program& program = *x.grid.program;
    if (!program.register_uses) {
        auto uses = std::make_shared<std::vector<RegisterUse>>(program.ops.size());
        for (size_t i = 0; i < program.ops.size(); i++) {
            const ptx::Instruction& source = *program.ops[i].source;
            RegisterUse& use = (*uses)[i];
            for (const ptx::Operand& operand : source.operands)
                collect(operand, program, use.rows);
            bool mov = source.opcode == "mov" && source.operands.size() == 2;
            use.move = mov && use.rows.size() == 2 && source.operands[1].form == Form::Register;
            use.constant_move = mov && source.operands[1].form == Form::Immediate;
            use.wgmma = source.opcode == "wgmma";
        }
        program.register_uses = uses;
    }
    auto& uses = *static_cast<std::vector<RegisterUse>*>(program.register_uses.get());
    return uses[&x.op - program.ops.data()];
}

std::string name_of_row(const Program& program, int row)
{
    for (size_t i = 0; i < program.register_offset.size(); i++)
        if (program.register_offset[i] >= 0 && row_of(program.register_offset[i]) == row)
            return program.kernel->registers[i].name;
    return "?";
}

void drop_copy(WarpRegisters& mine, int row)
{
    if (mine.copied[row])
        mine.copied[row] = 0, mine.in_flight[row] = 0;
}

void follow_move(Warpgroup& group, WarpRegisters& mine, int warp, int to, int from)
{
    drop_copy(mine, to);
    mine.touched[to] = mine.touched[from];
    if (mine.in_flight[from] <= mine.waited)
        return;
    for (const auto& chain : group.chains) {
        const std::vector<int>& registers = chain->registers[warp];
        auto at = std::find(registers.begin(), registers.end(), from * warp_lanes * 4);
        if (at == registers.end())
            continue;
        mine.in_flight[to] = mine.in_flight[from];
        mine.copied[to] = 1;
        chain->copies[warp].emplace_back(to * warp_lanes * 4, static_cast<int>(at - registers.begin()));
    }
}

void report_use(Exec& x, int row, const char* what)
{
    x.hazard("wgmma-registers", "register " + name_of_row(*x.grid.program, row) + " " + what, x.lanes);
}

// Does the warp's register list continue the chain, as it was or by copies of each register?
bool continues(const Chain& chain, int warp, const std::vector<int>& registers)
{
    if (!chain.joined[warp] || chain.registers[warp].size() != registers.size())
        return false;
    for (size_t i = 0; i < registers.size(); i++) {
        std::pair<int, int> copy{registers[i], static_cast<int>(i)};
        const auto& copies = chain.copies[warp];
        if (chain.registers[warp][i] != registers[i] &&
            std::find(copies.begin(), copies.end(), copy) == copies.end())
            return false;
    }
    return true;
}

void save_registers(Warp& warp, Chain& chain, int index)
{
    for (size_t reg = 0; reg < chain.registers[index].size(); reg++) {
        auto* row = reinterpret_cast<uint32_t*>(warp.registers.data() + chain.registers[index][reg]);
        for (int lane = 0; lane < warp_lanes; lane++) {
            uint32_t* value = &chain.values[element_of(chain.form, index, lane, static_cast<int>(reg))];
            value[0] = chain.form.half_result ? row[lane] & 0xffff : row[lane];
            if (chain.form.half_result)
                value[1] = row[lane] >> 16;
            row[lane] = nan_poison;
        }
    }
    chain.joined[index] = true;
}

void restore_register(Warp& warp, const Chain& chain, int index, int offset, int reg)
{
    auto* row = reinterpret_cast<uint32_t*>(warp.registers.data() + offset);
    for (int lane = 0; lane < warp_lanes; lane++) {
        const uint32_t* value = &chain.values[element_of(chain.form, index, lane, reg)];
        row[lane] = chain.form.half_result ? value[0] | value[1] << 16 : value[0];
    }
}

}  // namespace

void watch_registers(Exec& x)
{
    const RegisterUse& use = use_of(x);
    if (use.wgmma || x.lanes == 0)
        return;
    Warpgroup& group = *static_cast<Warpgroup*>(x.warp.extension[ext_wgmma].get());
    int warp = x.warp.index % group_warps;
    WarpRegisters& mine = group.registers[warp];
    if (use.move) {
        if (mine.in_flight[use.rows[0]] > mine.waited && !mine.copied[use.rows[0]])
            report_use(x, use.rows[0], "is written while a product that was not waited for uses it");
        follow_move(group, mine, warp, use.rows[0], use.rows[1]);
        return;
    }
    for (int row : use.rows) {
        if (use.constant_move)
            drop_copy(mine, row);
        if (mine.in_flight[row] > mine.waited)
            report_use(x, row, "is used while it accumulates a product that was not waited for");
        if (mine.read_by[row] > mine.waited)
            report_use(x, row, "is used while a product that was not waited for reads it");
        if (!use.constant_move)
            mine.touched[row] = mine.fences;
    }
}

static std::vector<int> accumulators_of(const Op& op, const WgmmaForm& form)
{
    std::vector<int> registers;
    for (int i = 0; i < form.accumulators; i++)
        registers.push_back(op.args[i].reg);
    return registers;
}

std::shared_ptr<Chain> find_chain(Exec& x, Warpgroup& group)
{
    const WgmmaForm& form = wgmma_form(x.op);
    std::vector<int> registers = accumulators_of(x.op, form);
    for (const auto& chain : group.chains)
        if (chain->form.n == form.n && chain->form.half_result == form.half_result &&
            continues(*chain, x.warp.index % group_warps, registers))
            return chain;
    return nullptr;
}

void take_registers(Exec& x, Warpgroup& group, Product& product, uint64_t number)
{
    int warp = x.warp.index % group_warps;
    WarpRegisters& mine = group.registers[warp];
    Chain& chain = *product.chain;
    const WgmmaForm& form = wgmma_form(x.op);
    std::vector<int> registers = accumulators_of(x.op, form);
    bool goes_on = continues(chain, warp, registers);
    if (goes_on && chain.registers[warp] != registers)
        for (int old : chain.registers[warp])
            mine.in_flight[row_of(old)] = 0;
    std::erase_if(mine.lists, [&](const auto& list) { return list.second <= mine.waited; });
    auto list =
        std::find_if(mine.lists.begin(), mine.lists.end(), [&](auto& l) { return l.first == registers; });
    bool own = goes_on || list != mine.lists.end();
    int used = form.accumulators + (form.a_in_registers ? 4 : 0);
    bool touched = false, busy = false;
    for (int i = 0; i < used; i++) {
        int row = row_of(x.op.args[i].reg);
        bool accumulator = i < form.accumulators;
        touched |= mine.touched[row] == mine.fences;
        busy |= mine.in_flight[row] > mine.waited && !(accumulator && own);
        busy |= accumulator && mine.read_by[row] > mine.waited;
        (accumulator ? mine.in_flight : mine.read_by)[row] = number + 1;
        mine.copied[row] = 0;
    }
    if (list != mine.lists.end())
        list->second = number + 1;
    else
        mine.lists.emplace_back(registers, number + 1);
    if (touched)
        x.hazard("wgmma-fence", "no wgmma.fence since the registers were last accessed");
    if (busy)
        x.hazard("wgmma-registers", "a register belongs to another product that was not waited for");
    chain.registers[warp] = registers;
    if (!goes_on)
        save_registers(x.warp, chain, warp);
}

void return_registers(Warpgroup& group, Chain& chain)
{
    for (int warp = 0; warp < group_warps; warp++) {
        for (size_t reg = 0; reg < chain.registers[warp].size(); reg++)
            restore_register(*group.warps[warp], chain, warp, chain.registers[warp][reg],
                             static_cast<int>(reg));
        for (auto [offset, reg] : chain.copies[warp])
            if (group.registers[warp].copied[row_of(offset)])
                restore_register(*group.warps[warp], chain, warp, offset, reg);
    }
}

}  // namespace emu
