// The C API of products in blocks of rows: one after the other, and flags between them.
#include "src/api/general_form.hpp"
#include "src/check/exchange.hpp"
#include "src/plan/exchange.hpp"
#include "src/plan/problem.hpp"
#include "src/run/exchange.hpp"
#include "src/run/handle.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace hg {
namespace {

template <typename Element>
Element* at_byte(Element* ptr, int64_t bytes)
{
    using Byte = std::conditional_t<std::is_const_v<Element>, const char, char>;
    return ptr ? static_cast<Byte*>(ptr) + bytes : ptr;
}

// The product of block i.
hgemm_args_t args_of_block(const hgemm_args_t& args, const hgemm_blocks_t& blocks, int64_t i)
{
    const int64_t row = i * blocks.rows;
    const bool by_rows = args.layout == HGEMM_ROW_MAJOR;
    const auto bytes = [](hgemm_type_t type) { return bytes_of(static_cast<Type>(type)); };
    const auto offset = [&](int64_t ld) { return by_rows ? row * ld : row; };
    hgemm_args_t g = args;
    g.m = std::min(blocks.rows, args.m - row);
    g.a = at_byte(args.a, (by_rows == (args.transa == HGEMM_NO_TRANS) ? row * args.lda : row) * 2);
    g.c = at_byte(args.c, offset(args.ldc) * bytes(args.type_c));
    g.d = blocks.d ? blocks.d[i] : at_byte(args.d, offset(args.ldd) * bytes(args.type_d));
    g.aux = at_byte(args.aux, offset(args.ldaux) * bytes(args.type_d));
    if (args.bias_mode == HGEMM_BIAS_M)
        g.bias = at_byte(args.bias, row * bytes(args.bias_type));
    return g;
}

// Before a block: the flag of the block in front is raised, and the block's own is waited for.
Status pass_flags(Handle& handle, const hgemm_blocks_t& blocks, const int64_t* done, const int64_t* next)
{
    Exchange e;
    if (done && blocks.raise && blocks.raise[*done])
        e.raise = {blocks.raise + *done, 1};
    if (next && blocks.wait && blocks.wait[*next]) {
        e.wait = {blocks.wait + *next, 1};
        e.error_code = Exchange::code_of_block(*next);
    }
    e.limit_us = blocks.limit_us;
    e.error = blocks.error;
    return e.raise.empty() && e.wait.empty() ? ok : run_exchange(handle, e);
}

// A refused call writes nothing, so every block is checked before the first one runs.
Status prepare_blocks(Handle& handle, const hgemm_args_t& args, const hgemm_blocks_t& blocks)
{
    Status status = blocks.wait || blocks.raise ? check_exchanges(handle) : ok;
    for (int64_t i = 0; status == ok && i < count_blocks(blocks, args); ++i) {
        const hgemm_args_t block = args_of_block(args, blocks, i);
        status = prepare_product(handle, &block);
    }
    return status;
}

Status run_blocks(Handle& handle, const hgemm_args_t& args, const hgemm_blocks_t& blocks)
{
    const int64_t count = count_blocks(blocks, args);
    int64_t last = -1;
    Status status = ok;
    for (int64_t step = 0; status == ok && step < count; ++step) {
        const int64_t i = (blocks.first + step) % count;
        status = pass_flags(handle, blocks, step > 0 ? &last : nullptr, &i);
        const hgemm_args_t block = args_of_block(args, blocks, i);
        if (status == ok)
            status = run_product(handle, &block);
        last = i;
    }
    return status == ok ? pass_flags(handle, blocks, &last, nullptr) : status;
}

// Where blocks have a D of their own, that of the whole product is not there.
Status check_whole(const hgemm_args_t& args, const hgemm_blocks_t& blocks, Pointers pointers)
{
    Status status = check_product_of_blocks(args);
    if (status == ok)
        status = check_members(args, blocks.d ? Pointers::Unchecked : pointers);
    return status == ok && args.m > 0 ? check_blocks(blocks, args, pointers) : status;
}

Status check_and_run(Handle& handle, const hgemm_args_t& args, const hgemm_blocks_t& blocks)
{
    Status status = check_whole(args, blocks, pointers_of(handle));
    if (status != ok || args.m == 0)
        return status;
    status = prepare_blocks(handle, args, blocks);
    return status == ok ? run_blocks(handle, args, blocks) : status;
}

}  // namespace
}  // namespace hg

using namespace hg;

extern "C" void hgemm_blocks_init(hgemm_blocks_t* blocks, size_t size) { fill_struct(blocks, size); }

extern "C" hgemm_status_t hgemm_gemm_blocks(hgemm_handle_t handle, const hgemm_args_t* args,
                                            const hgemm_blocks_t* blocks)
{
    return with_handle("hgemm_gemm_blocks", handle, [&](Handle& h) {
        hgemm_args_t g;
        hgemm_blocks_t b;
        Status status = copy_args(args, g);
        if (status == ok)
            status = copy_struct(blocks, "hgemm_blocks", b, {3, "blocks", "blocks->size"});
        return status == ok ? check_and_run(h, g, b) : status;
    });
}
