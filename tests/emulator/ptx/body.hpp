// The parser of function bodies: scopes with registers, variables and labels of their own. Its declarations
// and look-ups are in scope.cpp, its instructions and operands in body.cpp.
#pragma once

#include "ptx/parser.hpp"

#include <array>

namespace emu::ptx {

// One register, or one of `width` components, each of which has a place of its own among a kernel's.
struct RegisterName {
    int first = 0, width = 1;
};

struct Scope {
    struct Range {
        RegisterName start;
        int64_t count = 0;
    };
    std::unordered_map<std::string, RegisterName> registers;
    std::unordered_map<std::string, Range> ranges;  // of %r<10>: by prefix
    std::unordered_map<std::string, std::pair<Space, int>> variables;
    std::unordered_map<std::string, int> labels;
    std::unordered_map<std::string, std::vector<std::string>> targets;  // .branchtargets
    struct Fixup {
        int instruction, operand;
    };
    std::vector<Fixup> fixups;  // operands whose labels are not known yet
};

using SourcePlace = std::array<int, 3>;  // file, line, column

class Body {
public:
    Body(Context& context, Kernel& kernel) : context_(context), lexer_(context.lexer), kernel_(kernel) {}
    void parse(Function* function);

private:
    void open();
    void close(int line);
    void statement();
    void guarded_statement();
    void directive();
    void location();
    void pragma();
    void declare_registers();
    void declare_range(const std::string& prefix, const Type& type, int width);
    void declare_variables(Space space);
    void add_register(const std::string& name, const Type& type, int width);
    RegisterName place_register(const std::string& name, const Type& type, int width);
    void add_variable(Variable variable);
    void label();
    void instruction(int guard, bool negated);
    void finish(Instruction instruction);

    Operand operand();
    Operand list(std::string_view end);
    Operand address();
    Operand number(bool negative);
    Operand word(const std::string& name);
    std::string dotted();
    bool find_name(const std::string& name, RegisterName& found) const;
    bool find_register(const std::string& name, RegisterName& found) const;
    bool find_variable(const std::string& name, Operand& symbol);
    int shared_index(const std::string& name);

    Context& context_;
    Lexer& lexer_;
    Kernel& kernel_;
    std::vector<Scope> scopes_;
    int scope_count_ = 0;
    uint32_t used_bytes_ = ~uint32_t{0};  // for the next instruction
    std::unordered_map<std::string, int> parameters_, module_shared_;
    std::map<SourcePlace, std::shared_ptr<const Origin>> known_origins_;  // the last of each place
};

}  // namespace emu::ptx
