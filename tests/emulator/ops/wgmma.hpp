// wgmma in flight. The four warps of a warpgroup issue the same products one by one; a product starts when
// the fourth has issued it, and products of a warpgroup finish in order. Until a warp has waited for it,
// the registers of a product belong to it: their values are kept aside and the registers hold NaN.
#pragma once

#include "core/state.hpp"
#include "ops/shared_matrix.hpp"

#include <deque>

namespace emu {

constexpr int group_warps = 4;

// What the decoder has found out about a wgmma.mma_async.
struct WgmmaForm {
    int n = 0, k = 0;
    MatrixElement a, b;
    bool half_result = false, saturate = false, a_in_registers = false;
    bool negate_a = false, negate_b = false, a_mn_major = false, b_mn_major = false;
    int accumulators = 0;  // registers, the first of Op::args
};
const WgmmaForm& wgmma_form(const Op& op);

// The accumulators of products that follow one another, 64 rows of n.
struct Chain {
    const WgmmaForm form;
    std::vector<uint32_t> values;
    bool joined[group_warps] = {};
    std::vector<int> registers[group_warps];               // offsets of the accumulators
    std::vector<std::pair<int, int>> copies[group_warps];  // moved on while in flight: offset, which
    int unfinished = 0;                                    // products

    explicit Chain(const WgmmaForm& form) : form(form), values(64 * form.n) {}
};

struct Product {
    const Op* op = nullptr;
    std::shared_ptr<Chain> chain;
    unsigned issued = 0;  // by warp
    int agents[group_warps] = {};
    uint64_t a_descriptor = 0, b_descriptor = 0;
    bool accumulate = false;
    SyncClock clock;
};

// What one warp has of its registers: by row of 32 lanes.
struct WarpRegisters {
    std::vector<uint64_t> in_flight;  // number of the last product that writes it, plus 1
    std::vector<uint64_t> read_by;    // the same of products that read it as A
    std::vector<uint64_t> touched;    // fences before the last access by another instruction
    std::vector<uint8_t> copied;      // holds a copy that was made in flight
    uint64_t fences = 0;
    uint64_t issued = 0, waited = 0;  // products
    std::deque<uint64_t> groups;      // number of products issued at each commit
    std::vector<std::pair<std::vector<int>, uint64_t>>
        lists;  // accumulators in use, and by which product last
};

struct Warpgroup {
    Cta* cta = nullptr;
    Warp* warps[group_warps] = {};
    WarpRegisters registers[group_warps];
    std::deque<std::shared_ptr<Product>> products;  // from number `first` on
    uint64_t first = 0, finished = 0;
    std::vector<std::shared_ptr<Chain>> chains;  // with unfinished products

    std::shared_ptr<Product>& product(uint64_t number) { return products[number - first]; }
};

// The warpgroup of a warp; made by the first wgmma instruction of it.
Warpgroup& warpgroup_of(Exec& x);

// Registers: called before every instruction of a warp that uses wgmma.
void watch_registers(Exec& x);
// The unfinished chain that the accumulators of this instruction continue; null: none.
std::shared_ptr<Chain> find_chain(Exec& x, Warpgroup& group);
// Takes the registers of a product that this warp issues; reports those in use.
void take_registers(Exec& x, Warpgroup& group, Product& product, uint64_t number);
// Gives the sums back to the registers of all warps.
void return_registers(Warpgroup& group, Chain& chain);

}  // namespace emu
