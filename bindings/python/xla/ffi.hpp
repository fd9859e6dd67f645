// The part of XLA's FFI, a C interface, that the handler uses: versions 0.1 to 0.4. Declared here so that
// it builds without jaxlib and serves more than one version; a test compares it with jaxlib's own header.
//
// Structs that cross the interface begin with their size as their writer was compiled: a minor version adds
// members behind the others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hg::xla {

constexpr int api_major = 0, api_minor = 4;

struct Error;    // XLA's own
struct Context;  // of one call

// What XLA asks of a handler instead of a product, or adds to a struct.
constexpr int extension_metadata = 1;
struct Extension {
    size_t struct_size;
    int type;
    Extension* next;
};

struct ApiVersion {
    size_t struct_size;
    Extension* extensions;
    int major, minor;
};

struct Metadata {
    size_t struct_size;
    ApiVersion api_version;
    uint32_t traits;
    int64_t state_type;  // since 0.3
};

// The same operations at each call, which a CUDA graph may hold.
constexpr uint32_t trait_command_buffer_compatible = 1;

struct MetadataExtension {
    Extension base;
    Metadata* metadata;
};

// absl::StatusCode
constexpr int code_invalid_argument = 3, code_resource_exhausted = 8, code_failed_precondition = 9,
              code_unimplemented = 12, code_internal = 13;

struct ErrorCreateArgs {
    size_t struct_size;
    Extension* extensions;
    const char* message;
    int code;
};

struct ErrorDestroyArgs {
    size_t struct_size;
    Extension* extensions;
    Error* error;
};

struct StreamGetArgs {
    size_t struct_size;
    Extension* extensions;
    Context* context;
    void* stream;  // out
};

struct DeviceOrdinalGetArgs {
    size_t struct_size;
    Extension* extensions;
    Context* context;
    int32_t ordinal;  // out
};

using Unused = void (*)();

struct Api {
    size_t struct_size;
    Extension* extensions;
    ApiVersion version;
    const void* internal;
    Error* (*error_create)(ErrorCreateArgs*);
    Unused error_get_message;
    void (*error_destroy)(ErrorDestroyArgs*);
    Unused handler_register;
    Error* (*stream_get)(StreamGetArgs*);
    Unused type_register, context_get, state_set, state_get, memory_allocate, memory_free, pool_schedule,
        pool_threads, future_create, future_set_available, future_set_error, run_id_get;
    Error* (*device_ordinal_get)(DeviceOrdinalGetArgs*);
};

// xla::PrimitiveType
constexpr int type_s32 = 4, type_f16 = 10, type_f32 = 11, type_bf16 = 16;

// An array in row-major order.
struct Buffer {
    size_t struct_size;
    Extension* extensions;
    int type;
    void* data;
    int64_t rank;
    const int64_t* dims;
};

struct ByteSpan {
    const char* data;
    size_t size;
};

struct Scalar {
    int type;
    void* value;
};

constexpr int kind_buffer = 1;  // of an argument or a result
struct Buffers {
    size_t struct_size;
    Extension* extensions;
    int64_t size;
    const int* kinds;
    Buffer* const* buffers;
};

constexpr int kind_scalar = 3;  // of an attribute
struct Attributes {
    size_t struct_size;
    Extension* extensions;
    int64_t size;
    const int* kinds;
    const ByteSpan* const* names;
    void* const* values;
};

constexpr int stage_execute = 3;

struct CallFrame {
    size_t struct_size;
    Extension* extensions;
    const Api* api;
    Context* context;
    int stage;
    Buffers arguments, results;
    Attributes attributes;
};

}  // namespace hg::xla
