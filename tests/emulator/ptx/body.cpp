// Statements, instructions and operands of function bodies.
#include "ptx/body.hpp"

#include <utility>

namespace emu::ptx {

void Body::parse(Function* function)
{
    for (size_t i = 0; i < kernel_.parameters.size(); ++i)
        parameters_[kernel_.parameters[i].name] = static_cast<int>(i);
    context_.module.origins[lexer_.expect("{").line] = nullptr;  // not that of the body before
    open();
    if (function)
        for (const int i : function->parameters)
            scopes_.back().variables[kernel_.local[i].name] = {Space::Local, i};
    while (!scopes_.empty()) {
        if (lexer_.accept("{")) {
            open();
        } else if (lexer_.peek().is("}")) {
            close(lexer_.peek().line);
            lexer_.take();
        } else {
            guarded_statement();
        }
    }
}

void Body::open()
{
    if (scopes_.size() == limit::nesting)
        lexer_.fail("nested too deeply", lexer_.peek().line);
    scopes_.emplace_back();
    ++scope_count_;
}

// With a list of refusals, a statement that is not understood is passed over.
void Body::guarded_statement()
{
    if (!context_.refused)
        return statement();
    const Place start = lexer_.place();
    try {
        statement();
    } catch (const Error& error) {
        note_refusal(context_, error);
        lexer_.skip_statement(start);
    }
}

void Body::close(int line)
{
    if (scopes_.size() == 1) {
        Instruction end;
        end.opcode = "ret";
        end.line = line;
        kernel_.instructions.push_back(end);
    }
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    for (const Scope::Fixup& fixup : scope.fixups) {
        Instruction& instruction = kernel_.instructions[fixup.instruction];
        Operand& target = instruction.operands[fixup.operand];
        const auto found = scope.labels.find(target.name);
        if (found != scope.labels.end()) {
            target.form = Operand::Form::Label;
            target.index = found->second;
        } else if (scopes_.empty() && !context_.refused) {
            lexer_.fail("no label '" + target.name + "'", instruction.line);
        } else if (scopes_.empty()) {
            continue;  // and refused when it is decoded
        } else {
            scopes_.back().fixups.push_back(fixup);
        }
    }
}

void Body::statement()
{
    const Token& token = lexer_.peek();
    if (token.form == Token::Form::Directive)
        return directive();
    if (lexer_.accept(";"))
        return;
    if (lexer_.accept("@")) {
        const bool negated = lexer_.accept("!");
        const std::string name(lexer_.take().text);
        RegisterName guard;
        if (!find_register(name, guard) || kernel_.registers[guard.first].type.kind != Kind::Predicate)
            lexer_.fail("no predicate '" + name + "'");
        return instruction(guard.first, negated);
    }
    if (token.form != Token::Form::Word)
        lexer_.fail("unexpected '" + std::string(token.text) + "'");
    if (lexer_.second().is(":"))
        return label();
    instruction(-1, false);
}

// A word and the modifiers or the component behind it. Blanks may precede each of their dots ("ld
// .global.u32",
// "%tid .x"), also where an opcode has several words: ptxas refuses "mbarrier .init".
std::string Body::dotted()
{
    std::string text(lexer_.take().text);
    while (lexer_.peek().form == Token::Form::Directive && lexer_.peek().text != ".")
        text += lexer_.take().text;
    return text;
}

void Body::instruction(int guard, bool negated)
{
    if (lexer_.peek().form != Token::Form::Word)
        lexer_.fail("expected an instruction, found '" + std::string(lexer_.peek().text) + "'");
    Instruction instruction;
    instruction.guard = guard;
    instruction.guard_negated = negated;
    instruction.line = lexer_.peek().line;
    instruction.used_bytes = std::exchange(used_bytes_, ~uint32_t{0});
    const std::string words = dotted();
    std::string_view rest = words;
    for (bool first = true; !rest.empty(); first = false) {
        const size_t point = std::min(rest.find('.'), rest.size());
        if (first)
            instruction.opcode = rest.substr(0, point);
        else
            instruction.modifiers.emplace_back(rest.substr(0, point));
        rest.remove_prefix(std::min(point + 1, rest.size()));
    }
    while (!lexer_.accept(";")) {
        instruction.operands.push_back(operand());
        if (!lexer_.accept(",") && !lexer_.accept("|") && !lexer_.peek().is(";"))
            lexer_.fail("expected ',' or ';', found '" + std::string(lexer_.peek().text) + "'");
    }
    finish(std::move(instruction));
}

// Labels of branches become numbers when their scope ends.
void Body::finish(Instruction instruction)
{
    const int index = static_cast<int>(kernel_.instructions.size());
    std::vector<Operand>& operands = instruction.operands;
    if (instruction.opcode == "brx" && operands.size() == 2 && operands[1].form == Operand::Form::Name) {
        const std::string list = operands[1].name;
        operands.pop_back();
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend() && operands.size() == 1; ++scope)
            if (const auto found = scope->targets.find(list); found != scope->targets.end())
                for (const std::string& target : found->second) {
                    if (++context_.declared.branch_targets > limit::branch_targets)
                        lexer_.fail("too many branch targets", instruction.line);
                    operands.emplace_back().form = Operand::Form::Name;
                    operands.back().name = target;
                }
        if (operands.size() == 1)
            lexer_.fail("no branch targets '" + list + "'", instruction.line);
    }
    if (instruction.opcode == "bra" || instruction.opcode == "brx")
        for (size_t i = 0; i < operands.size(); ++i)
            if (operands[i].form == Operand::Form::Name)
                scopes_.back().fixups.push_back({index, static_cast<int>(i)});
    kernel_.instructions.push_back(std::move(instruction));
}

