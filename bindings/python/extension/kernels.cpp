// Kernels of torch.ops.hgemm, and what they call.
#include "extension.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "passes.hpp"
#include "product.hpp"
#include "torch_api.hpp"

namespace hgemm_torch {

Api api;

namespace {

Tensor tensor(Value value) { return std::bit_cast<Tensor>(value); }
std::int64_t integer(Value value) { return static_cast<std::int64_t>(value); }
double number(Value value) { return std::bit_cast<double>(value); }

// An undefined tensor, which is None in Python, says that there is none.
void answer(Value* stack, std::initializer_list<Tensor> results, std::initializer_list<Tensor> arguments)
{
    for (Tensor each : arguments)
        api.delete_tensor(each);
    for (Tensor each : results) {
        if (each == nullptr)
            api.new_undefined(&each);
        *stack++ = std::bit_cast<Value>(each);
    }
}

// int form, int block, float limit, float slope, float offset
Options gated(const Value* stack)
{
    const auto real = [&](int index) { return static_cast<float>(number(stack[index])); };
    return {.form = integer(stack[0]), .gate = {integer(stack[1]), real(2), real(3), real(4), 0}};
}

// Tensor a, Tensor b, int form
void serve(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]);
    answer(stack, {product(a, b, nullptr, {.form = integer(stack[2])})}, {a, b});
}

// Tensor a, Tensor b, Tensor added, int form, float alpha, float beta
void serve_add(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]), added = tensor(stack[2]);
    const Options options{.form = integer(stack[3]), .alpha = number(stack[4]), .beta = number(stack[5])};
    answer(stack, {product(a, b, added, options)}, {a, b, added});
}

// Tensor a, Tensor b, and those of gated()
void serve_gated(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]);
    answer(stack, {product(a, b, nullptr, gated(stack + 2))}, {a, b});
}

// The same. Two results.
void serve_gated_aux(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]), aux = nullptr;
    Options options = gated(stack + 2);
    options.aux = &aux;
    Tensor result = product(a, b, nullptr, options);
    answer(stack, {result, aux}, {a, b});
}

// Tensor product, Tensor grad, and those of gated()
void serve_gate_gradient(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor product = tensor(stack[0]), grad = tensor(stack[1]);
    answer(stack, {gate_gradient(product, grad, gated(stack + 2))}, {product, grad});
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
    find(hgemm, "hgemm_gate_gradient_args_init", api.gate_gradient_args_init);
    find(hgemm, "hgemm_gate_gradient", api.gate_gradient);
    return missing;
}

bool has_cuda(void* torch, Api& api)
{
    return look_up(torch, "aoti_torch_get_current_cuda_stream", api.current_stream);
}

constexpr std::pair<const char*, Kernel*> KERNELS[] = {{"_serve", serve},
                                                       {"_serve_add", serve_add},
                                                       {"_serve_gated", serve_gated},
                                                       {"_serve_gated_aux", serve_gated_aux},
                                                       {"_serve_gate_gradient", serve_gate_gradient}};

// What torch keeps for as long as the process: it has no moment to take kernels back.
bool implement(const char* key)
{
    Library library = nullptr;
    if (api.init_library("hgemm", key, "libhgemm_torch", 0, &library))
        return false;
    return std::ranges::all_of(
        KERNELS, [&](const auto& each) { return !api.implement(library, each.first, each.second); });
}

constexpr std::pair<std::string_view, Form> FORMS[] = {{"BATCH_INVARIANT", BATCH_INVARIANT},
                                                       {"WIDE", WIDE},
                                                       {"BATCHED", BATCHED},
                                                       {"LINEAR", LINEAR},
                                                       {"SYMMETRIC", SYMMETRIC},
                                                       {"OUTER", OUTER},
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
