// Kernels of torch.ops.hgemm, and what they call.
#include "extension.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "groups.hpp"
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
    return {.form = integer(stack[0]),
            .beta = 1,
            .adds_row = true,
            .gate = {integer(stack[1]), real(2), real(3), real(4), 0}};
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

// Tensor a, Tensor b, Tensor bias, and those of gated(). The bias is read with ADDED.
void serve_gated(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]), bias = tensor(stack[2]);
    const Options options = gated(stack + 3);
    answer(stack, {product(a, b, options.has(ADDED) ? bias : nullptr, options)}, {a, b, bias});
}

// The same. Two results.
void serve_aux(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]), bias = tensor(stack[2]), aux = nullptr;
    Options options = gated(stack + 3);
    options.aux = &aux;
    Tensor result = product(a, b, options.has(ADDED) ? bias : nullptr, options);
    answer(stack, {result, aux}, {a, b, bias});
}

// Tensor product, Tensor grad, and those of gated()
void serve_gate_gradient(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor product = tensor(stack[0]), grad = tensor(stack[1]);
    answer(stack, {gate_gradient(product, grad, gated(stack + 2))}, {product, grad});
}

// Tensor a, Tensor b, Tensor ends, Tensor bias, and those of gated(). Two results.
void serve_groups(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor a = tensor(stack[0]), b = tensor(stack[1]), ends = tensor(stack[2]), bias = tensor(stack[3]);
    Tensor aux = nullptr;
    Options options = gated(stack + 4);
    options.aux = options.has(AUX) ? &aux : nullptr;
    Tensor result = grouped_product(a, b, ends, bias, options);
    answer(stack, {result, aux}, {a, b, ends, bias});
}

// Tensor indices, int experts. Two results.
void serve_route(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor indices = tensor(stack[0]);
    const Routed routed = route(indices, integer(stack[1]));
    answer(stack, {routed.rows, routed.ends}, {indices});
}

// Tensor x, Tensor weights, Tensor rows, Tensor ends, int form
void serve_gather(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor x = tensor(stack[0]), weights = tensor(stack[1]), rows = tensor(stack[2]),
           ends = tensor(stack[3]);
    answer(stack, {gather(x, weights, rows, ends, {.form = integer(stack[4])})}, {x, weights, rows, ends});
}

// Tensor values, Tensor weights, Tensor rows, int form
void serve_combine(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor values = tensor(stack[0]), weights = tensor(stack[1]), rows = tensor(stack[2]);
    answer(stack, {combine(values, weights, rows, {.form = integer(stack[3])})}, {values, weights, rows});
}

// Tensor x, Tensor values, Tensor rows, int type
void serve_dot(Value* stack, std::uint64_t, std::uint64_t)
{
    Tensor x = tensor(stack[0]), values = tensor(stack[1]), rows = tensor(stack[2]);
    const auto type = static_cast<hgemm_type_t>(integer(stack[3]));
    answer(stack, {dot(x, values, rows, type)}, {x, values, rows});
}

template <typename Function>
bool look_up(void* library, const char* name, Function*& function)
{
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

template <typename Find>
void find_all_of_hgemm(const Find& find, Api& api)
{
    find("hgemm_args_init", api.args_init);
    find("hgemm_gemm_ex", api.gemm);
    find("hgemm_gate_gradient_args_init", api.gate_gradient_args_init);
    find("hgemm_gate_gradient", api.gate_gradient);
    find("hgemm_grouped_args_init", api.grouped_args_init);
    find("hgemm_grouped_ex", api.grouped);
    find("hgemm_clear_rows", api.clear_rows);
    find("hgemm_route_args_init", api.route_args_init);
    find("hgemm_route", api.route);
    find("hgemm_rows_args_init", api.rows_args_init);
    find("hgemm_gather_rows", api.gather_rows);
    find("hgemm_combine_rows", api.combine_rows);
    find("hgemm_dot_rows", api.dot_rows);
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
    read("aoti_torch_dtype_int32", api.i32);
    read("aoti_torch_dtype_int64", api.i64);
    find_all_of_hgemm([&](const char* name, auto& function) { find(hgemm, name, function); }, api);
    return missing;
}

bool has_cuda(void* torch, Api& api)
{
    return look_up(torch, "aoti_torch_get_current_cuda_stream", api.current_stream);
}

constexpr std::pair<const char*, Kernel*> KERNELS[] = {{"_serve", serve},
                                                       {"_serve_add", serve_add},
                                                       {"_serve_gated", serve_gated},
                                                       {"_serve_aux", serve_aux},
                                                       {"_serve_gate_gradient", serve_gate_gradient},
                                                       {"_serve_groups", serve_groups},
                                                       {"_serve_route", serve_route},
                                                       {"_serve_gather", serve_gather},
                                                       {"_serve_combine", serve_combine},
                                                       {"_serve_dot", serve_dot}};

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
                                                       {"OF_K", OF_K},
                                                       {"CLEAR", CLEAR},
                                                       {"AUX", AUX},
                                                       {"ADDED", ADDED},
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
