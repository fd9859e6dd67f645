// Tensor memory and what the tcgen05 instructions keep between them.
#pragma once

#include "core/state.hpp"
#include "ops/async.hpp"
#include "ops/matrix_element.hpp"

#include <map>
#include <string>
#include <vector>

namespace emu {

constexpr uint32_t tmem_lanes = 128, tmem_columns = 512, tmem_unit = 32;

// An asynchronous tcgen05 operation that others wait for or follow.
struct TensorOperation {
    bool done = false;
    SyncClock clock;
};
using TensorOperations = std::vector<std::shared_ptr<TensorOperation>>;

// alloc and dealloc of a CTA pair: performed when a warp of each CTA has come.
struct PairCall {
    uint32_t arrived = 0;  // by rank in the pair
    uint32_t columns[2] = {}, address[2] = {};
    bool allocate = false;
    uint64_t generation = 0;
    SyncClock clock;  // what both warps know to have ended
};

struct TensorMemory {
    std::vector<uint32_t> cells = std::vector<uint32_t>(tmem_lanes * tmem_columns, 0x7fffffff);
    std::map<uint32_t, uint32_t> allocations;  // first column -> columns
    uint32_t last_columns = tmem_columns;      // of the allocation before
    bool relinquished = false;
    int group = 0;  // .cta_group in use; 0: none yet
    PairCall pair;  // of the even CTA, for both
    // Products with the same accumulator and shape, and those after copies, act in order.
    std::map<uint64_t, std::shared_ptr<TensorOperation>> pipelines;
    TensorOperations copies;  // not done yet
    SyncClock copied;         // of all copies issued

    uint32_t& cell(uint32_t lane, uint32_t column) { return cells[lane * tmem_columns + column]; }
    bool allocated(uint32_t column, uint32_t columns) const;
    int find_free(uint32_t columns) const;  // first column, or -1
    std::string describe() const;           // what is allocated
};
TensorMemory& tensor_memory(Cta& cta);

// What a warp has started, and what it has to wait for.
struct TensorWarp {
    struct Thread {
        TensorOperations operations;              // products and copies
        SyncClock issued;                         // of all of them
        std::shared_ptr<TensorOperation> commit;  // the last: they arrive in order
    };
    std::map<int, Thread> threads;  // by lane
    SyncClock loads;                // not waited for
    TensorOperations stores;        // not waited for
    bool calling = false;           // in alloc or dealloc of a pair
    uint64_t call = 0;
};
TensorWarp& tensor_warp(Warp& warp);

// The value of an argument that all lanes must agree on.
uint32_t uniform_value(Exec& x, const Arg& arg, const char* what);

// The CTAs that an instruction acts on: its own, or both of the pair, the even one first. Faults where
// there is no pair, complains where the peer has ended or kinds of groups are mixed.
std::vector<Cta*> group_ctas(Exec& x, int group);
void require_allocated(Exec& x, Cta& cta, uint32_t column, uint32_t columns, const char* what);

void check_still_allocated(Exec& x, Cta& cta, uint32_t column, uint32_t columns);

// A tcgen05 operation is under way: the thread's commits will wait for it.
void track(Exec& x, int lane, const std::shared_ptr<TensorOperation>& operation, int agent);

// Parts of add_tcgen05, by file.
void decode_tensor_allocation(const ptx::Instruction&, Program&,
                              Op&);  // alloc, dealloc, relinquish_alloc_permit
void decode_tensor_fence(const ptx::Instruction&, Program&, Op&);    // fence::, wait::
void decode_tensor_access(const ptx::Instruction&, Program&, Op&);   // ld, st
void decode_tensor_product(const ptx::Instruction&, Program&, Op&);  // mma
void decode_tensor_copy(const ptx::Instruction&, Program&, Op&);     // cp
void decode_tensor_commit(const ptx::Instruction&, Program&, Op&);
int cta_group_of(const ptx::Instruction&, const Program&);

void add_cluster_launch(DecoderTable&);  // clusterlaunchcontrol

// ---- Layout of products -----------------------------------------------------------------------------
enum class TensorKind { F16, Tf32, F8f6f4, I8, Mxf8f6f4, Mxf4, Mxf4nvf4 };
inline bool is_scaled(TensorKind kind) { return kind >= TensorKind::Mxf8f6f4; }

// What the decoder of tcgen05.mma remembers in Op::imm, and the places of values in Op::args; Op::wide is
// the number of scales of a row.
enum { imm_group, imm_weights, imm_a_in_tmem, imm_scale, imm_masks, imm_kind };
enum { arg_b, arg_descriptor, arg_enable, arg_a };  // then the masks, or base and offset of the scales
void run_tensor_product(Exec& x);

struct TensorProduct {
    TensorKind kind = TensorKind::F16;
    int group = 1;
    bool weights = false;  // .ws
    int m = 0, n = 0, k = 0;
    MatrixElement a, b;  // in shared memory
    bool half_result = false, saturate = false;
    bool negate_a = false, negate_b = false;
    bool m_major = false, n_major = false;
    // Scales of a row, their type, and the byte of the first in a word of tensor memory.
    int scale_vector = 0;
    bool ue4m3 = false;
    int a_scale_byte = 0, b_scale_byte = 0;
};

// From an instruction descriptor; kind, group, weights and scale_vector are those of the instruction.
// `error` says what is wrong with it.
void read_instruction_descriptor(uint32_t descriptor, TensorProduct& product, std::string& error);
// A's elements as they stand in tensor memory: fp4 and fp6 in bytes.
MatrixElement in_tensor_memory(const TensorProduct& product);

// Lanes of one CTA whose results are columns [first, first + count) of the product, in the columns of the
// accumulator from its start on.
struct Strip {
    int cta = 0;
    int first = 0, count = 0;
    std::vector<std::pair<int, int>> lanes;  // lane, row within the CTA's part of the matrix
};
// Where the results go; `half` shifts layouts that use 16 of each 32 lanes.
std::vector<Strip> result_layout(const TensorProduct& product, bool half);

}  // namespace emu
