// Modules: directives, kernels and functions.
#include "ptx/parser.hpp"

#include <algorithm>
#include <cstdlib>

namespace emu::ptx {
namespace {

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
        const int64_t value = i == 0 || lexer.accept(",") ? lexer.integer() : 1;
        if (value < 1 || value > 1 << 20)
            lexer.fail("a dimension must be positive and no more than 2^20");
        values[i] = static_cast<int>(value);
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
    if (point == text.npos || point > 3 || text.size() - point > 3)
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
        if (lexer.peek().form == Token::Form::Integer && lexer.second().form == Token::Form::String) {
            const auto number = static_cast<int>(lexer.take().value);
            context.module.files[number] = lexer.take().text;
        }
        while (lexer.peek().line == word.line && lexer.peek().form != Token::Form::End)
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

// All that stands outside of bodies; with a list of refusals, what is wrong is passed over.
void parse_directives(Context& context)
{
    Lexer& lexer = context.lexer;
    while (lexer.peek().form != Token::Form::End) {
        if (lexer.accept(";"))
            continue;
        const Place start = lexer.place();
        try {
            if (lexer.peek().form != Token::Form::Directive)
                lexer.fail("expected a directive, found '" + std::string(lexer.peek().text) + "'");
            parse_directive(context);
        } catch (const Error& error) {
            if (!context.refused)
                throw;
            note_refusal(context, error);
            lexer.skip_directive(start);
        }
    }
}

}  // namespace

Module parse(std::string text, std::string file, Refusals* refused)
{
    Module module;
    module.file = std::move(file);
    module.text = std::move(text);
    module.declarations = std::make_shared<Declarations>();
    Lexer lexer(module);
    Context context{module, lexer, *module.declarations, refused};
    parse_directives(context);
    inline_functions(context);
    if (bodies_are_needed(*module.declarations))
        for (Kernel& kernel : module.kernels)
            read_body(module, kernel, refused);
    if (module.version == 0 || module.target.empty())
        throw Error(quote(module, 1, ".version or .target is missing"));
    return module;
}

void note_refusal(Context& context, const Error& error)
{
    if (context.refused->size() >= limit::refusals)
        throw error;
    context.refused->push_back(error.what());
}

void read_body(Module& module, Kernel& kernel, Refusals* refused)
{
    if (kernel.is_read)
        return;
    Lexer lexer(module, kernel.body);
    Context context{module, lexer, *module.declarations, refused};
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
