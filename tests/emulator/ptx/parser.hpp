// The parser's two halves: the module with its declarations, and the body of one function.
#pragma once

#include "ptx/lexer.hpp"

#include <map>
#include <unordered_map>

namespace emu::ptx {

// What a text may ask for, far above what kernels need: a broken one ends in a message.
namespace limit {
constexpr int nesting = 200;  // of scopes, of lists, of calls
constexpr int64_t variable_bytes = int64_t{1} << 40, alignment = 1 << 20;
constexpr int64_t registers_together = 1 << 20;  // of one declaration
constexpr size_t registers = 1 << 23;            // of a module
constexpr size_t kernel_instructions = 1 << 18;  // after inlining
constexpr size_t inlined = 1 << 21;              // instructions and variables in a module
constexpr size_t branch_targets = 1 << 20;       // in a module
constexpr size_t refusals = 1000;                // that are listed
}  // namespace limit

// A device function: its body is inlined where it is called.
struct Function {
    Kernel body;                  // parameters: results first
    std::vector<int> parameters;  // indices in body.local of results, then arguments
    size_t results = 0;
    bool defined = false;
};

// What stands outside of kernels.
struct Declarations {
    std::vector<Variable> module_shared;  // file-scope .shared: laid out in the kernels that use them
    std::unordered_map<std::string, int> globals, shared;
    std::map<std::string, Function> functions;
    bool in_bodies = false;  // shared or global variables are declared there too
    size_t registers = 0, inlined = 0, branch_targets = 0;  // so far, see limit
};

// What both halves know.
struct Context {
    Module& module;
    Lexer& lexer;
    Declarations& declared;
    Refusals* refused = nullptr;
    int depth = 0;
};

// Adds to the list of refusals, or goes on throwing if that is full.
void note_refusal(Context& context, const Error& error);

// A level of what nests.
class Nesting {
public:
    explicit Nesting(Context& context) : context_(context)
    {
        if (context.depth == limit::nesting)
            context.lexer.fail("nested too deeply", context.lexer.peek().line);
        ++context.depth;
    }
    ~Nesting() { --context_.depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

private:
    Context& context_;
};

// After ".global", ".shared", ".param", ...: alignment, type, name, dimensions, initial value. A list
// declares several.
std::vector<Variable> parse_variables(Context& context, Space space);
Variable parse_variable(Context& context, Space space);

// "{ ... }" of a kernel or function whose parameters are declared.
void parse_body(Context& context, Kernel& kernel, Function* function);

// Give every variable its offset; returns the bytes used.
int64_t lay_out(std::vector<Variable>& variables);

// Replace calls of functions that have bodies by those bodies: in all functions, in one kernel.
void inline_functions(Context& context);
void inline_calls(const Context& context, Kernel& kernel);

}  // namespace emu::ptx
