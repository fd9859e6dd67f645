// The machine: what a grid, cluster, CTA and warp are while a kernel runs.
//
// One thread runs everything. A warp is one or more fragments, groups of lanes with a program counter of
// their own; the one furthest behind runs until it meets another. Asynchronous operations wait in their
// cluster until the scheduler lets them finish, late and in a seeded random order.
#pragma once

#include "check/checker.hpp"
#include "core/config.hpp"
#include "core/report.hpp"
#include "ptx/module.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace emu {

constexpr int warp_lanes = 32;
using Mask = uint32_t;
constexpr Mask all_lanes = ~Mask{0};

struct Cta;
struct Cluster;
struct Grid;
struct Program;
struct Exec;

// ---- Addresses --------------------------------------------------------------------------------------
// Global memory is host memory: a device pointer is the host pointer of the allocation. Shared memory of
// rank r in its cluster starts at r << 24 | 1024; an own-CTA address carries the own rank. Generic
// addresses of shared and local memory lie in windows that no allocation reaches.
constexpr uint64_t shared_window = uint64_t{0x7e} << 40, local_window = uint64_t{0x7d} << 40;
constexpr uint64_t parameter_window = uint64_t{0x7c} << 40;
constexpr uint32_t shared_base = 1024, rank_shift = 24;

// ---- Scopes -----------------------------------------------------------------------------------------
// How far release and acquire reach; they order two threads only if both reach the other. There is one
// device, so that .sys is .gpu.
enum Scope { scope_cta, scope_cluster, scope_gpu, scopes };

// ---- Warp -------------------------------------------------------------------------------------------
// Why a fragment does not run; the scheduler asks `ready` again whenever anything happened.
struct Wait {
    std::function<bool()> ready;       // empty: not waiting
    std::function<std::string()> what;  // for the deadlock report: barrier, phase, counts, bytes
};

struct Fragment {
    int pc = 0;
    Mask lanes = 0;
    Wait wait;
    bool retry = false;       // the instruction is executed again after the wait
    bool converging = false;  // waits for lanes of its warp that are elsewhere
    bool forced = false;      // nothing else can run: go on without them, and report it
};

// bar.warp.sync: who has arrived with one member mask.
struct WarpBarrier {
    Mask arrived = 0;
    uint64_t generation = 0;
};

struct Warp {
    Cta* cta = nullptr;
    int index = 0;  // in the CTA
    int agent = 0;  // in the checker
    Mask exited = 0;
    std::vector<Fragment> fragments;
    std::vector<uint8_t> registers;  // laid out by Program: predicates 4 bytes (a mask), up to 32 bits
                                     // 128 bytes, 64 bits 256 bytes, 128 bits 512 bytes
    std::vector<uint8_t> local;      // local memory, lane by lane
    uint64_t instructions = 0;
    void (*watch)(Exec&) = nullptr;  // if set, called before each instruction of this warp: wgmma looks
                                     // out for registers in flight
    Mask cluster_arrived = 0;        // lanes that have arrived at the running phase of the cluster barrier
    Mask cluster_unwaited = 0;       // lanes that have arrived and not waited yet
    SyncClock published[scopes];     // by fences of at least this scope, for relaxed writes and arrivals
    SyncClock observed[scopes];      // by strong reads of at least this scope, for fences
    SyncClock inits;                 // its mbarrier initialisations
    std::map<Mask, WarpBarrier> barriers;
    Mask carry = 0;                  // the condition code register of extended-precision arithmetic
    int patience = 0;                // backward branches since another fragment ran
    int held_registers = 0;          // per thread, of setmaxnreg; 0: as launched
    std::shared_ptr<void> extension[4];  // state of instruction families (cp.async groups, wgmma, ...),
                                         // indexed by Extension
};
enum Extension { ext_cp_async, ext_bulk, ext_wgmma, ext_tcgen05 };

// ---- CTA, cluster, grid -----------------------------------------------------------------------------
// One use of a named barrier, from its first arrival to its last; those who wait hold on to it.
struct BarrierRound {
    int expected = 0;     // threads; 0: all of the CTA that have not exited
    int arrived = 0;
    uint32_t warps = 0;   // that have arrived, by index
    bool done = false;
    bool all = true, any = false;  // of the predicates given, and how many were true
    uint32_t count = 0;
    SyncClock clock;
};

