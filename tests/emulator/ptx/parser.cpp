// Modules: directives, variables, kernels and functions.
#include "ptx/parser.hpp"

#include <algorithm>
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
        if (size < 0 || (size > 0 && count > (int64_t{1} << 40) / size))
            lexer.fail("bad array size");
        count *= size;
        lexer.expect("]");
    }
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
    const int bytes = variable.type.bytes();
    if (lexer.accept("{")) {
        while (!lexer.accept("}")) {
            parse_initial(context, variable, at);
            if (!lexer.peek().is("}"))
                lexer.expect(",");
        }
        return;
    }
    int64_t value = 0;
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
        }
    }
    put(variable, at, &value, bytes);
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
            if (value <= 0 || (value & (value - 1)))
                lexer.fail("alignment must be a power of two");
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
        } else if (parse_type(word, variable.type) && variable.type.bytes() > 0) {
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

void declare(Context& context, Space space, bool external)
{
    for (Variable& variable : parse_variables(context, space)) {
        variable.external = external;
        const bool shared = space == Space::Shared;
        auto& table = shared ? context.declared.shared : context.declared.globals;
        auto& list = shared ? context.declared.module_shared : context.module.globals;
        table[variable.name] = static_cast<int>(list.size());
        list.push_back(std::move(variable));
    }
}

void parse_three(Lexer& lexer, int (&values)[3])
{
    for (int i = 0; i < 3; ++i) {
        values[i] = i == 0 || lexer.accept(",") ? static_cast<int>(lexer.integer()) : 1;
        if (values[i] < 1)
            lexer.fail("a dimension must be positive");
    }
}

void parse_kernel_directives(Context& context, Kernel& kernel)
{
    Lexer& lexer = context.lexer;
    while (lexer.peek().form == Token::Form::Directive) {
        const std::string word(lexer.take().text);
        if (word == ".maxntid")
            parse_three(lexer, kernel.max_threads);
        else if (word == ".reqntid")
            parse_three(lexer, kernel.required_threads);
        else if (word == ".reqnctapercluster")
            parse_three(lexer, kernel.cluster);
        else if (word == ".minnctapersm")
            kernel.min_ctas = static_cast<int>(lexer.integer());
        else if (word == ".maxnreg")
            kernel.max_registers = static_cast<int>(lexer.integer());
        else if (word == ".explicitcluster")
            kernel.explicit_cluster = true;
        else if (word == ".maxclusterrank" || word == ".maxnctapersm" || word == ".abi_preserve" ||
                 word == ".abi_preserve_control")
            lexer.integer();
        else if (word == ".pragma")
            lexer.take(), lexer.expect(";");
        else if (word != ".noreturn" && word != ".blocksareclusters")
            lexer.fail("unknown directive '" + word + "'");
    }
}

void parse_entry(Context& context)
{
    Lexer& lexer = context.lexer;
    Kernel kernel;
    kernel.line = lexer.peek().line;
    kernel.name = lexer.take().text;
    if (lexer.accept("(")) {
        while (!lexer.accept(")")) {
            lexer.expect(".param");
            kernel.parameters.push_back(parse_variable(context, Space::Param));
            if (!lexer.peek().is(")"))
                lexer.expect(",");
        }
    }
    kernel.parameter_bytes = lay_out(kernel.parameters);
    parse_kernel_directives(context, kernel);
    if (lexer.accept(";"))
        return;
    if (!lexer.peek().is("{"))
        lexer.expect("{");
    kernel.body = lexer.place();
    context.declared.in_bodies |= lexer.skip_block();
    context.module.kernels.push_back(std::move(kernel));
}

// "(.param .b32 result)" or "(.param ...)": device functions keep theirs in local memory.
void parse_formals(Context& context, Function& function)
{
    Lexer& lexer = context.lexer;
    while (!lexer.accept(")")) {
        if (!lexer.accept(".param"))
            lexer.fail("only .param parameters of functions are supported");
        function.parameters.push_back(static_cast<int>(function.body.local.size()));
        function.body.local.push_back(parse_variable(context, Space::Local));
        if (!lexer.peek().is(")"))
            lexer.expect(",");
    }
}

void parse_function(Context& context)
{
    Lexer& lexer = context.lexer;
    Function function;
    if (lexer.accept("("))
        parse_formals(context, function);
    function.results = function.parameters.size();
    function.body.line = lexer.peek().line;
    function.body.name = lexer.take().text;
    if (lexer.accept("("))
        parse_formals(context, function);
    parse_kernel_directives(context, function.body);
    if (!lexer.accept(";")) {
        parse_body(context, function.body, &function);
        function.defined = true;
        context.declared.in_bodies |= !function.body.shared.empty();
    }
    Function& known = context.declared.functions[function.body.name];
    if (function.defined || !known.defined)
        known = std::move(function);
}

void parse_version(Context& context)
{
    const std::string text(context.lexer.take().text);
    const size_t point = text.find('.');
    if (point == text.npos)
        context.lexer.fail("bad version");
    context.module.version = std::atoi(text.c_str()) * 10 + std::atoi(text.c_str() + point + 1);
}

void skip_section(Lexer& lexer)
{
    while (!lexer.accept("{"))
        lexer.take();
    while (!lexer.accept("}")) {
        if (lexer.peek().form == Token::Form::End)
            lexer.fail("section without an end");
        lexer.take();
    }
}

void parse_directive(Context& context)
{
    Lexer& lexer = context.lexer;
    bool external = false;
    while (lexer.peek().is(".visible") || lexer.peek().is(".extern") || lexer.peek().is(".weak") ||
           lexer.peek().is(".common"))
        external |= lexer.take().is(".extern");
    const Token word = lexer.take();
    if (word.is(".version")) {
        parse_version(context);
    } else if (word.is(".target")) {
        context.module.target = lexer.take().text;
        while (lexer.accept(","))
            lexer.take();
    } else if (word.is(".address_size")) {
        if (lexer.integer() != 64)
            lexer.fail("only 64-bit addresses are supported", word.line);
    } else if (word.is(".entry")) {
        parse_entry(context);
    } else if (word.is(".func")) {
        parse_function(context);
    } else if (word.is(".global") || word.is(".const")) {
        declare(context, word.is(".const") ? Space::Const : Space::Global, external);
    } else if (word.is(".shared")) {
        declare(context, Space::Shared, external);
    } else if (word.is(".file")) {
        const int line = word.line;
        while (lexer.peek().line == line && lexer.peek().form != Token::Form::End)
            lexer.take();
    } else if (word.is(".section")) {
        skip_section(lexer);
    } else if (word.is(".pragma")) {
        lexer.take(), lexer.expect(";");
    } else {
        lexer.fail("unknown directive '" + std::string(word.text) + "'", word.line);
    }
}

// What variables there are, and how much shared memory a kernel takes, must be known without its body.
bool bodies_are_needed(const Declarations& declared)
{
    return declared.in_bodies || std::any_of(declared.module_shared.begin(), declared.module_shared.end(),
                                             [](const Variable& v) { return v.bytes > 0; });
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

Module parse(std::string text, std::string file)
{
    Module module;
    module.file = std::move(file);
    module.text = std::move(text);
    module.declarations = std::make_shared<Declarations>();
    Lexer lexer(module);
    Context context{module, lexer, *module.declarations};
    while (lexer.peek().form != Token::Form::End) {
        if (lexer.accept(";"))
            continue;
        if (lexer.peek().form != Token::Form::Directive)
            lexer.fail("expected a directive, found '" + std::string(lexer.peek().text) + "'");
        parse_directive(context);
    }
    inline_functions(context);
    if (bodies_are_needed(*module.declarations))
        for (Kernel& kernel : module.kernels)
            read_body(module, kernel);
    if (module.version == 0 || module.target.empty())
        throw Error(quote(module, 1, ".version or .target is missing"));
    return module;
}

void read_body(Module& module, Kernel& kernel)
{
    if (kernel.is_read)
        return;
    Lexer lexer(module, kernel.body);
    Context context{module, lexer, *module.declarations};
    Kernel whole = kernel;
    parse_body(context, whole, nullptr);
    inline_calls(context, whole);
    kernel.local_bytes = lay_out(whole.local);
    kernel.shared_bytes = lay_out(whole.shared);
    kernel.local = std::move(whole.local);
    kernel.shared = std::move(whole.shared);
    kernel.registers = std::move(whole.registers);
    kernel.instructions = std::move(whole.instructions);
    kernel.is_read = true;
}

}  // namespace emu::ptx
