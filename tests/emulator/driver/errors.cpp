#include "driver/errors.hpp"

namespace {

struct NamedError {
    const char* name;
    int number;
    const char* text;
};

constexpr NamedError rows[] = {
    {"CUDA_SUCCESS", 0, "no error"},
#define EMU_ERROR(name, number, text) {"CUDA_ERROR_" #name, number, text},
#include "driver/errors.def"
#undef EMU_ERROR
};

const NamedError* find_error(CUresult result)
{
    for (const NamedError& row : rows)
        if (row.number == static_cast<int>(result))
            return &row;
    return nullptr;
}

CUresult tell(const char* NamedError::*field, CUresult error, const char** text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    const NamedError* row = find_error(error);
    *text = row ? row->*field : nullptr;
    return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

namespace emu::driver {

bool error_by_name(const std::string& name, CUresult* result)
{
    for (const NamedError& row : rows)
        if (name == row.name) {
            *result = static_cast<CUresult>(row.number);
            return true;
        }
    return false;
}

const char* error_name(CUresult result)
{
    const NamedError* row = find_error(result);
    return row ? row->name : nullptr;
}

}  // namespace emu::driver

// These two are neither counted nor made to fail: who reports an injected error asks for its name.
CUresult cuGetErrorName(CUresult error, const char** text) { return tell(&NamedError::name, error, text); }
CUresult cuGetErrorString(CUresult error, const char** text)
{
    return tell(&NamedError::text, error, text);
}
