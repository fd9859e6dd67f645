// Shared libraries that are looked for at run time.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace hg::bench {

// `path` if it is given, else the first of the names that can be loaded; null if none, and *why says so.
inline void* open_library(const std::string& path, const std::vector<const char*>& names, std::string* why)
{
    void* library = nullptr;
    if (!path.empty())
        library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; path.empty() && !library && i < names.size(); ++i)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        *why = dlerror();
    return library;
}

template <typename Function>
void resolve(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function)
        throw std::runtime_error(std::string("the library has no ") + name);
}

// Throws unless a function of cuBLAS answered 0.
inline void require_success(int status, const char* what)
{
    if (status != 0)
        throw std::runtime_error(std::string(what) + " answers " + std::to_string(status));
}

}  // namespace hg::bench
