// What the extension of hgemm.torch hands to libhgemm for tensors of any shape and strides: its product.cpp
// and handles.cpp between a torch and a library that are stand-ins. test_operands.py loads it by ctypes.
#include <cstdint>

#include "extension.h"
#include "product.hpp"
#include "torch_api.hpp"

namespace hgemm_torch {

// A tensor in CPU memory, as test_operands.py declares it too.
struct AtenTensorOpaque {
    std::int64_t dimensions;
    std::int64_t sizes[3], strides[3];
    std::int32_t dtype;  // hgemm_type_t
};

Api api;

}  // namespace hgemm_torch

namespace {

using hgemm_torch::AtenTensorOpaque;
using hgemm_torch::Failed;
using hgemm_torch::Tensor;

hgemm_args_t received;
bool was_called;
char element[4];

hgemm_torch::Api stand_ins()
{
    hgemm_torch::Api api{};
    api.get_dim = [](Tensor x, std::int64_t* result) -> Failed { return *result = x->dimensions, 0; };
    api.get_sizes = [](Tensor x, std::int64_t** result) -> Failed { return *result = x->sizes, 0; };
    api.get_strides = [](Tensor x, std::int64_t** result) -> Failed { return *result = x->strides, 0; };
    api.get_dtype = [](Tensor x, std::int32_t* result) -> Failed { return *result = x->dtype, 0; };
    api.get_device_type = [](Tensor, std::int32_t* result) -> Failed { return *result = 0, 0; };
    api.get_device_index = [](Tensor, std::int32_t* result) -> Failed { return *result = 0, 0; };
    api.get_data_ptr = [](Tensor, void** result) -> Failed { return *result = element, 0; };
    api.empty_strided = [](std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t,
                           std::int32_t, std::int32_t,
                           Tensor* result) -> Failed { return *result = new AtenTensorOpaque{}, 0; };
    api.delete_tensor = [](Tensor x) -> Failed { return delete x, 0; };
    api.cpu = 0;
    api.f16 = HGEMM_F16;
    api.bf16 = HGEMM_BF16;
    api.f32 = HGEMM_F32;
    api.args_init = hgemm_args_init;
    api.gemm = [](hgemm_handle_t, const hgemm_args_t* args) {
        received = *args;
        was_called = true;
        return HGEMM_STATUS_SUCCESS;
    };
    return api;
}

}  // namespace

// The arguments of a product, beta * added included where that is not null; false where Python code has to
// look at it.
extern "C" HGEMM_API int operands_of(Tensor a, Tensor b, Tensor added, double beta, hgemm_args_t* args)
{
    if (hgemm_torch::api.gemm == nullptr) {
        hgemm_torch::api = stand_ins();
        hgemm_torch_give_back(hgemm_torch_share(HGEMM_DEVICE_HOST, nullptr, 0, nullptr));
    }
    was_called = false;
    const auto form = a->dimensions == 3 ? hgemm_torch::BATCHED : hgemm_torch::Form{};
    Tensor result = hgemm_torch::product(a, b, added, {.form = form, .beta = beta});
    if (result != nullptr)
        hgemm_torch::api.delete_tensor(result);
    *args = received;
    return was_called;
}
