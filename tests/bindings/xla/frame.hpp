// A stand-in for XLA: call frames as it makes them, and the functions of its FFI that handlers use.
#pragma once

#include "bindings/python/xla/ffi.hpp"

#include <hgemm.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct CUstream_st;

extern "C" hg::xla::Error* hgemm_xla_grouped_cuda(const hg::xla::CallFrame* frame);
extern "C" hg::xla::Error* hgemm_xla_grouped_host(const hg::xla::CallFrame* frame);
extern "C" hg::xla::Error* hgemm_xla_matmul_cuda(const hg::xla::CallFrame* frame);
extern "C" hg::xla::Error* hgemm_xla_matmul_host(const hg::xla::CallFrame* frame);

// XLA's own types.
struct hg::xla::Error {
    int code;
    std::string message;
};
struct hg::xla::Context {
    CUstream_st* stream = nullptr;
    int device = 0;
};

namespace hg::test {

inline xla::Api make_api()
{
    xla::Api api{};
    api.struct_size = sizeof api;
    api.version = {sizeof api.version, nullptr, xla::api_major, xla::api_minor};
    api.error_create = [](xla::ErrorCreateArgs* args) { return new xla::Error{args->code, args->message}; };
    api.error_destroy = [](xla::ErrorDestroyArgs* args) { delete args->error; };
    api.stream_get = [](xla::StreamGetArgs* args) -> xla::Error* {
        args->stream = args->context->stream;
        return nullptr;
    };
    api.device_ordinal_get = [](xla::DeviceOrdinalGetArgs* args) -> xla::Error* {
        args->ordinal = args->context->device;
        return nullptr;
    };
    return api;
}

class Frame {
public:
    explicit Frame(CUstream_st* stream = nullptr) : context{stream, 0} {}
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    Frame& argument(int type, void* data, std::vector<int64_t> dims)
    {
        arguments_.push_back(add(type, data, std::move(dims)));
        return *this;
    }
    Frame& result(int type, void* data, std::vector<int64_t> dims)
    {
        results_.push_back(add(type, data, std::move(dims)));
        return *this;
    }
    Frame& set(const std::string& attribute, int32_t value)
    {
        attributes_[attribute] = value;
        return *this;
    }
    Frame& set(const std::string& attribute, float value)
    {
        numbers_[attribute] = value;
        return *this;
    }

    // What the handler answers; null if the product runs.
    std::unique_ptr<xla::Error> call(xla::Error* (*handler)(const xla::CallFrame*))
    {
        std::vector<int> buffers(8, xla::kind_buffer), scalars;
        std::deque<xla::ByteSpan> names;
        std::deque<xla::Scalar> values;
        std::vector<const xla::ByteSpan*> name_pointers;
        std::vector<void*> value_pointers;
        const auto add = [&](int type, auto& attributes) {
            for (auto& [name, value] : attributes) {
                scalars.push_back(xla::kind_scalar);
                name_pointers.push_back(&names.emplace_back(xla::ByteSpan{name.data(), name.size()}));
                value_pointers.push_back(&values.emplace_back(xla::Scalar{type, &value}));
            }
        };
        add(xla::type_s32, attributes_);
        add(xla::type_f32, numbers_);
        const auto list = [&](const std::vector<xla::Buffer*>& of) {
            return xla::Buffers{sizeof(xla::Buffers), nullptr, static_cast<int64_t>(of.size()),
                                buffers.data(), of.data()};
        };
        const xla::CallFrame frame{sizeof frame,
                                   extensions,
                                   &api,
                                   &context,
                                   stage,
                                   list(arguments_),
                                   list(results_),
                                   {sizeof(xla::Attributes), nullptr, static_cast<int64_t>(scalars.size()),
                                    scalars.data(), name_pointers.data(), value_pointers.data()}};
        return std::unique_ptr<xla::Error>(handler(&frame));
    }

    xla::Api api = make_api();
    xla::Context context;
    xla::Extension* extensions = nullptr;
    int stage = xla::stage_execute;

private:
    xla::Buffer* add(int type, void* data, std::vector<int64_t> dims)
    {
        const std::vector<int64_t>& kept = dims_.emplace_back(std::move(dims));
        return &buffers_.emplace_back(xla::Buffer{sizeof(xla::Buffer), nullptr, type, data,
                                                  static_cast<int64_t>(kept.size()), kept.data()});
    }

    std::deque<std::vector<int64_t>> dims_;
    std::deque<xla::Buffer> buffers_;
    std::vector<xla::Buffer*> arguments_, results_;
    std::map<std::string, int32_t> attributes_ = {{"activation", HGEMM_ACTIVATION_NONE},
                                                  {"batch_invariant", 0},
                                                  {"of_k", 0},
                                                  {"symmetric", 0},
                                                  {"transpose_a", 0},
                                                  {"transpose_b", 0}};
    std::map<std::string, float> numbers_ = {{"alpha", 1.0f}, {"beta", 0.0f}};
};

}  // namespace hg::test
