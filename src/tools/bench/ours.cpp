#include "src/tools/bench/ours.hpp"

#include "src/tools/bench/output.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/support/environment.hpp"

#include <stdexcept>

namespace hg::bench {
namespace {

void require(hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS)
        throw std::runtime_error(hgemm_last_error());
}

// Column-major, transpose(D) = transpose(B) * transpose(A): B comes first.
hgemm_op_t op_first(const Product& p) { return p.b_along_k() ? HGEMM_TRANS : HGEMM_NO_TRANS; }
hgemm_op_t op_second(const Product& p) { return p.a_along_k() ? HGEMM_NO_TRANS : HGEMM_TRANS; }

// The word behind `key` in hgemm_explain()'s "key=value key=value".
std::string value_of(const std::string& text, const std::string& key)
{
    const size_t found = (" " + text).find(" " + key + "=");
    if (found == std::string::npos)
        return "";
    const size_t begin = found + key.size() + 1;
    return text.substr(begin, text.find(' ', begin) - begin);
}

}  // namespace

hgemm_args_t args_of(const Product& p, const Operands& o)
{
    hgemm_args_t args;
    hgemm_args_init(&args, sizeof args);
    args.transa = op_first(p);
    args.transb = op_second(p);
    args.type_ab = args.bias_type = p.type;
    args.type_c = args.type_d = p.type_d();
    args.m = p.n;
    args.n = p.m;
    args.k = p.k;
    args.a = o.b;
    args.b = o.a;
    args.c = args.d = o.d;
    args.lda = p.ldb();
    args.ldb = p.lda();
    args.ldc = args.ldaux = p.n + p.pad;
    args.ldd = p.ldd();
    args.batch_count = p.batch;
    args.stride_a = p.b_stride();
    args.stride_b = p.a_stride();
    args.stride_c = args.stride_d = args.stride_aux = p.d_stride();
    args.beta = p.output.beta();
    args.bias_mode = p.output.has(Output::Bias) ? HGEMM_BIAS_M : HGEMM_BIAS_NONE;
    args.bias = args.bias_mode == HGEMM_BIAS_NONE ? nullptr : o.bias;
    args.activation = p.output.activation();
    args.aux = o.aux;
    args.gate.block = p.output.has(Output::Gated) ? p.n / 2 : 0;
    args.uplo = p.output.has(Output::Symmetric) ? HGEMM_BOTH : HGEMM_UPLO_NONE;
    return args;
}

Ours::Ours(const std::string& backend, const std::string& kernel)
{
    const test::Variable backend_variable("HGEMM_BACKEND", backend),
        kernel_variable("HGEMM_KERNEL", kernel);
    require(hgemm_create(&handle_));
}

Ours::~Ours() { hgemm_destroy(handle_); }
void Ours::set_stream(hgemm_stream_t stream) { require(hgemm_set_stream(handle_, stream)); }

void Ours::set_mode(hgemm_mode_t mode) { require(hgemm_set_mode(handle_, mode)); }

void Ours::multiply(const Product& p, const Operands& o)
{
    if (!p.output.plain()) {
        const hgemm_args_t args = args_of(p, o);
        require(hgemm_gemm_ex(handle_, &args));
        return;
    }
    if (p.batch > 1) {
        const auto call = p.type == HGEMM_F16 ? hgemm_strided_batched : bgemm_strided_batched;
        require(call(handle_, HGEMM_COL_MAJOR, op_first(p), op_second(p), p.n, p.m, p.k, 1.0f, o.b, p.ldb(),
                     p.b_stride(), o.a, p.lda(), p.a_stride(), 0.0f, static_cast<uint16_t*>(o.d), p.ldd(),
                     p.d_stride(), p.batch));
        return;
    }
    const auto call = p.type == HGEMM_F16 ? hgemm : bgemm;
    require(call(handle_, HGEMM_COL_MAJOR, op_first(p), op_second(p), p.n, p.m, p.k, 1.0f, o.b, p.ldb(),
                 o.a, p.lda(), 0.0f, static_cast<uint16_t*>(o.d), p.ldd()));
}

bool Ours::serves(const Product& p, const Operands& o) const
{
    const hgemm_args_t args = args_of(p, o);
    char text[512] = "";
    return hgemm_explain(handle_, &args, text, sizeof text) == HGEMM_STATUS_SUCCESS;
}

std::string tuning_file(const std::string& backend, const std::string& kernel)
{
    // The log alone tells, of a handle of its own: the other ones log as the user asked for.
    std::string path;
    const auto read = [](void* data, const char* line) {
        const std::string text = line, before = "tuning file '";
        const size_t begin = text.find(before), end = text.rfind("' has choices for ");
        if (begin != text.npos && end != text.npos)
            *static_cast<std::string*>(data) =
                text.substr(begin + before.size(), end - begin - before.size());
    };
    require(hgemm_set_logger(HGEMM_LOG_PLAN, read, &path));
    {
        const Ours handle(backend, kernel);
    }
    require(hgemm_set_logger(HGEMM_LOG_OFF, nullptr, nullptr));
    return path;
}

Ours::Choice Ours::explain(const Product& p, const Operands& o) const
{
    const hgemm_args_t args = args_of(p, o);
    char text[512] = "";
    require(hgemm_explain(handle_, &args, text, sizeof text));
    const std::string split = value_of(text, "split"), us = value_of(text, "predicted_us");
    return {value_of(text, "backend"), value_of(text, "kernel"), split.empty() ? 1 : std::stoi(split),
            us.empty() ? unknown : std::stod(us)};
}

}  // namespace hg::bench
