#include "call.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>

namespace hg::xla {
namespace {

hgemm_type_t type_of(const Buffer& buffer, const char* name)
{
    switch (buffer.type) {
    case type_f16: return HGEMM_F16;
    case type_bf16: return HGEMM_BF16;
    case type_f32: return HGEMM_F32;
    default: refuse(std::string(name) + ": its elements must be float16, bfloat16 or float32");
    }
}

const Buffer& buffer_of(const Buffers& buffers, int64_t i, const char* name)
{
    if (buffers.kinds[i] != kind_buffer)
        refuse(std::string(name) + ": must be an array");
    return *buffers.buffers[i];
}

void check_shape(const Matrices& operand, const char* name, const Call& call, int64_t rows, int64_t columns)
{
    const size_t rank = call.d.dims.size();
    if (operand.dims.size() != rank || operand.dims[rank - 2] != rows || operand.dims[rank - 1] != columns)
        refuse(std::string(name) + ": its shape does not fit those of the other arrays");
    for (size_t i = 0; i < rank - 2; ++i)
        if (operand.dims[i] != 1 && operand.dims[i] != call.d.dims[i])
            refuse(std::string(name) + ": its leading dimensions do not fit those of the result");
}

void check_shapes(const Call& call)
{
    const size_t rank = call.d.dims.size();
    if (rank < 2)
        refuse("d: has " + std::to_string(rank) + " dimensions, must have 2 or more");
    if (call.a.dims.size() != rank)
        refuse("a: must have as many dimensions as the result");
    const int64_t m = call.d.dims[rank - 2], n = call.d.dims[rank - 1];
    const int64_t k = call.a.dims[call.transpose_a ? rank - 2 : rank - 1];
    call.transpose_a ? check_shape(call.a, "a", call, k, m) : check_shape(call.a, "a", call, m, k);
    call.transpose_b ? check_shape(call.b, "b", call, n, k) : check_shape(call.b, "b", call, k, n);
    if (call.c.type)
        check_shape(call.c, "c", call, m, n);
    if (call.aux.type && !std::ranges::equal(call.aux.dims, call.d.dims))
        refuse("aux: must have the shape of the result");
    if (!call.bias.type)
        return;
    if (call.bias.dims.size() != rank - 1 || call.bias.dims.back() != n)
        refuse("bias: its shape does not fit that of the result");
    for (size_t i = 0; i < rank - 2; ++i)
        if (call.bias.dims[i] != 1 && call.bias.dims[i] != call.d.dims[i])
            refuse("bias: its leading dimensions do not fit those of the result");
}

// Null: there is no such attribute of the type.
const void* find_attribute(const CallFrame& frame, std::string_view wanted, int type)
{
    const Attributes& attributes = frame.attributes;
    for (int64_t i = 0; i < attributes.size; ++i) {
        if (std::string_view(attributes.names[i]->data, attributes.names[i]->size) != wanted)
            continue;
        const auto* const scalar = static_cast<const Scalar*>(attributes.values[i]);
        if (attributes.kinds[i] == kind_scalar && scalar->type == type)
            return scalar->value;
    }
    return nullptr;
}

int code_of(hgemm_status_t status)
{
    switch (status) {
    case HGEMM_STATUS_INVALID_ARGUMENT: return code_invalid_argument;
    case HGEMM_STATUS_NOT_SUPPORTED: return code_unimplemented;
    case HGEMM_STATUS_ALLOC_FAILED: return code_resource_exhausted;
    default: return code_internal;
    }
}

// Of an error of XLA's own the fact is passed on: the function that reads its text is not the same in all
// versions.
void check_xla(const CallFrame& frame, Error* error, const char* what)
{
    if (!error)
        return;
    ErrorDestroyArgs args{sizeof args, nullptr, error};
    frame.api->error_destroy(&args);
    throw Refusal(code_internal, std::string("XLA does not say which ") + what + " the call is for");
}

// Throws where the frame is of another interface than ffi.hpp declares.
void check_interface(const CallFrame& frame, bool needs_device)
{
    const Api& api = *frame.api;
    if (api.version.major != api_major)
        throw Refusal(code_failed_precondition, "libhgemm knows version " + std::to_string(api_major) +
                                                    " of XLA's FFI, and this is " +
                                                    std::to_string(api.version.major) + "." +
                                                    std::to_string(api.version.minor));
    const size_t last = offsetof(Api, device_ordinal_get) + sizeof api.device_ordinal_get;
    if (frame.struct_size < sizeof frame || (needs_device && api.struct_size < last))
        throw Refusal(code_failed_precondition,
                      "this XLA is too old for libhgemm; JAX 0.6.2 or newer is wanted");
    if (frame.stage != stage_execute)
        throw Refusal(code_failed_precondition, "must be called where XLA executes");
}

// False where XLA wants a product.
bool answer_metadata(const CallFrame& frame)
{
    if (!frame.extensions || frame.extensions->type != extension_metadata)
        return false;
    Metadata& metadata = *reinterpret_cast<MetadataExtension*>(frame.extensions)->metadata;
    // XLA refuses a handler of a newer version than its own. Only 0.1 does not say which that is.
    const int minor = frame.api ? std::clamp(frame.api->version.minor, 1, api_minor) : 1;
    metadata.api_version = {sizeof(ApiVersion), nullptr, api_major, minor};
    metadata.traits = trait_command_buffer_compatible;
    if (metadata.struct_size >= sizeof metadata)
        metadata.state_type = 0;
    return true;
}

// Of XLA's GPU platforms alone.
int device_of(const CallFrame& frame)
{
    DeviceOrdinalGetArgs args{sizeof args, nullptr, frame.context, 0};
    check_xla(frame, frame.api->device_ordinal_get(&args), "device");
    return args.ordinal;
}

void* stream_of(const CallFrame& frame)
{
    StreamGetArgs args{sizeof args, nullptr, frame.context, nullptr};
    check_xla(frame, frame.api->stream_get(&args), "stream");
    return args.stream;
}

}  // namespace

void refuse(const std::string& text) { throw Refusal(code_invalid_argument, text); }

void require(hgemm_status_t status)
{
    if (status != HGEMM_STATUS_SUCCESS)
        throw Refusal(code_of(status),
                      std::string(hgemm_status_string(status)) + ": " + hgemm_last_error());
}

Matrices matrices_of(const Buffers& buffers, int64_t i, const char* name)
{
    const Buffer& buffer = buffer_of(buffers, i, name);
    return {type_of(buffer, name), buffer.data, {buffer.dims, static_cast<size_t>(buffer.rank)}};
}

Matrices integers_of(const Buffers& buffers, int64_t i, const char* name)
{
    const Buffer& buffer = buffer_of(buffers, i, name);
    if (buffer.type != type_s32)
        refuse(std::string(name) + ": its elements must be int32");
    return {{}, buffer.data, {buffer.dims, static_cast<size_t>(buffer.rank)}};
}

int attribute(const CallFrame& frame, std::string_view wanted)
{
    if (const void* const value = find_attribute(frame, wanted, type_s32))
        return *static_cast<const int32_t*>(value);
    refuse(std::string(wanted) + ": must be an attribute of type int32");
}

float scalar(const CallFrame& frame, std::string_view wanted)
{
    if (const void* const value = find_attribute(frame, wanted, type_f32))
        return *static_cast<const float*>(value);
    refuse(std::string(wanted) + ": must be an attribute of type float32");
}

Call::Call(const CallFrame& frame)
{
    const Buffers &arguments = frame.arguments, &results = frame.results;
    if (arguments.size < 2 || arguments.size > 3 || results.size < 2 || results.size > 3)
        refuse("must have the arguments a, b and perhaps c or a bias, and the results d, perhaps aux, "
               "and a workspace");
    a = matrices_of(arguments, 0, "a");
    b = matrices_of(arguments, 1, "b");
    d = matrices_of(results, 0, "d");
    const Matrices added = arguments.size == 3 ? matrices_of(arguments, 2, "c or bias") : Matrices{};
    (added.dims.size() == d.dims.size() ? c : bias) = added;
    aux = results.size == 3 ? matrices_of(results, 1, "aux") : Matrices{};
    if (a.type == HGEMM_F32 || b.type != a.type)
        refuse("b: a and b must both be float16 or both bfloat16");
    if (aux.type && aux.type != d.type)
        refuse("aux: its elements must be of the type of the result");
    transpose_a = attribute(frame, "transpose_a") != 0;
    transpose_b = attribute(frame, "transpose_b") != 0;
    symmetric = attribute(frame, "symmetric") != 0;
    batch_invariant = attribute(frame, "batch_invariant") != 0;
    alpha = scalar(frame, "alpha");
    beta = scalar(frame, "beta");
    activation = static_cast<hgemm_activation_t>(attribute(frame, "activation"));
    check_shapes(*this);
}

Lent lend(const CallFrame& frame, bool on_gpu, bool batch_invariant)
{
    const hgemm_mode_t mode = batch_invariant ? HGEMM_MODE_BATCH_INVARIANT : HGEMM_MODE_DEFAULT;
    const int device = on_gpu ? device_of(frame) : HGEMM_DEVICE_HOST;
    const Buffer& memory = buffer_of(frame.results, frame.results.size - 1, "workspace");
    return Lent({device, mode}, on_gpu ? stream_of(frame) : nullptr,
                {memory.data, memory.rank == 1 ? static_cast<size_t>(memory.dims[0]) : 0});
}

Error* answer(const CallFrame& frame, bool on_gpu, void (*multiply)(const CallFrame&, bool on_gpu)) noexcept
{
    if (answer_metadata(frame))
        return nullptr;
    const auto fail = [&](int code, const char* text) {
        ErrorCreateArgs args{sizeof args, nullptr, text, code};
        return frame.api->error_create(&args);
    };
    try {
        check_interface(frame, on_gpu);
        multiply(frame, on_gpu);
        return nullptr;
    } catch (const Refusal& refusal) {
        return fail(refusal.code(), refusal.what());
    } catch (const std::exception& failure) {
        return fail(code_internal, failure.what());
    }
}

}  // namespace hg::xla
