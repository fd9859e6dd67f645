// Variables: types, sizes, initial values, and where they lie.
#include "ptx/parser.hpp"

#include <cstring>

namespace emu::ptx {
namespace {

void parse_dimensions(Context& context, Variable& variable)
{
    Lexer& lexer = context.lexer;
    int64_t count = 1;
    while (lexer.accept("[")) {
        if (lexer.accept("]")) {
            count = 0;
            continue;
        }
        const int64_t size = lexer.integer();
        if (size < 0 || (size > 0 && count > limit::variable_bytes / size))
            lexer.fail("bad array size");
        count *= size;
        lexer.expect("]");
    }
    if (count > limit::variable_bytes / variable.bytes)
        lexer.fail("bad array size");
    variable.bytes *= count;
}

void put(Variable& variable, int64_t at, const void* bytes, size_t count)
{
    if (static_cast<int64_t>(variable.initial.size()) < at + static_cast<int64_t>(count))
        variable.initial.resize(at + count);
    std::memcpy(variable.initial.data() + at, bytes, count);
}

// A scalar, an address ("name", "name+4", "generic(name)"), or a braced list of either.
void parse_initial(Context& context, Variable& variable, int64_t& at)
{
    Lexer& lexer = context.lexer;
    const Nesting nesting(context);
    const int bytes = variable.type.bytes();
    if (lexer.accept("{")) {
        while (!lexer.accept("}")) {
            parse_initial(context, variable, at);
            if (!lexer.peek().is("}"))
                lexer.expect(",");
        }
        return;
    }
    int64_t words[2] = {};
    int64_t& value = words[0];
    if (lexer.peek().form == Token::Form::Word) {
        const bool generic = lexer.peek().is("generic") && lexer.second().is("(");
        if (generic)
            lexer.take(), lexer.take();
        if (bytes != 8)
            lexer.fail("an address needs 8 bytes");
        variable.references.push_back({at, std::string(lexer.take().text)});
        if (generic)
            lexer.expect(")");
        if (lexer.accept("+"))
            value = lexer.integer();
    } else {
        const bool negative = lexer.peek().is("-") && lexer.second().form == Token::Form::Float;
        if (negative)
            lexer.take();
        if (lexer.peek().form == Token::Form::Float) {
            const auto bits =
                static_cast<uint64_t>(lexer.take().value) ^ (negative ? uint64_t{1} << 63 : 0);
            value = static_cast<int64_t>(bytes == 4 ? narrow_float(bits) : bits);
        } else {
            value = lexer.integer();
            words[1] = value < 0 ? -1 : 0;
        }
    }
    put(variable, at, words, bytes);
    at += bytes;
}

Variable parse_declarator(Context& context, Variable variable)
{
    Lexer& lexer = context.lexer;
    if (lexer.peek().form != Token::Form::Word)
        lexer.fail("expected a name, found '" + std::string(lexer.peek().text) + "'");
    variable.name = lexer.take().text;
    variable.bytes *= variable.type.bytes();
    parse_dimensions(context, variable);
    if (lexer.accept("=")) {
        int64_t at = 0;
        parse_initial(context, variable, at);
        if (variable.bytes == 0)
            variable.bytes = at;
        if (at > variable.bytes)
            lexer.fail("more initial values than elements");
    }
    return variable;
}

// ".align 16", ".v4", ".b8", ".ptr .global .align 1": what stands before the name.
Variable parse_prefix(Context& context, Space space)
{
    Lexer& lexer = context.lexer;
    Variable variable;
    variable.space = space;
    variable.bytes = 1;
    int alignment = 0;
    bool pointer = false, typed = false;
    while (lexer.peek().form == Token::Form::Directive) {
        const std::string word(lexer.take().text);
        if (word == ".align") {
            const int64_t value = lexer.integer();
            if (value <= 0 || (value & (value - 1)) || value > limit::alignment)
                lexer.fail("alignment must be a power of two up to 2^20");
            if (!pointer)
                alignment = static_cast<int>(value);
        } else if (word == ".v2" || word == ".v4" || word == ".v8") {
            variable.bytes = word[2] - '0';
        } else if (word == ".ptr") {
            pointer = true;
        } else if (word == ".attribute") {
            lexer.expect("(");
            while (!lexer.accept(")"))
                lexer.take();
        } else if (Type type; parse_type(word, type) && type.bytes() > 0) {
            variable.type = type;
            typed = true;
        } else if (!pointer) {
            lexer.fail("unknown '" + word + "' in a declaration");
        }
    }
    if (!typed)
        lexer.fail("a variable needs a type");
    variable.alignment = alignment ? alignment : variable.type.bytes() * static_cast<int>(variable.bytes);
    return variable;
}

}  // namespace

std::vector<Variable> parse_variables(Context& context, Space space)
{
    const Variable prefix = parse_prefix(context, space);
    std::vector<Variable> variables;
    do
        variables.push_back(parse_declarator(context, prefix));
    while (context.lexer.accept(","));
    context.lexer.expect(";");
    return variables;
}

Variable parse_variable(Context& context, Space space)
{
    return parse_declarator(context, parse_prefix(context, space));
}

// External shared arrays all start behind the rest.
int64_t lay_out(std::vector<Variable>& variables)
{
    int64_t end = 0;
    const auto aligned = [&](const Variable& v) {
        return (end + v.alignment - 1) / v.alignment * v.alignment;
    };
    for (Variable& variable : variables) {
        if (variable.external)
            continue;
        variable.offset = aligned(variable);
        end = variable.offset + variable.bytes;
    }
    for (const Variable& variable : variables)
        if (variable.external)
            end = aligned(variable);
    for (Variable& variable : variables)
        if (variable.external)
            variable.offset = end;
    return end;
}

}  // namespace emu::ptx
