#include "mutation/text.hpp"

#include "driver/driver.hpp"
#include "driver/image.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace mutation {
namespace {

std::string trim(const std::string& text)
{
    const size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
    return first == std::string::npos ? "" : text.substr(first, last + 1 - first);
}

// Without its comment; a semicolon ends a line.
void add_lines(std::vector<std::string>& lines, std::string line)
{
    line = trim(line.substr(0, line.find("//")));
    for (size_t end; (end = line.find(';')) != std::string::npos && end + 1 < line.size();) {
        lines.push_back(line.substr(0, end + 1));
        line = trim(line.substr(end + 1));
    }
    if (!line.empty())
        lines.push_back(line);
}

// Is this the first line of a kernel, and of which? nvcc puts the name there.
bool starts_kernel(const std::string& line) { return line.rfind(".visible .entry ", 0) == 0; }

}  // namespace

std::string read_ptx(const std::string& path, int cc)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error("cannot read " + path);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    const std::string image = bytes.str();
    if (image.empty())
        throw std::runtime_error(path + " is empty");
    try {
        return std::string(emu::driver::choose_ptx(image.c_str(), cc).text);
    } catch (const emu::driver::Failure& failure) {
        throw std::runtime_error(path + ": " + failure.text);
    }
}

std::vector<std::string> kernel_lines(const std::string& module, const std::string& kernel)
{
    std::vector<std::string> lines;
    std::istringstream text(module);
    bool skipping = false, found = false;
    ptrdiff_t depth = 0;
    for (std::string line; std::getline(text, line);) {
        if (starts_kernel(line)) {
            skipping = line.rfind(".visible .entry " + kernel + "(", 0) != 0;
            found |= !skipping;
        }
        if (!skipping)
            add_lines(lines, line);
        const ptrdiff_t opened = std::count(line.begin(), line.end(), '{');
        const ptrdiff_t closed = std::count(line.begin(), line.end(), '}');
        depth += opened - closed;
        if (closed > 0 && depth == 0)
            skipping = false;
    }
    if (!found)
        throw std::runtime_error("no kernel " + kernel);
    return lines;
}

std::string join(const std::vector<std::string>& lines)
{
    std::string text;
    for (const std::string& line : lines)
        text += line + "\n";
    return text;
}

std::vector<std::string> split_list(const std::string& text)
{
    std::vector<std::string> parts;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : ',';
        depth += c == '{' || c == '[' || c == '(';
        depth -= c == '}' || c == ']' || c == ')';
        if (c == ',' && depth == 0) {
            parts.push_back(trim(text.substr(start, i - start)));
            start = i + 1;
        }
    }
    if (parts.size() == 1 && parts[0].empty())
        parts.clear();
    return parts;
}

Statement parse_statement(const std::string& line)
{
    Statement statement;
    std::string rest = line;
    if (rest.empty() || rest.back() != ';' || rest[0] == '.')
        return statement;
    rest.pop_back();
    if (rest[0] == '@') {
        const size_t end = rest.find(' ');
        statement.guard = rest.substr(0, end) + " ";
        rest = trim(rest.substr(end));
    }
    const size_t end = rest.find_first_of(" \t");
    statement.opcode = rest.substr(0, end);
    if (end != std::string::npos)
        statement.operands = split_list(trim(rest.substr(end)));
    return statement;
}

std::string Statement::print() const
{
    std::string text = guard + opcode;
    for (size_t i = 0; i < operands.size(); ++i)
        text += (i ? ", " : " ") + operands[i];
    return text + ";";
}

}  // namespace mutation
