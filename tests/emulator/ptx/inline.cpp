// Calls of device functions: the body takes the place of the call, its parameters become those of the
// caller, its `ret` a branch behind it.
#include "ptx/parser.hpp"

namespace emu::ptx {
namespace {

// Where the parts of a callee have gone in the kernel.
struct Moved {
    int registers;                   // added to register numbers
    std::vector<int> local, shared;  // by the callee's index
    int first = 0, behind = 0;       // instructions
};

void move_operand(Operand& operand, const Moved& moved)
{
    if (operand.form == Operand::Form::Register)
        operand.index += moved.registers;
    else if (operand.form == Operand::Form::Label)
        operand.index += moved.first;
    else if (operand.form == Operand::Form::Symbol && operand.space == Space::Local)
        operand.index = moved.local[operand.index];
    else if (operand.form == Operand::Form::Symbol && operand.space == Space::Shared)
        operand.index = moved.shared[operand.index];
    for (Operand& part : operand.parts)
        move_operand(part, moved);
}

// "(results), name, (arguments)" with either list left out.
struct Call {
    std::string name;
    std::vector<Operand> actual;  // results first
};

bool read_call(const Instruction& instruction, Call& call)
{
    for (const Operand& operand : instruction.operands) {
        if (operand.form == Operand::Form::Name && call.name.empty())
            call.name = operand.name;
        else if (operand.form == Operand::Form::Vector)
            call.actual.insert(call.actual.end(), operand.parts.begin(), operand.parts.end());
    }
    return !call.name.empty();
}

[[noreturn]] void refuse_call(const Context& context, const Instruction& call, const std::string& why)
{
    throw Error(quote(context.module, call.line, why));
}

int place_shared(Kernel& kernel, const Variable& variable)
{
    for (size_t i = 0; i < kernel.shared.size(); ++i)
        if (kernel.shared[i].name == variable.name)
            return static_cast<int>(i);
    kernel.shared.push_back(variable);
    return static_cast<int>(kernel.shared.size()) - 1;
}

Moved move_in(const Context& context, Kernel& kernel, const Function& function, const Instruction& site,
              const Call& call)
{
    if (call.actual.size() != function.parameters.size())
        refuse_call(context, site, "'" + call.name + "' takes another number of parameters");
    Moved moved;
    moved.registers = static_cast<int>(kernel.registers.size());
    kernel.registers.insert(kernel.registers.end(), function.body.registers.begin(),
                            function.body.registers.end());
    moved.local.assign(function.body.local.size(), -1);
    for (size_t i = 0; i < call.actual.size(); ++i) {
        if (call.actual[i].form != Operand::Form::Symbol || call.actual[i].space != Space::Local)
            refuse_call(context, site, "parameters of calls must be .param variables");
        moved.local[function.parameters[i]] = call.actual[i].index;
    }
    for (size_t i = 0; i < moved.local.size(); ++i)
        if (moved.local[i] < 0) {
            moved.local[i] = static_cast<int>(kernel.local.size());
            kernel.local.push_back(function.body.local[i]);
        }
    for (const Variable& variable : function.body.shared)
        moved.shared.push_back(place_shared(kernel, variable));
    return moved;
}

void append_body(std::vector<Instruction>& out, const Function& function, const Moved& moved)
{
    for (Instruction instruction : function.body.instructions) {
        if (instruction.guard >= 0)
            instruction.guard += moved.registers;
        for (Operand& operand : instruction.operands)
            move_operand(operand, moved);
        if (instruction.opcode == "ret") {
            instruction.opcode = "bra";
            instruction.modifiers.clear();
            Operand target;
            target.form = Operand::Form::Label;
            target.index = moved.behind;
            instruction.operands = {target};
        }
        out.push_back(std::move(instruction));
    }
}

// The callee of each instruction, null for what is no call of a function with a body, and where each
// instruction goes: a call keeps its place and is followed by the body.
struct Plan {
    std::vector<const Function*> callee;
    std::vector<int> place;
    bool any = false;
};

Plan plan_calls(const Context& context, const Kernel& kernel)
{
    Plan plan;
    size_t size = 0;
    for (const Instruction& instruction : kernel.instructions) {
        plan.place.push_back(static_cast<int>(size++));
        plan.callee.push_back(nullptr);
        Call call;
        if (instruction.opcode != "call" || !read_call(instruction, call))
            continue;
        const auto found = context.declared.functions.find(call.name);
        if (found == context.declared.functions.end() || !found->second.defined)
            continue;
        plan.callee.back() = &found->second;
        plan.any = true;
        const Kernel& body = found->second.body;
        size += body.instructions.size();
        context.declared.inlined += body.instructions.size() + body.local.size() + body.shared.size();
        context.declared.registers += body.registers.size();
        if (size > limit::kernel_instructions || context.declared.inlined > limit::inlined ||
            context.declared.registers > limit::registers)
            refuse_call(context, instruction, "too many instructions or registers after inlining");
    }
    plan.place.push_back(static_cast<int>(size));
    return plan;
}

// The call itself becomes a branch over the body, taken where its guard is false.
Instruction branch_over(Instruction call, const Moved& moved)
{
    Operand target;
    target.form = Operand::Form::Label;
    target.index = call.guard < 0 ? moved.first : moved.behind;
    call.opcode = "bra";
    call.modifiers.clear();
    call.operands = {target};
    call.guard_negated = !call.guard_negated;
    return call;
}

}  // namespace

void inline_calls(const Context& context, Kernel& kernel)
{
    const Plan plan = plan_calls(context, kernel);
    if (!plan.any)
        return;
    std::vector<Instruction> out;
    out.reserve(plan.place.back());
    for (size_t i = 0; i < kernel.instructions.size(); ++i) {
        Instruction instruction = std::move(kernel.instructions[i]);
        for (Operand& operand : instruction.operands)
            if (operand.form == Operand::Form::Label)
                operand.index = plan.place[operand.index];
        if (!plan.callee[i]) {
            out.push_back(std::move(instruction));
            continue;
        }
        Call call;
        read_call(instruction, call);
        Moved moved = move_in(context, kernel, *plan.callee[i], instruction, call);
        moved.first = plan.place[i] + 1;
        moved.behind = plan.place[i + 1];
        out.push_back(branch_over(std::move(instruction), moved));
        append_body(out, *plan.callee[i], moved);
    }
    kernel.instructions = std::move(out);
}

namespace {

// Callees first; a function that is met again on the way down calls itself.
void inline_function(Context& context, const std::string& name, std::map<std::string, int>& state)
{
    enum { unvisited, on_the_way, finished };
    const auto found = context.declared.functions.find(name);
    if (found == context.declared.functions.end() || state[name] == finished)
        return;
    const Nesting nesting(context);
    Kernel& body = found->second.body;
    state[name] = on_the_way;
    for (const Instruction& instruction : body.instructions) {
        Call call;
        if (instruction.opcode != "call" || !read_call(instruction, call))
            continue;
        if (state[call.name] == on_the_way)
            refuse_call(context, instruction, "recursion is not supported");
        inline_function(context, call.name, state);
    }
    inline_calls(context, body);
    state[name] = finished;
}

}  // namespace

void inline_functions(Context& context)
{
    std::map<std::string, int> state;
    for (const auto& entry : context.declared.functions)
        inline_function(context, entry.first, state);
}

}  // namespace emu::ptx