Operand Body::operand()
{
    const Nesting nesting(context_);
    if (lexer_.accept("{"))
        return list("}");
    if (lexer_.accept("("))
        return list(")");
    if (lexer_.accept("["))
        return address();
    if (lexer_.accept("!")) {
        Operand negated = word(std::string(lexer_.take().text));
        if (negated.form != Operand::Form::Register)
            lexer_.fail("'!' needs a predicate");
        negated.negated = true;
        return negated;
    }
    if (lexer_.accept("-"))
        return number(true);
    if (lexer_.peek().form == Token::Form::Integer || lexer_.peek().form == Token::Form::Float)
        return number(false);
    if (lexer_.peek().form != Token::Form::Word)
        lexer_.fail("unexpected '" + std::string(lexer_.peek().text) + "'");
    Operand result = word(dotted());
    if (result.form == Operand::Form::Symbol && lexer_.accept("+"))
        result.value = lexer_.integer();
    return result;
}

Operand Body::list(std::string_view end)
{
    Operand result;
    result.form = Operand::Form::Vector;
    while (!lexer_.accept(end)) {
        result.parts.push_back(operand());
        if (!lexer_.peek().is(end))
            lexer_.expect(",");
    }
    return result;
}

// [base], [base + offset], [absolute], [base, ...]
Operand Body::address()
{
    Operand result;
    result.form = Operand::Form::Address;
    Operand base = operand();
    if (base.form == Operand::Form::Immediate)
        result.value = base.value;
    else if (base.form == Operand::Form::Register || base.form == Operand::Form::Symbol) {
        result.value = std::exchange(base.value, 0);
        result.parts.push_back(base);
    } else
        lexer_.fail("'" + base.name + "' is no address");
    if (lexer_.accept("+"))
        result.value += lexer_.integer();
    else if (lexer_.peek().is("-"))
        result.value += lexer_.integer();
    if (lexer_.accept("]"))
        return result;
    Operand composite;
    composite.form = Operand::Form::Composite;
    composite.parts.push_back(std::move(result));
    while (lexer_.accept(","))
        composite.parts.push_back(operand());
    lexer_.expect("]");
    return composite;
}

Operand Body::number(bool negative)
{
    Operand result;
    result.form = Operand::Form::Immediate;
    if (lexer_.peek().form == Token::Form::Float) {
        result.is_float = true;
        result.value = lexer_.take().value ^ (negative ? INT64_MIN : 0);
        return result;
    }
    const auto magnitude = static_cast<uint64_t>(lexer_.integer());
    result.value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
    return result;
}

Operand Body::word(const std::string& name)
{
    Operand result;
    result.name = name;
    if (name == "_")
        return result;
    if (RegisterName found; find_register(name, found)) {
        result.form = found.width == 1 ? Operand::Form::Register : Operand::Form::Vector;
        result.index = found.first;
        result.name.clear();
        for (int i = 0; found.width > 1 && i < found.width; ++i) {
            result.parts.emplace_back().form = Operand::Form::Register;
            result.parts.back().index = found.first + i;
        }
    } else if (find_variable(name, result)) {
        result.form = Operand::Form::Symbol;
    } else if (name == "WARP_SZ") {
        result.form = Operand::Form::Immediate;
        result.value = 32;
    } else {
        result.form = name[0] == '%' ? Operand::Form::Special : Operand::Form::Name;
    }
    return result;
}

void parse_body(Context& context, Kernel& kernel, Function* function)
{
    Body(context, kernel).parse(function);
}

}  // namespace emu::ptx
