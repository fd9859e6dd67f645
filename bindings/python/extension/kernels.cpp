// Kernels of torch.ops.hgemm, and what they call.
#include "extension.h"

#include <dlfcn.h>

#include <bit>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "product.hpp"
#include "torch_api.hpp"

namespace hgemm_torch {

Api api;

namespace {

Tensor tensor(Value value) { return std::bit_cast<Tensor>(value); }
std::int64_t integer(Value value) { return static_cast<std::int64_t>(value); }
double number(Value value) { return std::bit_cast<double>(value); }

// An undefined tensor, which is None in Python, says that there is none.
void answer(Value* stack, Tensor result, std::initializer_list<Tensor> arguments)
{
    for (Tensor each : arguments)
        api.delete_tensor(each);
    if (result == nullptr)
        api.new_undefined(&result);
    stack[0] = std::bit_cast<Value>(result);
}

// Tensor a, Tensor b, int form
void serve(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]);
    answer(stack, product(a, b, nullptr, {.form = integer(stack[2])}), {a, b});
}

// Tensor a, Tensor b, Tensor added, int form, float alpha, float beta
void serve_add(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]), added = tensor(stack[2]);
    const Options options{.form = integer(stack[3]), .alpha = number(stack[4]), .beta = number(stack[5])};
    answer(stack, product(a, b, added, options), {a, b, added});
}

// Tensor a, Tensor b, int form, int block, float limit, float slope, float offset
void serve_gated(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]);
    const auto real = [&](int index) { return static_cast<float>(number(stack[index])); };
    const hgemm_gate_t gate{integer(stack[3]), real(4), real(5), real(6), 0};
    answer(stack, product(a, b, nullptr, {.form = integer(stack[2]), .gate = gate}), {a, b});
}

template <typename Function>
bool look_up(void* library, const char* name, Function*& function)
{
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

// The name of what is missing, or null.
const char* look_up_all(void* torch, void* hgemm, Api& api)
{
    const char* missing = nullptr;
    const auto find = [&](void* library, const char* name, auto& function) {
        if (!look_up(library, name, function) && missing == nullptr)
            missing = name;
    };
    find(torch, "aoti_torch_get_dim", api.get_dim);
    find(torch, "aoti_torch_get_sizes", api.get_sizes);
    find(torch, "aoti_torch_get_strides", api.get_strides);
    find(torch, "aoti_torch_get_dtype", api.get_dtype);
    find(torch, "aoti_torch_get_device_type", api.get_device_type);
    find(torch, "aoti_torch_get_device_index", api.get_device_index);
    find(torch, "aoti_torch_get_data_ptr", api.get_data_ptr);
    find(torch, "aoti_torch_empty_strided", api.empty_strided);
    find(torch, "aoti_torch_new_uninitialized_tensor", api.new_undefined);
    find(torch, "aoti_torch_delete_tensor_object", api.delete_tensor);
    find(torch, "aoti_torch_library_init_impl", api.init_library);
    find(torch, "aoti_torch_library_impl", api.implement);
    const auto read = [&](const char* name, std::int32_t& number) {
        std::int32_t (*function)() = nullptr;
        find(torch, name, function);
        number = function != nullptr ? function() : -1;
    };
    read("aoti_torch_device_type_cpu", api.cpu);
    read("aoti_torch_dtype_float16", api.f16);
    read("aoti_torch_dtype_bfloat16", api.bf16);
    read("aoti_torch_dtype_float32", api.f32);
    find(hgemm, "hgemm_args_init", api.args_init);
    find(hgemm, "hgemm_gemm_ex", api.gemm);
    return missing;
}

bool has_cuda(void* torch, Api& api)
{
    return look_up(torch, "aoti_torch_get_current_cuda_stream", api.current_stream);
}

// What torch keeps for as long as the process: it has no moment to take kernels back.
bool implement(const char* key)
{
    Library library = nullptr;
    return !(api.init_library("hgemm", key, "libhgemm_torch", 0, &library) ||
             api.implement(library, "_serve", serve) || api.implement(library, "_serve_add", serve_add) ||
             api.implement(library, "_serve_gated", serve_gated));
}

constexpr std::pair<std::string_view, Form> FORMS[] = {{"BATCH_INVARIANT", BATCH_INVARIANT},
                                                       {"WIDE", WIDE},
                                                       {"BATCHED", BATCHED},
                                                       {"LINEAR", LINEAR},
                                                       {"SYMMETRIC", SYMMETRIC},
                                                       {"ACTIVATION_SHIFT", ACTIVATION_SHIFT}};

}  // namespace
}  // namespace hgemm_torch

std::int64_t hgemm_torch_form(const char* name)
{
    for (const auto& [form, number] : hgemm_torch::FORMS)
        if (form == name)
            return number;
    return -1;
}

const char* hgemm_torch_load(void* torch, void* hgemm)
{
    hgemm_torch::Api found{};
    if (const char* missing = hgemm_torch::look_up_all(torch, hgemm, found))
        return missing;
    const bool has_cuda = hgemm_torch::has_cuda(torch, found);
    hgemm_torch::api = found;
    if (!hgemm_torch::implement("CPU") || (has_cuda && !hgemm_torch::implement("CUDA")))
        return "aoti_torch_library_impl";
    return nullptr;
}
