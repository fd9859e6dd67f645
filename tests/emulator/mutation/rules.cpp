// Rules about order: fences, waits, barriers, arrivals, groups, convergence.
#include "mutation/rules.hpp"

#include <array>
#include <cstdlib>

namespace mutation {

std::vector<Mutant> find_mutants(const std::vector<std::string>& lines, const std::vector<bool>& executed)
{
    std::vector<Mutant> mutants;
    Rules rules(lines, mutants);
    for (size_t line = 0; line < lines.size(); ++line)
        if (executed[line])
            rules.visit(line);
    return mutants;
}

void Rules::visit(size_t line)
{
    line_ = line;
    here_ = parse_statement(lines_[line]);
    if (here_.opcode.empty())
        return;
    fences();
    waits();
    barriers();
    arrivals();
    commits();
    convergence();
    stages();
    copies();
    multicasts();
    descriptors();
    tensor_memory();
    matrices();
}

void Rules::add(const char* kind, const std::string& change, const std::string& text,
                const std::string& equivalent)
{
    out_.push_back({line_, kind, change, text, equivalent});
}

void Rules::remove(const char* kind, const std::string& equivalent)
{
    add(kind, "removed", "", equivalent);
}

std::string Rules::with(size_t operand, const std::string& text) const
{
    Statement other = here_;
    other.operands[operand] = text;
    return other.print();
}

std::string Rules::changed(size_t operand, const std::string& type, const std::string& operation,
                           const std::string& by) const
{
    return "{\n.reg ." + type + " %mutant;\nmov." + type + " %mutant, " + here_.operands[operand] + ";\n" +
           operation + " %mutant, %mutant" + (by.empty() ? "" : ", " + by) + ";\n" +
           with(operand, "%mutant") + "\n}";
}

long Rules::constant(const std::string& operand) const
{
    if (!operand.empty() && operand[0] != '%')
        return std::strtol(operand.c_str(), nullptr, 0);
    for (size_t line = line_; line-- > 0;) {
        const Statement before = parse_statement(lines_[line]);
        if (!before.operands.empty() && before.operands[0] == operand)
            return before.is("mov.") && before.operands[1][0] != '%' ? constant(before.operands[1]) : -1;
    }
    return -1;
}

bool Rules::repeats() const
{
    static constexpr std::array harmless = {"mov", "add", "sub", "mul",  "mad",  "shl", "shr",
                                            "and", "or",  "xor", "setp", "selp", "cvt", "cvta"};
    for (size_t line = line_; line-- > 0;) {
        const Statement before = parse_statement(lines_[line]);
        if (before.print() == here_.print())
            return true;
        const std::string word = before.opcode.substr(0, before.opcode.find('.'));
        bool passes = false;
        for (const char* one : harmless)
            passes |= word == one;
        if (!passes)
            return false;
    }
    return false;
}

constexpr char repeated[] = "the same was executed just before";

void Rules::fences()
{
    if (here_.is("fence.") || here_.is("tcgen05.fence") || here_.is("wgmma.fence") || here_.is("membar"))
        remove("fence", repeats() ? repeated : "");
}

void Rules::waits()
{
    if (here_.is("mbarrier.try_wait") || here_.is("mbarrier.test_wait")) {
        add("wait", "does not wait", here_.guard + "setp.eq.b32 " + here_.operands[0] + ", 0, 0;");
        add("phase", "parity flipped", changed(2, "b32", "xor.b32", "1"));
    }
    if (here_.is("griddepcontrol.wait"))
        remove("wait", "launches of the test follow one another");
    if (here_.is("tcgen05.wait") || here_.is("cp.async.wait_all"))
        remove("wait");
    if (!here_.has(".wait_group"))
        return;
    const long left = constant(here_.operands[0]);
    remove("wait");
    add("wait", "leaves one group more", with(0, std::to_string(left + 1)));
}

void Rules::barriers()
{
    const bool cta = here_.is("bar.sync") || here_.is("barrier.sync") || here_.is("barrier.cta.sync") ||
                     here_.is("bar.arrive") || here_.is("bar.warp.sync");
    if (cta || here_.is("barrier.cluster"))
        remove("barrier", repeats() ? repeated : "");
    if (cta && !here_.has("warp") && here_.operands.size() == 2)
        add("barrier", "of one warp less", changed(1, "b32", "sub.s32", "32"));
}

void Rules::arrivals()
{
    if (here_.is("mbarrier.init")) {
        add("arrival", "one expected more", changed(1, "b32", "add.s32", "1"));
        add("arrival", "one expected less", changed(1, "b32", "sub.s32", "1"));
        remove("arrival");
    }
    if (here_.is("mapa"))
        add("arrival", "at another CTA", changed(2, "b32", "xor.b32", "1"));
    if (here_.is("mbarrier.arrive"))
        remove("arrival");
    if (!here_.has("expect_tx"))
        return;
    const size_t bytes = here_.operands.size() - 1;
    add("bytes", "16 more", changed(bytes, "b32", "add.s32", "16"));
    add("bytes", "16 less", changed(bytes, "b32", "sub.s32", "16"));
    if (here_.is("mbarrier.arrive.expect_tx")) {
        Statement plain = here_;
        plain.opcode.replace(plain.opcode.find(".expect_tx"), 10, "");
        plain.operands.pop_back();
        add("bytes", "none expected", plain.print());
    }
}

void Rules::commits()
{
    if (here_.has("commit") || here_.is("cp.async.mbarrier.arrive"))
        remove("commit");
}

void Rules::convergence()
{
    const bool aligned = here_.has(".aligned") || here_.is("bar.sync") || here_.is("bar.warp.sync");
    if (!aligned)
        return;
    std::string both;
    if (!here_.guard.empty()) {
        const bool negated = here_.guard[1] == '!';
        const std::string guard =
            here_.guard.substr(negated ? 2 : 1, here_.guard.find(' ') - (negated ? 2 : 1));
        both = (negated ? "not.pred %other, " : "mov.pred %other, ") + guard +
               ";\nand.pred %mutant, %mutant, %other;\n";
    }
    Statement guarded = here_;
    guarded.guard = "@%mutant ";
    add("convergence", "lane 31 stays away",
        "{\n.reg .pred %mutant, %other;\n.reg .b32 %lane;\nmov.u32 %lane, %laneid;\n"
        "setp.ne.u32 %mutant, %lane, 31;\n" +
            both + guarded.print() + "\n}");
}

}  // namespace mutation
