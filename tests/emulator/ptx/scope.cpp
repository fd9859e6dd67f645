// Declarations in function bodies, and what a name means there.
#include "ptx/body.hpp"

#include <algorithm>
#include <cstdlib>

namespace emu::ptx {
namespace {

constexpr std::string_view components = "xyzw";

}  // namespace

void Body::directive()
{
    const Token word = lexer_.peek();
    if (word.is(".loc"))
        return location();
    if (word.is(".file"))
        return lexer_.skip_line();
    lexer_.take();
    if (word.is(".reg"))
        declare_registers();
    else if (word.is(".shared"))
        declare_variables(Space::Shared);
    else if (word.is(".local") || word.is(".param"))
        declare_variables(Space::Local);
    else if (word.is(".global") || word.is(".const"))
        declare_variables(word.is(".const") ? Space::Const : Space::Global);
    else if (word.is(".pragma"))
        pragma();
    else if (!word.is(".extern"))  // before .shared
        lexer_.fail("unknown directive '" + std::string(word.text) + "'", word.line);
}

// The only one that matters is "used_bytes_mask 0xfff".
void Body::pragma()
{
    constexpr std::string_view used = "used_bytes_mask ";
    const Token text = lexer_.take();
    if (text.text.substr(0, used.size()) == used)
        used_bytes_ = static_cast<uint32_t>(
            std::strtoul(std::string(text.text.substr(used.size())).c_str(), nullptr, 0));
    lexer_.expect(";");
}

RegisterName Body::place_register(const std::string& name, const Type& type, int width)
{
    const RegisterName place{static_cast<int>(kernel_.registers.size()), width};
    context_.declared.registers += width;
    if (context_.declared.registers > limit::registers)
        lexer_.fail("too many registers");
    for (int i = 0; i < width; ++i)
        kernel_.registers.push_back({width == 1 ? name : name + "." + components[i], type});
    return place;
}

void Body::add_register(const std::string& name, const Type& type, int width)
{
    const std::string full = scopes_.size() == 1 ? name : name + "#" + std::to_string(scope_count_);
    if (!scopes_.back().registers.emplace(name, place_register(full, type, width)).second)
        lexer_.fail("register '" + name + "' is declared twice");
}

void Body::declare_range(const std::string& prefix, const Type& type, int width)
{
    const int64_t count = lexer_.integer();
    if (count < 0 || count > limit::registers_together)
        lexer_.fail("bad register count");
    lexer_.expect(">");
    const RegisterName start{static_cast<int>(kernel_.registers.size()), width};
    if (!scopes_.back().ranges.emplace(prefix, Scope::Range{start, count}).second)
        lexer_.fail("registers '" + prefix + "' are declared twice");
    for (int64_t i = 0; i < count; ++i)
        place_register(prefix + std::to_string(i), type, width);
}

// ".reg .v2 .f32 a, b<4>;"
void Body::declare_registers()
{
    if (lexer_.accept(".align"))
        lexer_.integer();
    const int width = lexer_.accept(".v2") ? 2 : lexer_.accept(".v4") ? 4 : 1;
    Type type;
    const Token word = lexer_.take();
    if (!parse_type(word.text, type))
        lexer_.fail("'" + std::string(word.text) + "' is no register type", word.line);
    if (width > 1 && (type.kind == Kind::Predicate || width * type.bytes() > 16))
        lexer_.fail("no vector register of 'v" + std::to_string(width) + "' predicates or 16 bytes",
                    word.line);
    do {
        const std::string name(lexer_.take().text);
        if (lexer_.accept("<"))
            declare_range(name, type, width);
        else
            add_register(name, type, width);
    } while (lexer_.accept(","));
    lexer_.expect(";");
}

void Body::declare_variables(Space space)
{
    for (Variable& variable : parse_variables(context_, space))
        add_variable(std::move(variable));
}

void Body::add_variable(Variable variable)
{
    const Space space = variable.space;
    const bool global = space == Space::Global || space == Space::Const;
    auto& list = global ? context_.module.globals : space == Space::Shared ? kernel_.shared : kernel_.local;
    const std::string name = variable.name;
    if (!scopes_.back().variables.emplace(name, std::pair{space, static_cast<int>(list.size())}).second)
        lexer_.fail("variable '" + name + "' is declared twice");
    variable.external = space == Space::Shared && variable.bytes == 0;
    if (global)
        variable.name = kernel_.name + "." + name;
    list.push_back(std::move(variable));
}

void Body::label()
{
    const Token name = lexer_.take();
    lexer_.take();
    Scope& scope = scopes_.back();
    if (lexer_.accept(".branchtargets")) {
        auto& targets = scope.targets[std::string(name.text)];
        do
            targets.emplace_back(lexer_.take().text);
        while (lexer_.accept(","));
        lexer_.expect(";");
    } else if (lexer_.peek().is(".callprototype") || lexer_.peek().is(".calltargets")) {
        while (!lexer_.accept(";"))
            lexer_.take();
    } else if (!scope.labels.emplace(name.text, static_cast<int>(kernel_.instructions.size())).second) {
        lexer_.fail("label '" + std::string(name.text) + "' is defined twice", name.line);
    }
}

bool Body::find_name(const std::string& name, RegisterName& found) const
{
    const size_t prefix = name.find_last_not_of("0123456789") + 1;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        if (const auto known = scope->registers.find(name); known != scope->registers.end()) {
            found = known->second;
            return true;
        }
        if (scope->ranges.empty() || prefix == name.size() || name.size() - prefix > 7)
            continue;
        const auto range = scope->ranges.find(name.substr(0, prefix));
        if (range == scope->ranges.end())
            continue;
        const int number = std::stoi(name.substr(prefix));
        if (number >= range->second.count)
            continue;
        found = range->second.start;
        found.first += number * found.width;
        return true;
    }
    return false;
}

// A register, a vector register, or a component of one: "a", "a.y" or "a.g".
bool Body::find_register(const std::string& name, RegisterName& found) const
{
    if (find_name(name, found))
        return true;
    const size_t point = name.find('.');
    if (point == name.npos || point + 2 != name.size() || !find_name(name.substr(0, point), found))
        return false;
    constexpr std::string_view colours = "rgba";
    const size_t place = std::min(components.find(name.back()), colours.find(name.back()));
    if (found.width == 1 || place >= static_cast<size_t>(found.width))
        return false;
    found = {found.first + static_cast<int>(place), 1};
    return true;
}

// Module-scope shared variables join the kernels that name them.
int Body::shared_index(const std::string& name)
{
    const auto [known, fresh] = module_shared_.emplace(name, static_cast<int>(kernel_.shared.size()));
    if (fresh)
        kernel_.shared.push_back(context_.declared.module_shared[context_.declared.shared.at(name)]);
    return known->second;
}

bool Body::find_variable(const std::string& name, Operand& symbol)
{
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
        if (const auto found = scope->variables.find(name); found != scope->variables.end()) {
            std::tie(symbol.space, symbol.index) = found->second;
            return true;
        }
    if (const auto found = parameters_.find(name); found != parameters_.end()) {
        symbol.space = Space::Param;
        symbol.index = found->second;
    } else if (context_.declared.shared.count(name)) {
        symbol.space = Space::Shared;
        symbol.index = shared_index(name);
    } else if (const auto global = context_.declared.globals.find(name);
               global != context_.declared.globals.end()) {
        symbol.space = context_.module.globals[global->second].space;
        symbol.index = global->second;
    } else {
        return false;
    }
    return true;
}

}  // namespace emu::ptx
