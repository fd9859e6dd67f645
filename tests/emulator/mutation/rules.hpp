// Which mutants a kernel's text has, by rule.
#pragma once

#include "mutation/text.hpp"

#include <string>
#include <vector>

namespace mutation {

struct Mutant {
    size_t line = 0;           // index in the kernel's lines
    std::string kind;          // of the table: "fence", "wait", ...
    std::string change;        // "removed", "parity flipped", ...
    std::string text;          // in place of the line; may be several
    std::string equivalent;    // why it changes nothing, if it does not
    std::vector<size_t> gone;  // other lines that go with it
};

// What runs of the kernel have shown, by line.
struct Facts {
    std::vector<bool> executed;
    std::vector<bool> idle_waits;  // for groups, where there never was anything to wait for
};
// All mutants of the lines that are executed.
std::vector<Mutant> find_mutants(const std::vector<std::string>& lines, const Facts& facts);

// ---- Between the files of rules ----------------------------------------------------------------------
class Rules {
public:
    Rules(const std::vector<std::string>& lines, const Facts& facts, std::vector<Mutant>& out)
        : lines_(lines), facts_(facts), out_(out)
    {
    }
    void visit(size_t line);

private:
    // rules.cpp: order and counts
    void fences();
    void waits();
    void barriers();
    void cluster_barriers();
    void rings();
    void arrivals();
    void commits();
    void convergence();
    // rules_operands.cpp: addresses, descriptors, coordinates
    void stages();
    void copies();
    void cluster_stores();
    void multicasts();
    void cluster_launches();
    void descriptors();
    void tensor_memory();
    void matrices();

    void add(const char* kind, const std::string& change, const std::string& text,
             const std::string& equivalent = "");
    void remove(const char* kind, const std::string& equivalent = "");
    // The statement with one operand replaced.
    std::string with(size_t operand, const std::string& text) const;
    // The same with what an instruction ("add.s32", "16") makes of the operand.
    std::string changed(size_t operand, const std::string& type, const std::string& operation,
                        const std::string& by = "") const;
    // The number of a "n" operand, or what a register was last set to, above; -1 if that is not known.
    long constant(const std::string& operand) const;
    std::string needless() const;
    size_t next_of(size_t line) const;

    const std::vector<std::string>& lines_;
    const Facts& facts_;
    std::vector<Mutant>& out_;
    size_t line_ = 0;
    Statement here_;
};

// "[%r1+8]" and the like, `bytes` further on.
std::string shifted(const std::string& address, long bytes);

}  // namespace mutation
