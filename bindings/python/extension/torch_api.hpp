// What this extension calls: functions of the C ABI that libtorch keeps stable
// (torch/csrc/inductor/aoti_torch/c/ shim.h), of libhgemm and of the CUDA driver. All are looked up when
// the extension is loaded, in the libraries that the process has by then, so that it is bound to no version
// of them, and can be built where there is no PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hgemm.h"

namespace hgemm_torch {

using Tensor = struct AtenTensorOpaque*;
using Library = struct TorchLibraryOpaque*;
// An argument or a result of a kernel: a tensor's handle, which the kernel owns, or a number or bool, in
// its low bytes.
using Value = std::uint64_t;
using Kernel = void(Value* stack, std::uint64_t arguments, std::uint64_t results);
using Failed = std::int32_t;  // 0: success

struct Api {
    // libtorch's. Addresses of sizes and strides live as long as the tensor.
    Failed (*get_dim)(Tensor, std::int64_t* dimensions);
    Failed (*get_sizes)(Tensor, std::int64_t** sizes);
    Failed (*get_strides)(Tensor, std::int64_t** strides);
    Failed (*get_dtype)(Tensor, std::int32_t* dtype);
    Failed (*get_device_type)(Tensor, std::int32_t* type);
    Failed (*get_device_index)(Tensor, std::int32_t* index);
    Failed (*get_data_ptr)(Tensor, void** address);
    Failed (*empty_strided)(std::int64_t dimensions, const std::int64_t* sizes, const std::int64_t* strides,
                            std::int32_t dtype, std::int32_t device_type, std::int32_t device_index,
                            Tensor* result);
    Failed (*new_undefined)(Tensor* result);
    Failed (*delete_tensor)(Tensor);
    Failed (*init_library)(const char* name, const char* key, const char* file, std::uint32_t line,
                           Library* result);
    Failed (*implement)(Library, const char* name, Kernel*);

    // libtorch's numbers of a device's type and of dtypes.
    std::int32_t cpu, f16, bf16, f32, i32, i64;

    // libhgemm's.
    void (*args_init)(hgemm_args_t*, std::size_t);
    hgemm_status_t (*gemm)(hgemm_handle_t, const hgemm_args_t*);
    void (*gate_gradient_args_init)(hgemm_gate_gradient_args_t*, std::size_t);
    hgemm_status_t (*gate_gradient)(hgemm_handle_t, const hgemm_gate_gradient_args_t*);
    void (*grouped_args_init)(hgemm_grouped_args_t*, std::size_t);
    hgemm_status_t (*grouped)(hgemm_handle_t, const hgemm_grouped_args_t*);
    hgemm_status_t (*clear_rows)(hgemm_handle_t, const hgemm_grouped_args_t*);
    void (*route_args_init)(hgemm_route_args_t*, std::size_t);
    hgemm_status_t (*route)(hgemm_handle_t, const hgemm_route_args_t*);
    void (*rows_args_init)(hgemm_rows_args_t*, std::size_t);
    hgemm_status_t (*gather_rows)(hgemm_handle_t, const hgemm_rows_args_t*);
    hgemm_status_t (*combine_rows)(hgemm_handle_t, const hgemm_rows_args_t*);
    hgemm_status_t (*dot_rows)(hgemm_handle_t, const hgemm_rows_args_t*);

    // For CUDA tensors alone: null where there is no CUDA.
    Failed (*current_stream)(std::int32_t device, void** stream);
};

extern Api api;

}  // namespace hgemm_torch
