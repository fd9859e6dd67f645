// Reductions that copies apply element by element to memory: cp.reduce.async.bulk, red.async.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace emu {

enum class Reduction : uint8_t { None, Add, Min, Max, Inc, Dec, And, Or, Xor };
enum class Element : uint8_t { B32, U32, S32, B64, U64, S64, F16, Bf16, F32, F64 };

bool parse_reduction(std::string_view name, Reduction& reduction);
bool parse_element(std::string_view name, Element& element);
size_t bytes_of(Element element);
bool may_reduce(Reduction reduction, Element element);

// to[i] = reduction(to[i], from[i])
void reduce(Reduction reduction, Element element, void* to, const void* from, size_t count);

}  // namespace emu
