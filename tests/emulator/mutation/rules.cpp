// Rules about order: fences, waits, barriers, arrivals, groups, convergence.
#include "mutation/rules.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace mutation {

std::vector<Mutant> find_mutants(const std::vector<std::string>& lines, const Facts& facts)
{
    std::vector<Mutant> mutants;
    Rules rules(lines, facts, mutants);
    for (size_t line = 0; line < lines.size(); ++line)
        if (facts.executed[line])
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
    cluster_barriers();
    rings();
    arrivals();
    commits();
    convergence();
    stages();
    copies();
    cluster_stores();
    multicasts();
    cluster_launches();
    descriptors();
    tensor_memory();
    matrices();
}

void Rules::add(const char* kind, const std::string& change, const std::string& text,
                const std::string& equivalent)
{
    out_.push_back({line_, kind, change, text, equivalent, {}});
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

// Instructions that no fence or barrier can order: they touch registers alone.
static bool is_local(const Statement& statement)
{
    static constexpr std::array words = {"mov", "add", "sub", "mul", "mad",  "shl",  "shr", "and",  "or",
                                         "xor", "not", "min", "max", "setp", "selp", "cvt", "cvta", ""};
    const std::string word = statement.opcode.substr(0, statement.opcode.find('.'));
    return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr char nothing_follows[] = "nothing follows but the end of the kernel";

static bool is_barrier_of_all(const Statement& statement)
{
    const bool cluster = statement.is("barrier.cluster.arrive") && !statement.has(".relaxed");
    return statement.guard.empty() &&
           (cluster || (statement.is("bar.sync") && statement.operands.size() == 1));
}

// The next statement that is not local, jumps followed.
size_t Rules::next_of(size_t line) const
{
    for (int jumps = 0; jumps < 8; ++line) {
        if (line + 1 >= lines_.size())
            return lines_.size() - 1;
        const Statement next = parse_statement(lines_[line + 1]);
        if (next.is("bra") && next.guard.empty()) {
            const auto label = std::find(lines_.begin(), lines_.end(), next.operands[0] + ":");
            line = static_cast<size_t>(label - lines_.begin()) - 1;
            ++jumps;
        } else if (!is_local(next)) {
            return line + 1;
        }
    }
    return line;
}

// Why the fence or barrier here orders nothing, by what stands around it.
std::string Rules::needless() const
{
    for (size_t line = line_; line-- > 0;) {
        const Statement before = parse_statement(lines_[line]);
        if (before.print() == here_.print())
            return "the same was executed just before";
        if (!is_local(before) || lines_[line].back() == ':')
            break;
    }
    const size_t line = next_of(line_);
    const Statement next = parse_statement(lines_[line]);
    if (next.is("ret") && next.guard.empty())
        return nothing_follows;
    return here_.is("bar.warp.sync") && is_barrier_of_all(next) ? "a barrier of all threads follows at once"
                                                                : "";
}

void Rules::fences()
{
    if (here_.is("fence.") || here_.is("tcgen05.fence") || here_.is("wgmma.fence") || here_.is("membar"))
        remove("fence", needless());
}

void Rules::waits()
{
    if (here_.is("mbarrier.try_wait") || here_.is("mbarrier.test_wait")) {
        add("wait", "does not wait", here_.guard + "setp.eq.b32 " + here_.operands[0] + ", 0, 0;");
        add("phase", "parity flipped", changed(2, "b32", "xor.b32", "1"));
    }
    if (here_.is("griddepcontrol.wait") || here_.is("tcgen05.wait") || here_.is("cp.async.wait_all"))
        remove("wait");
    if (!here_.has(".wait_group"))
        return;
    const std::string idle = facts_.idle_waits[line_] ? "no run has anything that it would wait for" : "";
    remove("wait", idle);
    add("wait", "leaves one group more", with(0, std::to_string(constant(here_.operands[0]) + 1)), idle);
}

void Rules::barriers()
{
    const bool cta = here_.is("bar.sync") || here_.is("barrier.sync") || here_.is("barrier.cta.sync") ||
                     here_.is("bar.arrive") || here_.is("bar.warp.sync");
    if (cta || here_.is("barrier.cluster"))
        remove("barrier", needless());
    if (cta && !here_.has("warp") && here_.operands.size() == 2)
        add("barrier", "of one warp less", changed(1, "b32", "sub.s32", "32"));
}

// An arrive and all waits before the next one, which are of different roles.
void Rules::cluster_barriers()
{
    if (!here_.is("barrier.cluster.arrive"))
        return;
    std::vector<size_t> waits;
    for (size_t line = line_ + 1; line < lines_.size(); ++line) {
        const Statement other = parse_statement(lines_[line]);
        if (other.is("barrier.cluster.arrive"))
            break;
        if (other.is("barrier.cluster.wait"))
            waits.push_back(line);
    }
    remove("barrier");
    out_.back().change = "removed with its waits";
    out_.back().gone = waits;
}

// A ring's position goes on: stage + 1, or 0 behind the last, where the parity flips.
void Rules::rings()
{
    const auto used = [this](const std::string& start, size_t operand) {
        for (const std::string& line : lines_) {
            const Statement other = parse_statement(line);
            if (other.is(start) && other.operands.size() > operand &&
                other.operands[operand] == here_.operands[0])
                return true;
        }
        return false;
    };
    if (here_.is("xor.b32") && used("mbarrier.try_wait", 2))
        add("phase", "never flips",
            here_.guard + "mov.b32 " + here_.operands[0] + ", " + here_.operands[1] + ";");
    if (!here_.is("setp.eq.s32") || here_.operands[2][0] == '%' || !used("selp.b32", 3))
        return;
    const long stages = constant(here_.operands[2]);
    if (stages < 2 || !used("selp.u32", 3))
        return;
    add("stage", "ring of one more", with(2, std::to_string(stages + 1)));
    add("stage", "ring of one less", with(2, std::to_string(stages - 1)));
}

void Rules::arrivals()
{
    if (here_.is("mbarrier.init")) {
        add("arrival", "one expected more", changed(1, "b32", "add.s32", "1"));
        add("arrival", "one expected less", changed(1, "b32", "sub.s32", "1"));
        remove("arrival");
    }
    if (here_.is("mapa"))
        for (const char* by : {"1", "-1"})
            add("rank", by[0] == '-' ? "one less" : "one more", changed(2, "b32", "add.s32", by));
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
    const bool barrier = here_.is("bar.sync") || here_.is("bar.warp.sync");
    if (!barrier && !here_.has(".aligned"))
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
            both + guarded.print() + "\n}",
        barrier && needless() == nothing_follows ? nothing_follows : "");
}

}  // namespace mutation
