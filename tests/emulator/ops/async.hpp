// What the asynchronous instruction families share: decoding helpers, instructions that act later, and
// groups of them that threads commit and wait for.
#pragma once

#include "core/modifiers.hpp"
#include "core/state.hpp"

#include <deque>
#include <initializer_list>
#include <string_view>

namespace emu {

// ---- Decoding ---------------------------------------------------------------------------------------
// Refuse an instruction that has another modifier than these.
void allow_modifiers(const ptx::Instruction& i, const Program& program,
                     std::initializer_list<std::string_view> allowed);
// .shared, .shared::cta and .shared::cluster: Shared; nothing: None, a generic address.
ptx::Space space_of(const ptx::Instruction& i);
bool is_predicate(const ptx::Operand& operand, const Program& program);
int immediate(const ptx::Instruction& i, const Program& program, const ptx::Operand& operand);

// ---- Addresses --------------------------------------------------------------------------------------
// Shared memory by a shared or generic address, in any CTA of the cluster.
Location shared_location(Exec& x, ptx::Space space, uint64_t address, int bytes, int alignment, int lane);
// The same offset in another CTA of the cluster.
Location same_place(Exec& x, const Location& here, uint32_t rank, const char* what);

// ---- Instructions that act later --------------------------------------------------------------------
Actor generic_actor(const Exec& x, int lane);

// What an Exec refers to, kept until the operation is done.
struct Deferred {
    Machine& machine;
    Grid& grid;
    Cta& cta;
    Warp& warp;
    const Op& op;
    Fragment fragment;
    Mask lanes;
    int agent;  // of the operation, in the checker

    Deferred(Exec& x, Mask lanes);
    Exec exec() { return {machine, grid, cta, warp, fragment, op, lanes, fragment.pc}; }
    Actor actor(Proxy proxy) const { return {agent, proxy, op.line, warp.index, -1, &cta}; }
    void finished() { machine.checker.finish_async(agent); }
};

inline void run_nothing(Exec&) {}

void start(const std::shared_ptr<Deferred>& deferred, const char* name, std::function<void()> finish);

// Complain about memory of a CTA that has ended.
void check_alive(Exec& x, const Cta& owner);

// ---- Groups -----------------------------------------------------------------------------------------
struct AsyncToken {
    Mask lanes = 0;     // that issued it
    bool read = false;  // its source has been read
    bool done = false;
    bool waited = false;  // somebody knows that it has read its source
    bool by_lanes = false;  // every lane has a part of its own
    SyncClock read_clock, clock;
};
using Token = std::shared_ptr<AsyncToken>;

class AsyncGroups {
public:
    void add(Token token) { open_.push_back({token->lanes, std::move(token)}); }
    void commit(Mask lanes);
    // What these lanes wait for if at most their `newest` last groups may be unfinished.
    std::vector<Token> before(Mask lanes, int newest) const;
    // All that these lanes have started and not waited for.
    std::vector<Token> everything(Mask lanes) const;
    void forget(Mask lanes, int newest);
    size_t size() const { return groups_.size(); }

private:
    struct Open {
        Mask lanes;
        Token token;
    };
    struct Group {
        Mask lanes;
        std::vector<Token> tokens;
    };
    std::vector<Open> open_;
    std::deque<Group> groups_;
};

AsyncGroups& groups_of(Warp& warp, Extension which);
// Wait until at most `newest` groups are unfinished (`read`: their sources unread) and join what ended;
// false: not yet, the instruction will be tried again.
bool wait_for_groups(Exec& x, AsyncGroups& groups, int newest, bool read);

// Parts of add_async, by file.
void add_cp_async(DecoderTable&);
void add_mbarrier(DecoderTable&);
void add_cluster(DecoderTable&);
void add_async_scheduling(DecoderTable&);
void add_store_async(DecoderTable&);
void add_tensor_map(DecoderTable&);  // tensor_map_replace.cpp
void decode_bulk(const ptx::Instruction&, Program&, Op&);         // cp.async.bulk, cp.reduce.async.bulk
void decode_bulk_tensor(const ptx::Instruction&, Program&, Op&);  // ... .tensor

}  // namespace emu
