// Values, buffers and tensor maps from text.
#include "ptxrun.hpp"

#include "numerics/floats.hpp"
#include "ops/tensor_map.hpp"

#include <fmt/format.h>

#include <fstream>

namespace emu {
namespace {

[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }

std::vector<std::string> split(const std::string& text, char at)
{
    std::vector<std::string> parts;
    size_t start = 0;
    for (size_t end; (end = text.find(at, start)) != text.npos; start = end + 1)
        parts.push_back(text.substr(start, end - start));
    parts.push_back(text.substr(start));
    return parts;
}

uint64_t integer(const std::string& text)
{
    try {
        size_t used = 0;
        const uint64_t value = text[0] == '-' ? static_cast<uint64_t>(std::stoll(text, &used, 0))
                                              : std::stoull(text, &used, 0);
        if (used == text.size())
            return value;
    } catch (const std::logic_error&) {
    }
    fail(fmt::format("'{}' is no integer", text));
}

std::vector<uint64_t> integers(const std::string& text, char at)
{
    std::vector<uint64_t> values;
    if (!text.empty())
        for (const std::string& part : split(text, at))
            values.push_back(integer(part));
    return values;
}

double real(const std::string& text)
{
    try {
        size_t used = 0;
        const double value = std::stod(text, &used);
        if (used == text.size())
            return value;
    } catch (const std::logic_error&) {
    }
    fail(fmt::format("'{}' is no number", text));
}

template <class T>
std::vector<uint8_t> bytes_of(const T& value, size_t count = sizeof(T))
{
    const auto* first = reinterpret_cast<const uint8_t*>(&value);
    return {first, first + count};
}

std::vector<uint8_t> hexadecimal_bytes(const std::string& text)
{
    std::vector<uint8_t> bytes;
    if (text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdefABCDEF") != text.npos)
        fail(fmt::format("'{}' is not hexadecimal, two digits a byte", text));
    for (size_t i = 0; i + 1 < text.size(); i += 2)
        bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

bool float_format(const std::string& name, FormatId& id)
{
    static const std::map<std::string, FormatId> names = {
        {"f16", FormatId::F16}, {"bf16", FormatId::Bf16}, {"f32", FormatId::F32}, {"f64", FormatId::F64}};
    const auto found = names.find(name);
    if (found == names.end())
        return false;
    id = found->second;
    return true;
}

size_t format_bytes(FormatId id) { return (1 + format(id).exponent_bits + format(id).fraction_bits) / 8; }

// A plain number has the parameter's type: "32" -> "u32:32".
std::string with_type(const std::string& description, const ptx::Variable& parameter)
{
    const ptx::Type& type = parameter.type;
    if (description.find_first_of(":=") != description.npos || parameter.bytes != type.bytes() ||
        type.packed != 1)
        return description;
    const char* name = type.kind == ptx::Kind::Float    ? "f"
                       : type.kind == ptx::Kind::Bfloat ? "bf"
                       : type.kind == ptx::Kind::Signed ? "s"
                                                        : "u";
    return name + std::to_string(type.bits) + ":" + description;
}

}  // namespace

const char* Arguments::help()
{
    return "One --arg for each kernel parameter:\n"
           "  N or X, a number of the parameter's type\n"
           "  u8|u16|u32|u64|s32|s64:N   f16|bf16|f32|f64:X   hex:BYTES\n"
           "  buf:NAME:BYTES[:zero|random|f16|bf16|f32|f64|file=PATH]  device memory; the float formats "
           "fill it\n"
           "                             with values in [-1, 1); without a filling it holds NaN\n"
           "  ptr:NAME[+BYTES]           an address in a buffer described before\n"
           "  tmap:NAME:TYPE:D0xD1..:S1,S2..:B0xB1..:SWIZZLE  a tensor map over a buffer: sizes, byte "
           "strides of\n"
           "                             dimensions 1 and up, box, swizzle span 0, 32, 64 or 128\n"
           "  OFFSET=ITEM;OFFSET=ITEM..  fields of a struct, the rest zero";
}

void Arguments::add_buffer(const std::string& description) { buffer(split("buf:" + description, ':')); }

std::vector<uint8_t> Arguments::parameters(const ptx::Kernel& kernel,
                                           const std::vector<std::string>& descriptions)
{
    if (descriptions.size() != kernel.parameters.size())
        fail(fmt::format("{} takes {} parameters, {} were described", kernel.name, kernel.parameters.size(),
                         descriptions.size()));
    std::vector<uint8_t> block(kernel.parameter_bytes);
    for (size_t i = 0; i < descriptions.size(); ++i) {
        const ptx::Variable& parameter = kernel.parameters[i];
        const size_t start = parameter.offset, room = parameter.bytes;
        const std::string description = with_type(descriptions[i], parameter);
        if (description.find('=') == std::string::npos || description.rfind("buf:", 0) == 0) {
            const size_t bytes = put(block, start, room, description);
            if (bytes != room)
                fail(fmt::format("'{}' has {} bytes, the parameter {}", description, bytes, room));
            continue;
        }
        for (const std::string& field : split(description, ';')) {
            const size_t equals = field.find('=');
            if (equals == field.npos)
                fail(fmt::format("'{}': an offset is missing", field));
            const uint64_t at = integer(field.substr(0, equals));
            if (at > room)
                fail(fmt::format("'{}' lies outside the parameter of {} bytes", field, room));
            put(block, start + at, room - at, field.substr(equals + 1));
        }
    }
    return block;
}

size_t Arguments::put(std::vector<uint8_t>& block, size_t at, size_t room, const std::string& description)
{
    const std::vector<uint8_t> bytes = value(description);
    if (bytes.size() > room)
        fail(fmt::format("'{}' has {} bytes, the parameter {}", description, bytes.size(), room));
    std::copy(bytes.begin(), bytes.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
    return bytes.size();
}

std::vector<uint8_t> Arguments::value(const std::string& description)
{
    const std::vector<std::string> fields = split(description, ':');
    const std::string& kind = fields[0];
    FormatId id;
    ptx::Type type;
    if (fields.size() < 2)
        fail(fmt::format("'{}' describes no argument", description));
    if (kind == "buf")
        return buffer(fields);
    if (kind == "ptr")
        return bytes_of(pointer(fields[1]));
    if (kind == "tmap")
        return tensor_map(fields);
    if (kind == "hex")
        return hexadecimal_bytes(fields[1]);
    if (float_format(kind, id))
        return bytes_of(from_double(id, real(fields[1]), Rounding::Nearest), format_bytes(id));
    if (ptx::parse_type(kind, type) && type.packed == 1 && type.bits >= 8 && type.bits <= 64)
        return bytes_of(integer(fields[1]), type.bytes());
    fail(fmt::format("'{}' describes no argument", description));
}

std::vector<uint8_t> Arguments::buffer(const std::vector<std::string>& fields)
{
    if (fields.size() < 3 || fields.size() > 4)
        fail("a buffer is buf:NAME:BYTES[:FILLING]");
    Buffer buffer;
    buffer.bytes = integer(fields[2]);
    void* base = machine_.memory.allocate(buffer.bytes);
    if (!base)
        fail(fmt::format("no room for {} bytes", fields[2]));
    buffer.address = reinterpret_cast<uint64_t>(base);
    if (fields.size() == 4)
        fill(buffer, fields[3]);
    if (!buffers_.emplace(fields[1], buffer).second)
        fail(fmt::format("two buffers '{}'", fields[1]));
    return bytes_of(buffer.address);
}

void Arguments::fill(const Buffer& buffer, const std::string& how)
{
    auto* bytes = reinterpret_cast<uint8_t*>(buffer.address);
    FormatId id;
    if (how == "zero") {
        std::memset(bytes, 0, buffer.bytes);
    } else if (how == "random") {
        for (size_t i = 0; i < buffer.bytes; ++i)
            bytes[i] = static_cast<uint8_t>(random_());
    } else if (float_format(how, id)) {
        std::uniform_real_distribution<double> range(-1, 1);
        for (size_t at = 0; at + format_bytes(id) <= buffer.bytes; at += format_bytes(id)) {
            const uint64_t bits = from_double(id, range(random_), Rounding::Nearest);
            std::memcpy(bytes + at, &bits, format_bytes(id));
        }
    } else if (how.rfind("file=", 0) == 0) {
        std::ifstream file(how.substr(5), std::ios::binary);
        file.read(reinterpret_cast<char*>(bytes), static_cast<std::streamsize>(buffer.bytes));
        if (file.gcount() != static_cast<std::streamsize>(buffer.bytes))
            fail(fmt::format("'{}' has not {} bytes", how.substr(5), buffer.bytes));
    } else {
        fail(fmt::format("'{}' is no filling", how));
    }
}

uint64_t Arguments::pointer(const std::string& text) const
{
    const std::vector<std::string> parts = split(text, '+');
    const auto found = buffers_.find(parts[0]);
    if (found == buffers_.end())
        fail(fmt::format("no buffer '{}' described before", parts[0]));
    return found->second.address + (parts.size() > 1 ? integer(parts[1]) : 0);
}

std::vector<uint8_t> Arguments::tensor_map(const std::vector<std::string>& fields)
{
    // Numbers of CUtensorMapDataType and CUtensorMapSwizzle.
    static const std::map<std::string, uint32_t> types = {{"u8", 0},  {"u16", 1}, {"u32", 2}, {"s32", 3},
                                                          {"u64", 4}, {"s64", 5}, {"f16", 6}, {"f32", 7},
                                                          {"f64", 8}, {"bf16", 9}};
    static const std::map<std::string, uint32_t> swizzles = {{"0", 0}, {"32", 1}, {"64", 2}, {"128", 3}};
    if (fields.size() != 7 || !types.count(fields[2]) || !swizzles.count(fields[6]))
        fail("a tensor map is tmap:NAME:TYPE:SIZES:STRIDES:BOX:SWIZZLE");
    const auto size = integers(fields[3], 'x'), stride = integers(fields[4], ','),
               box = integers(fields[5], 'x');
    if (size.empty() || box.size() != size.size() || stride.size() + 1 != size.size())
        fail("sizes, strides and box of a tensor map do not fit together");
    const std::vector<uint32_t> box32(box.begin(), box.end()), ones(size.size(), 1);
    TensorMap map{};
    if (const char* wrong = encode_tensor_map(map, types.at(fields[2]), static_cast<uint32_t>(size.size()),
                                              pointer(fields[1]), size.data(), stride.data(), box32.data(),
                                              ones.data(), 0, swizzles.at(fields[6]), 0))
        fail(wrong);
    return bytes_of(map);
}

}  // namespace emu
