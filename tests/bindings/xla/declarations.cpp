// Compiled where jaxlib is: our declarations of XLA's FFI against its own header.
#include "bindings/python/xla/ffi.hpp"

#include <xla/ffi/api/c_api.h>

#include <cstddef>

using namespace hg::xla;

// 0.4 has other names for two of XLA's types.
#if XLA_FFI_API_MINOR >= 4
using XlaExtension = XLA_FFI_InternalExtension;
#else
using XlaExtension = XLA_FFI_Extension_Base;
#endif

// XLA's struct may end with members that ours lacks.
#define SAME(ours, our_member, theirs, their_member)                                                       \
    static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) &&                          \
                  sizeof(ours::our_member) == sizeof(theirs::their_member))

static_assert(XLA_FFI_API_MAJOR == api_major);
static_assert(XLA_FFI_Extension_Metadata == extension_metadata);
static_assert(XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE == trait_command_buffer_compatible);
static_assert(XLA_FFI_Error_Code_INVALID_ARGUMENT == code_invalid_argument);
static_assert(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED == code_resource_exhausted);
static_assert(XLA_FFI_Error_Code_FAILED_PRECONDITION == code_failed_precondition);
static_assert(XLA_FFI_Error_Code_UNIMPLEMENTED == code_unimplemented);
static_assert(XLA_FFI_Error_Code_INTERNAL == code_internal);
static_assert(XLA_FFI_DataType_S32 == type_s32 && XLA_FFI_DataType_F16 == type_f16);
static_assert(XLA_FFI_DataType_F32 == type_f32 && XLA_FFI_DataType_BF16 == type_bf16);
static_assert(XLA_FFI_ArgType_BUFFER == kind_buffer && XLA_FFI_RetType_BUFFER == kind_buffer);
static_assert(XLA_FFI_AttrType_SCALAR == kind_scalar && XLA_FFI_ExecutionStage_EXECUTE == stage_execute);

static_assert(sizeof(Extension) == sizeof(XlaExtension));
SAME(Extension, type, XlaExtension, type);
SAME(Extension, next, XlaExtension, next);
static_assert(sizeof(ApiVersion) == sizeof(XLA_FFI_Api_Version));
SAME(ApiVersion, major, XLA_FFI_Api_Version, major_version);
SAME(ApiVersion, minor, XLA_FFI_Api_Version, minor_version);
SAME(Metadata, api_version, XLA_FFI_Metadata, api_version);
SAME(Metadata, traits, XLA_FFI_Metadata, traits);
#if XLA_FFI_API_MINOR >= 3
SAME(Metadata, state_type, XLA_FFI_Metadata, state_type_id);
#endif
SAME(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);

static_assert(sizeof(ErrorCreateArgs) == sizeof(XLA_FFI_Error_Create_Args));
SAME(ErrorCreateArgs, message, XLA_FFI_Error_Create_Args, message);
SAME(ErrorCreateArgs, code, XLA_FFI_Error_Create_Args, errc);
SAME(ErrorDestroyArgs, error, XLA_FFI_Error_Destroy_Args, error);
static_assert(sizeof(StreamGetArgs) == sizeof(XLA_FFI_Stream_Get_Args));
SAME(StreamGetArgs, context, XLA_FFI_Stream_Get_Args, ctx);
SAME(StreamGetArgs, stream, XLA_FFI_Stream_Get_Args, stream);
static_assert(sizeof(DeviceOrdinalGetArgs) == sizeof(XLA_FFI_DeviceOrdinal_Get_Args));
SAME(DeviceOrdinalGetArgs, context, XLA_FFI_DeviceOrdinal_Get_Args, ctx);
SAME(DeviceOrdinalGetArgs, ordinal, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);

SAME(Api, version, XLA_FFI_Api, api_version);
SAME(Api, error_create, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(Api, error_destroy, XLA_FFI_Api, XLA_FFI_Error_Destroy);
SAME(Api, stream_get, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME(Api, device_ordinal_get, XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);

SAME(Buffer, type, XLA_FFI_Buffer, dtype);
SAME(Buffer, data, XLA_FFI_Buffer, data);
SAME(Buffer, rank, XLA_FFI_Buffer, rank);
SAME(Buffer, dims, XLA_FFI_Buffer, dims);
SAME(ByteSpan, data, XLA_FFI_ByteSpan, ptr);
SAME(ByteSpan, size, XLA_FFI_ByteSpan, len);
SAME(Scalar, type, XLA_FFI_Scalar, dtype);
SAME(Scalar, value, XLA_FFI_Scalar, value);

static_assert(sizeof(Buffers) == sizeof(XLA_FFI_Args) && sizeof(Buffers) == sizeof(XLA_FFI_Rets));
SAME(Buffers, size, XLA_FFI_Args, size);
SAME(Buffers, kinds, XLA_FFI_Args, types);
SAME(Buffers, buffers, XLA_FFI_Args, args);
SAME(Buffers, size, XLA_FFI_Rets, size);
SAME(Buffers, kinds, XLA_FFI_Rets, types);
SAME(Buffers, buffers, XLA_FFI_Rets, rets);
static_assert(sizeof(Attributes) == sizeof(XLA_FFI_Attrs));
SAME(Attributes, size, XLA_FFI_Attrs, size);
SAME(Attributes, kinds, XLA_FFI_Attrs, types);
SAME(Attributes, names, XLA_FFI_Attrs, names);
SAME(Attributes, values, XLA_FFI_Attrs, attrs);

SAME(CallFrame, extensions, XLA_FFI_CallFrame, extension_start);
SAME(CallFrame, api, XLA_FFI_CallFrame, api);
SAME(CallFrame, context, XLA_FFI_CallFrame, ctx);
SAME(CallFrame, stage, XLA_FFI_CallFrame, stage);
SAME(CallFrame, arguments, XLA_FFI_CallFrame, args);
SAME(CallFrame, results, XLA_FFI_CallFrame, rets);
SAME(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
