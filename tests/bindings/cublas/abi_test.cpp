// abi.hpp against NVIDIA's headers, the shim's symbols, and the real libraries as far as they work without
// a GPU: their symbols and their descriptors.
#include "lt_call.hpp"

#include <gtest/gtest.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <cstdio>
#include <set>
#include <string>

namespace {

using namespace hg::shim;

static_assert(status_success == CUBLAS_STATUS_SUCCESS);
static_assert(status_not_initialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(r_32f == CUDA_R_32F && r_16f == CUDA_R_16F && r_16bf == CUDA_R_16BF);
static_assert(op_n == CUBLAS_OP_N && op_t == CUBLAS_OP_T && op_c == CUBLAS_OP_C);
static_assert(compute_16f == CUBLAS_COMPUTE_16F && compute_32f == CUBLAS_COMPUTE_32F);
static_assert(compute_32f_fast_16f == CUBLAS_COMPUTE_32F_FAST_16F);
static_assert(compute_32f_fast_16bf == CUBLAS_COMPUTE_32F_FAST_16BF);
static_assert(compute_32f_fast_tf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(pointers_host == CUBLAS_POINTER_MODE_HOST && pointers_device == CUBLAS_POINTER_MODE_DEVICE);
static_assert(pointers_host == CUBLASLT_POINTER_MODE_HOST &&
              pointers_device == CUBLASLT_POINTER_MODE_DEVICE);
static_assert(math_pedantic == CUBLAS_PEDANTIC_MATH);
static_assert(algo_default == CUBLAS_GEMM_DEFAULT && algo_last == CUBLAS_GEMM_ALGO23);
static_assert(algo_tensor_default == CUBLAS_GEMM_DEFAULT_TENSOR_OP);
static_assert(algo_tensor_last == CUBLAS_GEMM_ALGO15_TENSOR_OP);
static_assert(property_major == MAJOR_VERSION);
static_assert(int{desc_compute_type} == CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
static_assert(int{desc_scale_type} == CUBLASLT_MATMUL_DESC_SCALE_TYPE);
static_assert(int{desc_pointer_mode} == CUBLASLT_MATMUL_DESC_POINTER_MODE);
static_assert(int{desc_transa} == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(int{desc_transb} == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(int{desc_transc} == CUBLASLT_MATMUL_DESC_TRANSC);
static_assert(int{desc_fill_mode} == CUBLASLT_MATMUL_DESC_FILL_MODE);
static_assert(int{desc_epilogue} == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(int{desc_bias_pointer} == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(int{desc_bias_batch_stride} == CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
static_assert(int{desc_sm_count_target} == CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
static_assert(int{desc_a_scale_pointer} == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
static_assert(int{desc_b_scale_pointer} == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
static_assert(int{desc_c_scale_pointer} == CUBLASLT_MATMUL_DESC_C_SCALE_POINTER);
static_assert(int{desc_d_scale_pointer} == CUBLASLT_MATMUL_DESC_D_SCALE_POINTER);
static_assert(int{desc_amax_d_pointer} == CUBLASLT_MATMUL_DESC_AMAX_D_POINTER);
static_assert(int{desc_bias_data_type} == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
#if CUBLAS_VERSION >= 120800
static_assert(int{desc_d_out_scale_pointer} == CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER);
static_assert(int{layout_batch_mode} == CUBLASLT_MATRIX_LAYOUT_BATCH_MODE);
static_assert(batch_strided == CUBLASLT_BATCH_MODE_STRIDED);
static_assert(batch_pointer_array == CUBLASLT_BATCH_MODE_POINTER_ARRAY);
#endif
static_assert(int{layout_type} == CUBLASLT_MATRIX_LAYOUT_TYPE);
static_assert(int{layout_order} == CUBLASLT_MATRIX_LAYOUT_ORDER);
static_assert(int{layout_rows} == CUBLASLT_MATRIX_LAYOUT_ROWS);
static_assert(int{layout_cols} == CUBLASLT_MATRIX_LAYOUT_COLS);
static_assert(int{layout_ld} == CUBLASLT_MATRIX_LAYOUT_LD);
static_assert(int{layout_batch_count} == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(int{layout_batch_stride} == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(fill_full == CUBLAS_FILL_MODE_FULL);
static_assert(order_col == CUBLASLT_ORDER_COL && order_row == CUBLASLT_ORDER_ROW);
static_assert(epilogue_default == CUBLASLT_EPILOGUE_DEFAULT && epilogue_relu == CUBLASLT_EPILOGUE_RELU);
static_assert(epilogue_bias == CUBLASLT_EPILOGUE_BIAS && epilogue_gelu == CUBLASLT_EPILOGUE_GELU);
static_assert(int{epilogue_relu | epilogue_bias} == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert(int{epilogue_gelu | epilogue_bias} == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(LtHeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(preference_reduction_mask == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(reduction_schemes == CUBLASLT_REDUCTION_SCHEME_MASK && CUBLASLT_REDUCTION_SCHEME_NONE == 0);

// Passed alike: two pointers, or two whole numbers (an enumeration is one) of the same size.
template <typename Ours, typename Theirs>
constexpr bool alike =
    std::is_pointer_v<Ours> ? std::is_pointer_v<Theirs>
                            : !std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
template <typename Ours, typename Theirs>
struct Signatures;
template <typename... Ours, typename Status, typename... Theirs>
struct Signatures<int(Ours...), Status(Theirs...)> {
    static constexpr bool agree = sizeof(Status) == sizeof(int) && sizeof...(Ours) == sizeof...(Theirs) &&
                                  (alike<Ours, Theirs> && ...);
};

// In C++ the header overloads three functions; the exported ones are those of their _64 twins with int.
template <typename Twin>
struct Narrow;
template <typename Status, typename... Parameters>
struct Narrow<Status(Parameters...)> {
    using type = Status(std::conditional_t<std::is_same_v<Parameters, int64_t>, int, Parameters>...);
};
#define NARROW(name)                                                                                       \
    using name##_narrow_type = Narrow<decltype(::name##_64)>::type;                                        \
    [[maybe_unused]] constexpr name##_narrow_type* name##_narrow_overload = &::name;                       \
    extern name##_narrow_type name##_narrow;
NARROW(cublasGemmEx)
NARROW(cublasGemmStridedBatchedEx)
NARROW(cublasGemmBatchedEx)
#define cublasGemmEx                    cublasGemmEx_narrow
#define cublasGemmStridedBatchedEx      cublasGemmStridedBatchedEx_narrow
#define cublasGemmBatchedEx             cublasGemmBatchedEx_narrow
#define HGEMM_REAL(library, name, type) static_assert(Signatures<type, decltype(name)>::agree, #name);
#include "functions.def"
#undef HGEMM_REAL
#undef cublasGemmEx
#undef cublasGemmStridedBatchedEx
#undef cublasGemmBatchedEx

std::set<std::string> exported()
{
    std::FILE* pipe = popen("nm -D --defined-only --with-symbol-versions " SHIM, "r");
    std::set<std::string> names;
    char name[256];
    while (std::fscanf(pipe, "%*s %*s %255s", name) == 1)
        names.insert(name);
    EXPECT_EQ(pclose(pipe), 0);
    return names;
}

// A version behind a name would keep the loader from taking it for cuBLAS's.
TEST(ShimAbi, exports_what_it_takes_over_without_versions)
{
    const std::set<std::string> wanted = {
#define HGEMM_REAL(library, name, type) #name,
#include "products.def"
#undef HGEMM_REAL
        "cublasDestroy_v2",
        "cublasSetStream_v2",
        "cublasSetWorkspace_v2",
        "cublasLtDestroy",
        "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmulAlgoInit",
        "cublasLtMatmulAlgoConfigSetAttribute",
        "hgemm_shim_get",
        "hgemm_shim_set",
        "hgemm_shim_set_mode",
        "hgemm_shim_stand_in",
        "hgemm_shim_served",
        "hgemm_shim_passed_on",
        "hgemm_shim_summary"};
    EXPECT_EQ(exported(), wanted);
}

class RealLibrary : public testing::Test {
protected:
    void SetUp() override
    {
        blas_ = dlopen(REAL_CUBLAS, RTLD_NOW);
        ASSERT_TRUE(blas_) << dlerror();
        lt_ = dlopen(REAL_CUBLASLT, RTLD_NOW);
        ASSERT_TRUE(lt_) << dlerror();
        real_.cublasLtMatmulDescGetAttribute = get<LtGetAttribute>("cublasLtMatmulDescGetAttribute");
        real_.cublasLtMatrixLayoutGetAttribute = get<LtGetAttribute>("cublasLtMatrixLayoutGetAttribute");
        real_.cublasLtMatmulPreferenceGetAttribute =
            get<LtGetAttribute>("cublasLtMatmulPreferenceGetAttribute");
    }

    template <typename Function>
    Function* get(const char* name)
    {
        return reinterpret_cast<Function*>(dlsym(lt_, name));
    }

    void *blas_ = nullptr, *lt_ = nullptr;
    Real real_;
};

TEST_F(RealLibrary, has_all_functions)
{
#define HGEMM_REAL(library, name, type)                                                                    \
    EXPECT_TRUE(dlsym(Library::library == Library::Lt ? lt_ : blas_, #name)) << #name;
#include "functions.def"
#undef HGEMM_REAL
    for (auto* property : {reinterpret_cast<GetProperty*>(dlsym(blas_, "cublasGetProperty")),
                           reinterpret_cast<GetProperty*>(dlsym(lt_, "cublasLtGetProperty"))}) {
        Real real;
        real.complete = true;
        property(property_major, &real.major);
        EXPECT_EQ(real.major, CUBLAS_VER_MAJOR);
        EXPECT_TRUE(real.is_known());
    }
}

TEST_F(RealLibrary, descriptors_are_read)
{
    cublasLtMatmulDesc_t desc;
    get<decltype(cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate")(&desc, CUBLAS_COMPUTE_32F,
                                                                        CUDA_R_32F);
    auto* set = get<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
    cublasLtMatrixLayout_t layout, other;
    auto* create = get<decltype(cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate");
    create(&layout, CUDA_R_16F, 64, 32, 72);
    create(&other, CUDA_R_16BF, 5, 6, 7);
    auto* set_layout = get<decltype(cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute");

    LtCall call;
    const LtLayouts layouts{layout, layout, layout, other};
    read_descriptors(real_, desc, layouts, call);
    EXPECT_EQ(call.compute, compute_32f);
    EXPECT_EQ(call.scale_type, r_32f);
    EXPECT_EQ(call.pointer_mode, pointers_host);
    EXPECT_EQ(call.transa, op_n);
    EXPECT_EQ(call.transb, op_n);
    EXPECT_EQ(call.transc, op_n);
    EXPECT_EQ(call.fill, fill_full);
    EXPECT_EQ(call.epilogue, epilogue_default);
    EXPECT_EQ(call.bias_type, -1);
    EXPECT_FALSE(call.scaled);
    EXPECT_EQ(call.a.type, r_16f);
    EXPECT_EQ(call.a.order, order_col);
    EXPECT_EQ(call.a.rows, 64u);
    EXPECT_EQ(call.a.columns, 32u);
    EXPECT_EQ(call.a.ld, 72);
    EXPECT_EQ(call.a.batch, 1);
    EXPECT_EQ(call.a.batch_mode, batch_strided);
    EXPECT_EQ(call.d.type, r_16bf);

    const int transposed = op_t, batch = 3;
    const uint32_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    const void* pointer = &call;
    const int64_t stride = 4711;
    set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer, sizeof pointer);
    set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &pointer, sizeof pointer);
    set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
    read_descriptors(real_, desc, layouts, call);
    EXPECT_EQ(call.transa, op_t);
    EXPECT_EQ(call.epilogue, epilogue_relu | epilogue_bias);
    EXPECT_EQ(call.bias, pointer);
    EXPECT_TRUE(call.scaled);
    EXPECT_EQ(call.b.batch, 3);
    EXPECT_EQ(call.b.stride, stride);
}

TEST_F(RealLibrary, preferences_are_read)
{
    cublasLtMatmulPreference_t preference;
    get<decltype(cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate")(&preference);
    auto* set =
        get<decltype(cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
    EXPECT_FALSE(forbids_split(real_, preference));
    const uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE, in_place = CUBLASLT_REDUCTION_SCHEME_INPLACE;
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &none, sizeof none);
    EXPECT_TRUE(forbids_split(real_, preference));
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_place, sizeof in_place);
    EXPECT_FALSE(forbids_split(real_, preference));
}

}  // namespace
