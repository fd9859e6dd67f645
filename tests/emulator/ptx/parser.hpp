// The parser's two halves: the module with its declarations, and the body of one function.
#pragma once

#include "ptx/lexer.hpp"

#include <map>
#include <unordered_map>

namespace emu::ptx {

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
};

// What both halves know.
struct Context {
    Module& module;
    Lexer& lexer;
    Declarations& declared;
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
