// Compilers give each value a register of its own; most live for a few instructions of one basic block.
// Those share places, so that the registers of all warps take little time to fill and stay in caches. A
// register that is read where nothing wrote it, in program order, has a place of its own, and holds poison.
#include "core/registers.hpp"

#include <algorithm>
#include <array>

namespace emu {
namespace {

using Form = ptx::Operand::Form;

// Done when they return, having written all of operand 0 if that is a register or a vector. Others may
// access registers later, or those of other lanes.
constexpr std::string_view plain_opcodes[] = {
    "abs", "add",      "and", "bfe", "bfi",  "clz",  "cvt",   "cvta", "div",  "ex2",   "fma",
    "ld",  "ldmatrix", "ldu", "lg2", "lop3", "mad",  "mad24", "max",  "min",  "mma",   "mov",
    "mul", "mul24",    "neg", "not", "or",   "popc", "prmt",  "rcp",  "rem",  "rsqrt", "selp",
    "set", "setp",     "shf", "shl", "shr",  "sqrt", "st",    "sub",  "tanh", "xor"};

struct Life {
    int first = -1, last = -1;  // instructions that name it
    bool shares = false;        // its place: within one block it is written and then read
};

class Placement {
public:
    explicit Placement(Program& program)
        : program_(program), code_(program.kernel->instructions), lives_(program.kernel->registers.size())
    {
    }
    void run();

private:
    static constexpr std::array<int, 4> widths = {warp_lanes * 16, warp_lanes * 8, warp_lanes * 4, 4};

    // The widest come first, for alignment.
    size_t width_of(int reg) const
    {
        const ptx::Type& type = program_.kernel->registers[reg].type;
        return type.kind == ptx::Kind::Predicate ? 3 : type.bytes() > 8 ? 0 : type.bytes() > 4 ? 1 : 2;
    }
    void find_blocks();
    bool is_plain(const ptx::Instruction& instruction) const;
    enum class Use { Written, Plain, Other };
    void note(int at, int reg, Use use);
    void note_all(int at, const ptx::Operand& operand, Use use);
    void note_instruction(int at);
    void begin(int at);

    Program& program_;
    const std::vector<ptx::Instruction>& code_;
    std::vector<Life> lives_;              // by register
    std::vector<int> blocks_;              // by instruction
    std::vector<std::vector<int>> names_;  // registers by instruction
    bool has_wgmma_ = false;
    std::array<std::vector<int>, 4> free_;  // places that were shared, by width
    std::array<int, 4> count_ = {};
};

void Placement::find_blocks()
{
    std::vector<bool> starts(code_.size() + 1);
    for (size_t i = 0; i < code_.size(); ++i) {
        const std::string& opcode = code_[i].opcode;
        has_wgmma_ |= opcode == "wgmma";
        for (const std::string_view ends : {"bra", "brx", "call", "exit", "ret"})
            if (opcode == ends)
                starts[i + 1] = true;
        for (const ptx::Operand& operand : code_[i].operands)
            if (operand.form == Form::Label)
                starts[operand.index] = true;
    }
    int block = 0;
    for (size_t i = 0; i < code_.size(); ++i)
        blocks_.push_back(block += starts[i]);
}

// The watch over wgmma's registers follows moves from one to another.
bool Placement::is_plain(const ptx::Instruction& instruction) const
{
    if (has_wgmma_ && instruction.opcode == "mov" && instruction.operands.size() == 2 &&
        instruction.operands[1].form == Form::Register)
        return false;
    return !instruction.has("async") &&
           std::binary_search(std::begin(plain_opcodes), std::end(plain_opcodes), instruction.opcode);
}

void Placement::note(int at, int reg, Use use)
{
    Life& life = lives_[reg];
    if (life.first < 0) {
        life.first = at;
        life.shares = use == Use::Written;
    }
    life.shares &= use != Use::Other && blocks_[at] == blocks_[life.first];
    life.last = at;
    names_[at].push_back(reg);
}

void Placement::note_all(int at, const ptx::Operand& operand, Use use)
{
    if (operand.form == Form::Register)
        note(at, operand.index, use);
    for (const ptx::Operand& part : operand.parts)
        note_all(at, part, use);
}

// What it reads first: it may write the same register.
void Placement::note_instruction(int at)
{
    const ptx::Instruction& instruction = code_[at];
    const bool guarded = instruction.guard >= 0;
    if (guarded)
        note(at, instruction.guard, Use::Plain);
    const Use use = is_plain(instruction) ? Use::Plain : Use::Other;
    const std::vector<ptx::Operand>& operands = instruction.operands;
    for (size_t i = 1; i < operands.size(); ++i)
        note_all(at, operands[i], use);
    if (operands.empty())
        return;
    const bool values = operands[0].form == Form::Register || operands[0].form == Form::Vector;
    const bool whole = values && !guarded && instruction.used_bytes == ~uint32_t{0};
    note_all(at, operands[0], whole && use == Use::Plain ? Use::Written : use);
}

// Registers whose life begins: in places that no instruction before needs any more.
void Placement::begin(int at)
{
    for (const int reg : names_[at]) {
        int& place = program_.register_offset[reg];
        if (place >= 0)
            continue;
        const size_t width = width_of(reg);
        std::vector<int>& free = free_[width];
        if (lives_[reg].shares && !free.empty()) {
            place = free.back();
            free.pop_back();
        } else {
            place = count_[width]++;
        }
    }
}

void Placement::run()
{
    const int size = static_cast<int>(code_.size());
    find_blocks();
    names_.resize(code_.size());
    for (int i = 0; i < size; ++i)
        note_instruction(i);
    program_.register_offset.assign(lives_.size(), -1);
    for (int i = 0; i < size; ++i) {
        begin(i);
        for (const int reg : names_[i])
            if (lives_[reg].shares && lives_[reg].last == i) {
                free_[width_of(reg)].push_back(program_.register_offset[reg]);
                lives_[reg].shares = false;  // it may be named twice
            }
    }
    std::array<int, 4> base;
    for (size_t width = 0; width < widths.size(); ++width) {
        base[width] = program_.register_bytes;
        program_.register_bytes += count_[width] * widths[width];
    }
    for (size_t reg = 0; reg < lives_.size(); ++reg) {
        const size_t width = width_of(static_cast<int>(reg));
        int& place = program_.register_offset[reg];
        if (place >= 0)
            place = base[width] + place * widths[width];
    }
}

}  // namespace

void place_registers(Program& program) { Placement(program).run(); }

}  // namespace emu
