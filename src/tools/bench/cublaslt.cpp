#include "src/tools/bench/cublaslt.hpp"

#include "src/tools/bench/cublaslt_functions.hpp"
#include "src/tools/bench/dynamic_library.hpp"
#include "src/tools/bench/output.hpp"

#include <algorithm>
#include <utility>

namespace hg::bench {

using namespace cublaslt;

namespace {

const std::vector<const char*> cublaslt_names = {"libcublasLt.so.13", "libcublasLt.so.12",
                                                 "/usr/local/cuda/lib64/libcublasLt.so", "libcublasLt.so"};

}  // namespace

uint32_t cublaslt::alignment_of(const std::vector<Operands>& sets, const void* (*pointer)(const Operands&))
{
    uintptr_t bits = 256;
    for (const Operands& operands : sets)
        bits |= reinterpret_cast<uintptr_t>(pointer(operands));
    return static_cast<uint32_t>(bits & -bits);
}

std::unique_ptr<CublasLt> CublasLt::load(const std::string& path, test::Memory& memory, CUstream_st* stream,
                                         std::string* why)
{
    void* library = open_library(path, cublaslt_names, why);
    if (!library)
        return nullptr;
    std::unique_ptr<CublasLt> lt(new CublasLt);
    lt->functions_ = std::make_unique<Functions>();
    Functions& f = *lt->functions_;
    resolve(library, "cublasLtCreate", f.create);
    resolve(library, "cublasLtDestroy", f.destroy);
    resolve(library, "cublasLtGetVersion", f.version);
    resolve(library, "cublasLtMatmulDescCreate", f.create_operation);
    resolve(library, "cublasLtMatmulDescDestroy", f.destroy_operation);
    resolve(library, "cublasLtMatmulDescSetAttribute", f.set_operation);
    resolve(library, "cublasLtMatrixLayoutCreate", f.create_layout);
    resolve(library, "cublasLtMatrixLayoutDestroy", f.destroy_layout);
    resolve(library, "cublasLtMatrixLayoutSetAttribute", f.set_layout);
    resolve(library, "cublasLtMatmulPreferenceCreate", f.create_preference);
    resolve(library, "cublasLtMatmulPreferenceDestroy", f.destroy_preference);
    resolve(library, "cublasLtMatmulPreferenceSetAttribute", f.set_preference);
    resolve(library, "cublasLtMatmulAlgoGetHeuristic", f.heuristic);
    resolve(library, "cublasLtMatmulAlgoGetIds", f.get_ids);
    resolve(library, "cublasLtMatmulAlgoInit", f.init);
    resolve(library, "cublasLtMatmulAlgoCapGetAttribute", f.get_capability);
    resolve(library, "cublasLtMatmulAlgoConfigSetAttribute", f.configure);
    resolve(library, "cublasLtMatmulAlgoCheck", f.check);
    resolve(library, "cublasLtMatmul", f.matmul);
    require_success(f.create(&lt->handle_), "cublasLtCreate");
    lt->version_ = std::to_string(f.version());
    lt->stream_ = stream;
    lt->workspace_ = test::Block(memory, workspace_bytes);
    return lt;
}

CublasLt::~CublasLt()
{
    if (handle_)
        functions_->destroy(handle_);
}

std::unique_ptr<CublasLt::Algorithms>
CublasLt::algorithms(const Product& product, const std::vector<Operands>& sets, int wanted) const
{
    std::unique_ptr<Algorithms> algorithms(new Algorithms(*this));
    algorithms->describe(product);
    algorithms->ask(sets, wanted);
    return algorithms;
}

CublasLt::Algorithms::Algorithms(const CublasLt& lt) : lt_(lt), results_(std::make_unique<Results>()) {}

CublasLt::Algorithms::~Algorithms()
{
    const Functions& f = *lt_.functions_;
    for (void* layout : {first_, second_, result_})
        if (layout)
            f.destroy_layout(layout);
    if (operation_)
        f.destroy_operation(operation_);
}

bool CublasLt::serves(const Product& p)
{
    const bool aux = p.output.has(Output::Gelu) && p.ldd() % 8 == 0;
    return p.batch <= INT32_MAX && !p.output.has(Output::Silu | Output::Gated) &&
           (aux || !p.output.has(Output::Aux));
}

// Column-major, transpose(D) = transpose(B) * transpose(A): B comes first.
void CublasLt::Algorithms::describe(const Product& p)
{
    const Functions& f = *lt_.functions_;
    const int type = type_of(p);
    const int op_first = p.b_along_k() ? op_t : op_n, op_second = p.a_along_k() ? op_n : op_t;
    const auto m = static_cast<uint64_t>(p.m), n = static_cast<uint64_t>(p.n),
               k = static_cast<uint64_t>(p.k);
    require_success(f.create_operation(&operation_, compute_32f, r_32f), "cublasLtMatmulDescCreate");
    require_success(f.set_operation(operation_, desc_transa, &op_first, sizeof op_first),
                    "cublasLtMatmulDescSetAttribute");
    require_success(f.set_operation(operation_, desc_transb, &op_second, sizeof op_second),
                    "cublasLtMatmulDescSetAttribute");
    const char* what = "cublasLtMatrixLayoutCreate";
    require_success(f.create_layout(&first_, type, p.b_along_k() ? k : n, p.b_along_k() ? n : k, p.ldb()),
                    what);
    require_success(f.create_layout(&second_, type, p.a_along_k() ? k : m, p.a_along_k() ? m : k, p.lda()),
                    what);
    require_success(f.create_layout(&result_, type_d_of(p), n, m, p.ldd()), what);
    describe_batch(p);
    beta_ = p.output.beta();
    if (p.output.has(Output::Bias | Output::Relu | Output::Gelu))
        describe_epilogue(p);
}

void CublasLt::Algorithms::describe_batch(const Product& p)
{
    const auto set = [&](void* layout, int attribute, const auto& value) {
        require_success(lt_.functions_->set_layout(layout, attribute, &value, sizeof value),
                        "cublasLtMatrixLayoutSetAttribute");
    };
    const std::pair<void*, int64_t> strides[] = {
        {first_, p.b_stride()}, {second_, p.a_stride()}, {result_, p.d_stride()}};
    for (const auto& [layout, stride] : strides) {
        set(layout, layout_batch_count, static_cast<int32_t>(p.batch));
        set(layout, layout_batch_stride, stride);
    }
}

void CublasLt::Algorithms::describe_epilogue(const Product& p)
{
    const auto set = [&](int attribute, const auto& value) {
        require_success(lt_.functions_->set_operation(operation_, attribute, &value, sizeof value),
                        "cublasLtMatmulDescSetAttribute");
    };
    const Output& o = p.output;
    const uint32_t epilogue =
        (o.has(Output::Relu) ? epilogue_relu : 0) | (o.has(Output::Gelu) ? epilogue_gelu : 0) |
        (o.has(Output::Bias) ? epilogue_bias : 0) | (o.has(Output::Aux) ? epilogue_aux : 0);
    set(desc_epilogue, epilogue);
    if (o.has(Output::Bias))
        set(desc_bias_type, int32_t{type_of(p)});
    if (o.has(Output::Aux)) {
        set(desc_ldaux, p.ldd());
        set(desc_stride_aux, p.d_stride());
    }
}

// The operation holds the pointers of bias and aux; the heuristic looks at how they are aligned.
int CublasLt::Algorithms::point_to(const Operands& o) const
{
    const auto set = lt_.functions_->set_operation;
    int status = o.bias ? set(operation_, desc_bias, &o.bias, sizeof o.bias) : 0;
    if (status == 0 && o.aux)
        status = set(operation_, desc_aux, &o.aux, sizeof o.aux);
    return status;
}

void CublasLt::Algorithms::ask(const std::vector<Operands>& sets, int wanted)
{
    const Functions& f = *lt_.functions_;
    const uint32_t first = alignment_of(sets, [](const Operands& o) -> const void* { return o.b; });
    const uint32_t second = alignment_of(sets, [](const Operands& o) -> const void* { return o.a; });
    const uint32_t result = alignment_of(sets, [](const Operands& o) -> const void* { return o.d; });
    require_success(point_to(sets[0]), "cublasLtMatmulDescSetAttribute");  // all are aligned alike
    void* preference = nullptr;
    require_success(f.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
    const uint64_t bytes = workspace_bytes;
    int status = f.set_preference(preference, pref_workspace, &bytes, sizeof bytes);
    int attribute = pref_first_alignment;
    for (const uint32_t alignment : {first, second, result, result}) {
        if (status == 0)
            status = f.set_preference(preference, attribute++, &alignment, sizeof alignment);
    }
    std::vector<HeuristicResult> found(static_cast<size_t>(wanted));
    int count = 0;
    if (status == 0)  // an error of the heuristic itself means that it knows none
        if (f.heuristic(lt_.handle_, operation_, first_, second_, result_, result_, preference, wanted,
                        found.data(), &count) != 0)
            count = 0;
    f.destroy_preference(preference);
    require_success(status, "cublasLtMatmulPreferenceSetAttribute");
    for (int i = 0; i < count; ++i)
        if (found[i].state == 0 && found[i].workspace <= workspace_bytes)
            results_->list.push_back(found[i]);
}

size_t CublasLt::Algorithms::count() const { return results_->list.size(); }

bool CublasLt::Algorithms::multiply(size_t which, const Operands& o) const
{
    const float alpha = 1;
    if (point_to(o) != 0)
        return false;
    return lt_.functions_->matmul(lt_.handle_, operation_, &alpha, o.b, first_, o.a, second_, &beta_, o.d,
                                  result_, o.d, result_, &results_->list[which].algorithm,
                                  lt_.workspace_.get(), workspace_bytes, lt_.stream_) == 0;
}

}  // namespace hg::bench
