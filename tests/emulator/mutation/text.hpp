// The text of one kernel, a statement a line, and its statements as the rules see them.
#pragma once

#include <string>
#include <vector>

namespace mutation {

// The PTX in a .ptx file, or in a fatbin for a compute capability; throws std::runtime_error.
std::string read_ptx(const std::string& path, int cc);

// The lines of a module with this kernel alone; comments are gone.
std::vector<std::string> kernel_lines(const std::string& module, const std::string& kernel);

std::string join(const std::vector<std::string>& lines);

struct Statement {
    std::string guard;   // "@%p1 ", or nothing
    std::string opcode;  // with its modifiers; empty for labels, braces and declarations
    std::vector<std::string> operands;

    bool is(const std::string& start) const { return opcode.rfind(start, 0) == 0; }
    bool has(const std::string& part) const { return opcode.find(part) != std::string::npos; }
    std::string print() const;
};
Statement parse_statement(const std::string& line);

// "a, {b, c}, [d, {e}]" -> a | {b, c} | [d, {e}]
std::vector<std::string> split_list(const std::string& text);

}  // namespace mutation