struct NamedBarrier {
    std::shared_ptr<BarrierRound> round;  // null: idle
};

struct Mbarrier {
    uint64_t phase = 0;
    int32_t expected = 0, pending = 0;
    int64_t tx = 0;
    SyncClock clock;       // of the running phase
    SyncClock completed;   // of the phase that ended last
    int line = 0;          // of its init
};

struct Cta {
    Cluster* cluster = nullptr;
    uint32_t id[3] = {}, rank = 0;  // %ctaid, rank in the cluster
    std::vector<uint8_t> shared;    // static + dynamic; offset 0 is address shared_base
    std::vector<Warp> warps;
    std::array<NamedBarrier, 16> barriers;
    std::map<uint32_t, Mbarrier> mbarriers;  // by offset in shared
    std::shared_ptr<void> tmem;              // tcgen05's tensor memory
    int live_warps = 0;
    int free_registers = 0;  // given back by setmaxnreg.dec
    bool cancel_failed = false;  // it has seen that a clusterlaunchcontrol request failed
    bool done() const { return live_warps == 0; }
};

// Something that was started and will finish later.
struct AsyncOp {
    std::function<void()> finish;
    std::function<bool()> may_finish;  // empty: any time
    const char* name = "";
    int line = 0;
    uint64_t order = 0;
};

struct ClusterBarrier {
    int arrived = 0;
    uint64_t generation = 0;
    SyncClock clock, completed;
};

struct Cluster {
    Grid* grid = nullptr;
    std::vector<std::unique_ptr<Cta>> ctas;
    std::vector<std::unique_ptr<AsyncOp>> pending;
    ClusterBarrier barrier;
    uint32_t slot = 0;  // which of the places for clusters on the device it has
    bool done() const;
    void start(AsyncOp op) { pending.push_back(std::make_unique<AsyncOp>(std::move(op))); }
};

struct Dim3 {
    uint32_t x = 1, y = 1, z = 1;
    uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Launch {
    Dim3 grid, block, cluster;
    uint32_t dynamic_shared = 0;
    bool overlaps = false;  // it may start before the launches in front of it have ended
    std::vector<uint8_t> parameters;
};

// What shared-memory accesses of warps cost: a pass over the banks serves each of them one word.
struct BankPasses {
    uint64_t accesses = 0, passes = 0;
    uint64_t least = 0;  // passes if there were no conflicts
};

// What CTAs take of the multiprocessors. One that has room runs CTAs of several grids, one of each.
struct Multiprocessors {
    struct Used {
        uint64_t threads = 0, shared = 0;
    };
    explicit Multiprocessors(int count, uint64_t threads = UINT64_MAX, uint64_t shared = UINT64_MAX)
        : threads(threads), shared(shared), used(static_cast<size_t>(count))
    {
    }
    uint64_t threads, shared;  // of each
    std::vector<Used> used;
};

struct Grid {
    const Program* program = nullptr;
    Launch launch;
    std::shared_ptr<Multiprocessors> multiprocessors;
    std::vector<std::unique_ptr<Cluster>> resident;
    uint64_t next_cluster = 0;  // not yet started
    bool explicit_cluster = false;
    std::vector<uint64_t> executed;  // warp instructions by Program::ops
    std::vector<BankPasses> banks;   // the same
    std::function<bool(uint32_t (&first_cta)[3])> cancel_cluster;  // clusterlaunchcontrol: take one that
                                                                   // has not started
};

// ---- Machine ----------------------------------------------------------------------------------------
class Memory {
public:
    explicit Memory(int64_t limit) : limit_(limit) {}
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void* allocate(size_t bytes, size_t alignment = 256);  // null when the limit is reached
    bool release(void* base);                              // false: not the start of an allocation
    // Let kernels access memory that somebody else owns, or no longer.
    void adopt(void* base, size_t bytes) { blocks_[reinterpret_cast<uint64_t>(base)] = {bytes, false}; }
    void disown(void* base) { blocks_.erase(reinterpret_cast<uint64_t>(base)), last_size_ = 0; }
    // Does [address, address + bytes) lie inside one allocation? `base`, `size` tell which, if any.
    bool contains(uint64_t address, size_t bytes) const;
    bool find(uint64_t address, uint64_t* base, size_t* size) const;
    bool below(uint64_t address, uint64_t* base, size_t* size) const;  // the last that starts at or before it
    int64_t used() const { return used_; }
    int64_t limit() const { return limit_; }

private:
    struct Block {
        size_t bytes;
        bool owned;
    };
    std::map<uint64_t, Block> blocks_;
    int64_t limit_, used_ = 0;
    mutable uint64_t last_base_ = 0, last_size_ = 0;  // the allocation found last
};

struct Statistics {
    std::map<std::string, uint64_t> opcodes;  // executed warp instructions by opcode and modifiers
    std::map<int, uint64_t> lines;            // the same by line
    std::set<int> group_waits;                // lines of waits for groups that had something to wait for
    std::map<int, BankPasses> shared;         // of plain and matrix loads and stores, by PTX line
    uint64_t tma_bytes = 0, mma_flops = 0;
};

struct Machine {
    explicit Machine(const Config& config);
    Config config;
    Memory memory;
    Checker checker{&reports};
    std::vector<std::unique_ptr<Checker>> spare_checkers;  // of grids that have ended
    Reports reports;
    std::mt19937_64 random;
    Statistics statistics;
    uint64_t steps = 0;     // warp instructions executed: the clock
    uint64_t progress = 0;  // steps at the last event that others can see; far behind steps: a livelock
    uint64_t polls = 0;     // of barriers, in vain, since an asynchronous operation was last made to end
    // Of addresses written by releases, for the acquires that read them: for those in a CTA, a cluster or
    // (null) the grid.
    std::map<std::pair<uint64_t, const void*>, SyncClock> flags;

