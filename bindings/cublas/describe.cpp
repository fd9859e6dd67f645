#include "describe.hpp"

#include <cinttypes>
#include <cstdio>

namespace hg::shim {
namespace {

const char* name_of(hgemm_type_t type)
{
    return type == HGEMM_F16 ? "f16" : type == HGEMM_BF16 ? "bf16" : "f32";
}

std::string data_type(int type)
{
    switch (type) {
    case r_32f: return "f32";
    case r_16f: return "f16";
    case r_16bf: return "bf16";
    default: return "type " + std::to_string(type);
    }
}

char letter(int op) { return op == op_n ? 'n' : 't'; }
char letter(hgemm_op_t op) { return op == HGEMM_NO_TRANS ? 'n' : 't'; }

std::string shape(char a, char b, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    char text[128];
    std::snprintf(text, sizeof text, "%c%c %" PRId64 "x%" PRId64 "x%" PRId64, a, b, m, n, k);
    std::string result = text;
    if (batch != 1)
        result += " x" + std::to_string(batch);
    return result;
}

}  // namespace

std::string describe(const GemmCall& g)
{
    return shape(letter(g.transa), letter(g.transb), g.m, g.n, g.k, g.batch) + " " + data_type(g.type_a) +
           " " + data_type(g.type_b) + " " + data_type(g.type_c) + " compute " + std::to_string(g.compute);
}

std::string describe(const GroupedCall& g)
{
    return std::to_string(g.groups) + " groups " + data_type(g.type_a) + " " + data_type(g.type_b) + " " +
           data_type(g.type_c) + " compute " + std::to_string(g.compute);
}

std::string describe(const LtCall& call)
{
    const auto m = static_cast<int64_t>(call.d.rows), n = static_cast<int64_t>(call.d.columns);
    const auto k = static_cast<int64_t>(call.transa == op_n ? call.a.columns : call.a.rows);
    return shape(letter(call.transa), letter(call.transb), m, n, k, call.d.batch) + " " +
           data_type(call.a.type) + " " + data_type(call.b.type) + " " + data_type(call.d.type) +
           " compute " + std::to_string(call.compute) + " epilogue " + std::to_string(call.epilogue);
}

std::string describe(const hgemm_args_t& args)
{
    std::string text =
        shape(letter(args.transa), letter(args.transb), args.m, args.n, args.k, args.batch_count) + " " +
        name_of(args.type_ab) + " to " + name_of(args.type_d);
    if (args.bias_mode != HGEMM_BIAS_NONE)
        text += " bias";
    if (args.activation != HGEMM_ACTIVATION_NONE)
        text += args.activation == HGEMM_ACTIVATION_RELU ? " relu" : " gelu";
    return text;
}

}  // namespace hg::shim
