// PTX as parsed: what a module's text says, with names resolved and nothing interpreted. Everything
// remembers its line, so that every later complaint can quote it. Bodies of kernels are read when they are
// first needed: images have hundreds, of which a program launches a few.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace emu::ptx {

// A fault in the text: what is wrong, with file, line and the line itself.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

enum class Space : uint8_t { None, Register, Param, Global, Shared, Local, Const };

// Fundamental types by what they hold; the width alone decides how a register is stored.
enum class Kind : uint8_t { Bits, Unsigned, Signed, Float, Bfloat, Predicate };

struct Type {
    Kind kind = Kind::Bits;
    uint8_t bits = 0;    // of one element: 1 for predicates, 8 ... 128
    uint8_t packed = 1;  // 2 for f16x2 and bf16x2

    int bytes() const { return bits / 8 * packed; }
};

// ".f16x2", "u32", ... -> Type; false if it names none.
bool parse_type(std::string_view name, Type& type);

struct Operand {
    enum class Form : uint8_t {
        Register,   // index
        Immediate,  // value: an integer, or the bits of a double for a floating literal (is_float)
        Symbol,     // address of a variable (index into its table by space), plus value
        Address,    // [base + value], base a Register or Symbol in parts[0], or an absolute one (none)
        Composite,  // [map, {x, y, z}]: parts
        Vector,     // {a, b, c}: parts
        Special,    // %tid.x and the like: name
        Label,      // index: instruction number
        Sink,       // _
        Name        // a function or anything else that stays text: name
    };
    Form form = Form::Sink;
    bool negated = false;  // !p
    bool is_float = false;
    Space space = Space::None;  // of a Symbol
    int index = -1;
    int64_t value = 0;
    std::string name;
    std::vector<Operand> parts;
};

struct Instruction {
    std::string opcode;  // "cp", "mbarrier", "add": the first word
    std::vector<std::string>
        modifiers;                  // the rest, in order, without dots: "async", "bulk", "shared::cluster"
    std::vector<Operand> operands;  // a second predicate destination (p|q) is an operand of its own
    int guard = -1;                 // register index of @p
    bool guard_negated = false;
    int line = 0;
    uint32_t used_bytes = ~uint32_t{0};  // of a load, by the pragma before it

    bool has(std::string_view modifier) const;
};

struct Register {
    std::string name;  // with a scope number where scopes repeat a name
    Type type;
};

struct Variable {
    std::string name;
    Space space;
    Type type;
    int64_t offset = 0;  // in its space; parameters: in the parameter block
    int64_t bytes = 0;
    int alignment = 1;
    bool external = false;  // extern .shared: starts behind the static shared memory
    std::vector<uint8_t> initial;
    // Initial values that are addresses of other variables: added to the 8 bytes at `at`.
    struct Reference {
        int64_t at;
        std::string name;
    };
    std::vector<Reference> references;
};

struct Place {
    size_t at = 0;  // in the text
    int line = 1;
};

struct Kernel {
    std::string name;
    std::vector<Variable> parameters, shared, local;
    std::vector<Register> registers;
    std::vector<Instruction> instructions;
    int64_t parameter_bytes = 0, shared_bytes = 0, local_bytes = 0;
    int line = 0;
    // Directives; 0 where absent.
    int max_threads[3] = {}, required_threads[3] = {}, cluster[3] = {};
    int min_ctas = 0, max_registers = 0;
    bool explicit_cluster = false;
    Place body;
    bool is_read = false;  // before, there are no registers, local variables and instructions
};

struct Declarations;

// A line of the source that was compiled, by .loc. Where the compiler put a function's body in the place of
// a call, also the line of the call.
struct Origin {
    int file = 0, line = 0;
    std::shared_ptr<const Origin> caller;
};

struct SourceLine {
    std::string file;
    int line = 0;
};

struct Module {
    std::string file;
    std::string target;  // "sm_90a"
    int version = 0;     // 90 for 9.0
    std::vector<Kernel> kernels;
    std::vector<Variable> globals;  // .global and .const
    std::string text;
    std::shared_ptr<Declarations> declarations;  // what bodies may name
    std::map<int, std::string> files;            // by the numbers that .loc gives them
    // By the PTX line from which on they hold, of bodies that have been read; null: none is known.
    std::map<int, std::shared_ptr<const Origin>> origins;
};

// Any bytes are taken: what is no PTX, or asks for more than the limits in parser.hpp, is an Error. With a
// list of refusals, what can be left out is added to it instead, and the rest is read.
using Refusals = std::vector<std::string>;
Module parse(std::string text, std::string file, Refusals* refused = nullptr);
void read_body(Module& module, Kernel& kernel, Refusals* refused = nullptr);  // if it is not yet

// A line of the text without its indentation; empty if there is none of this number.
std::string_view source_line(const Module& module, int line);

// The source of a line of the text, and then the calls that it was inlined at; empty without .loc.
std::vector<SourceLine> origins_of(const Module& module, int line);
std::string brief(const std::vector<SourceLine>& origins);  // the first and the last: " (sum.cuh:3 from main.cu:8)"

}  // namespace emu::ptx