    // Run a kernel to its end, alone. Throws Fault for what a GPU would report as a launch or context
    // error.
    void run(const Program& program, const Launch& launch);
};

std::string hexadecimal(uint64_t value);  // "0x1f", for messages

// ---- Execution of one instruction -------------------------------------------------------------------
struct Op;
struct Exec {
    Machine& machine;
    Grid& grid;
    Cta& cta;
    Warp& warp;
    Fragment& fragment;
    const Op& op;
    Mask lanes;   // that execute it: the fragment's, less those whose guard is false
    int next_pc;  // handlers of branches change it

    // Stop this fragment until `ready`; with retry, the instruction is then executed again.
    void wait(std::function<bool()> ready, std::function<std::string()> what, bool retry);
    bool retried = false;

    uint32_t* row32(int reg) { return reinterpret_cast<uint32_t*>(warp.registers.data() + reg); }
    uint64_t* row64(int reg) { return reinterpret_cast<uint64_t*>(warp.registers.data() + reg); }
    uint32_t& predicate(int reg) { return *row32(reg); }

    // A hazard: reported with kernel, PTX line, CTA, warp and lanes; `fatal` ones throw Fault.
    void hazard(const char* kind, const std::string& text, Mask lanes = 0);
    [[noreturn]] void fault(const char* kind, const std::string& text);
    // For .aligned instructions, before anything else is done: wait until all lanes that have not exited are
    // here (by an exception that the scheduler catches); complain when they cannot come.
    void require_convergence();
    // The same for the lanes of a member mask.
    void require_lanes(Mask members);
};

// ---- Decoded program --------------------------------------------------------------------------------
// A source or destination, decoded: a register's byte offset in Warp::registers, or a constant.
struct Arg {
    enum class Form : uint8_t { None, Register, Constant, Special } form = Form::None;
    uint8_t width = 4;  // bytes of a lane's value in the register: 0 predicate, 4, 8, 16
    bool negated = false;
    int reg = -1;
    uint64_t constant = 0;
    int special = 0;
    uint8_t bits = 32;  // of the register as declared: 1, 8, 16, 32, 64, 128; narrow ones are kept zero-extended
};

// [base + offset] in a space; base a register or absolute.
struct AddressArg {
    Arg base;
    int64_t offset = 0;
};

using Handler = void (*)(Exec&);

struct Op {
    Handler run = nullptr;
    int guard = -1;  // register offset of the predicate
    bool guard_negated = false;
    int line = 0;
    int name = 0;                  // index in Program::names, for statistics
    std::vector<Arg> args;         // in the order of the PTX operands, vectors flattened
    AddressArg address, address2;  // memory operands, first and second
    int32_t imm[8] = {};           // whatever the decoder of the family wants to remember
    uint64_t wide = 0;
    const ptx::Instruction* source = nullptr;
};

struct Program {
    const ptx::Module* module = nullptr;
    const ptx::Kernel* kernel = nullptr;
    std::vector<Op> ops;
    std::vector<std::string> names;
    int register_bytes = 0;
    std::vector<int> register_offset;  // by ptx register index
    std::vector<uint64_t> global_address;  // of module->globals
    const ptx::Instruction* decoding = nullptr;
    mutable std::shared_ptr<void> register_uses;  // by instruction, filled when wgmma first needs it
};

// Decoders turn an instruction into an Op: they set `run`, `args`, ... or throw ptx::Error naming what they
// do not know. Each file of ops/ adds the opcodes it knows. A key is an opcode ("cp") or an opcode with its
// first modifier ("fence.proxy", "barrier.cluster", "st.async"), which is looked up first.
using Decoder = void (*)(const ptx::Instruction&, Program&, Op&);
struct DecoderTable {
    std::map<std::string, Decoder, std::less<>> by_opcode;  // "cp" and the like branch on the modifiers
                                                            // themselves
    std::vector<void (*)(Exec&)> at_warp_exit, at_cta_exit;  // checks; run in the last exit of either
};
const DecoderTable& decoders();
void add_arithmetic(DecoderTable&);  // ops/arithmetic.cpp, logic, conversion, selp, setp, mov, prmt ...
void add_memory(DecoderTable&);      // ld, st, atom, red, cvta, prefetch, fence/membar
void add_control(DecoderTable&);     // bra, ret, exit, bar, barrier, shfl, vote, match, redux, elect, activemask
void add_matrix(DecoderTable&);      // ldmatrix, stmatrix, movmatrix, mma
void add_async(DecoderTable&);       // cp.*, mbarrier, mapa, griddepcontrol, clusterlaunchcontrol, ...
void add_wgmma(DecoderTable&);
void add_tcgen05(DecoderTable&);

// Decode a kernel. Operand helpers for decoders:
Program decode(const ptx::Module& module, const ptx::Kernel& kernel, const std::vector<uint64_t>& global_address);
// Every complaint of a kernel's instructions, where decode() stops at the first.
std::vector<std::string> refusals(const ptx::Module& module, const ptx::Kernel& kernel,
                                  const std::vector<uint64_t>& global_address);
Arg decode_arg(const ptx::Operand& operand, const Program& program);
// The same for a value of a type: floating literals become its bits, a register of another width is refused.
Arg decode_arg(const ptx::Operand& operand, const Program& program, const ptx::Instruction& instruction,
               const ptx::Type& type);
AddressArg decode_address(const ptx::Operand& operand, const Program& program);
[[noreturn]] void refuse(const ptx::Instruction& instruction, const Program& program, const std::string& why);

// ---- Memory accesses --------------------------------------------------------------------------------
// Where a generic or space-qualified address leads: bounds and alignment are checked by resolve().
struct Location {
    ptx::Space space = ptx::Space::Global;
    Cta* cta = nullptr;      // owner of shared memory
    uint32_t offset = 0;     // in its shared memory
    uint8_t* bytes = nullptr;
};
Location resolve(Exec& x, ptx::Space space, uint64_t address, int bytes, int alignment, int lane);
// The CTA and offset of a 32-bit shared::cluster address; faults when it is outside.
Location resolve_shared(Exec& x, uint32_t address, int bytes, int alignment, const char* what);

}  // namespace emu
