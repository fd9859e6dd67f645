// Functions of the driver that one file of tests alone needs, found when they are first used. The file
// lists them, #define LIST(F) F(name, (types of the arguments)) ..., and says DRIVER_FUNCTIONS(LIST) in its
// unnamed namespace. Then cu().name(...) calls one, CHECK(name, ...) throws where it fails, and
// cu().absent says which of them the driver does not have.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace hg::test {

// The driver's function of this name; null if it has none.
inline void* driver_function(const char* name)
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : nullptr;
}

inline void check_answer(int error, const char* name)
{
    if (error != 0)
        throw std::runtime_error(std::string(name) + " answers " + std::to_string(error));
}

}  // namespace hg::test

#define DRIVER_FUNCTION_DECLARE(name, arguments) int(*name) arguments = nullptr;
#define DRIVER_FUNCTION_FIND(name, arguments)                                                              \
    f.name = reinterpret_cast<int(*) arguments>(driver_function(#name));                                   \
    if (!f.name)                                                                                           \
        f.absent = "the driver has no " #name;
#define DRIVER_FUNCTIONS(LIST)                                                                             \
    struct Functions {                                                                                     \
        LIST(DRIVER_FUNCTION_DECLARE)                                                                      \
        std::string absent;                                                                                \
    };                                                                                                     \
    const Functions& cu()                                                                                  \
    {                                                                                                      \
        static const Functions functions = [] {                                                            \
            Functions f;                                                                                   \
            LIST(DRIVER_FUNCTION_FIND)                                                                     \
            return f;                                                                                      \
        }();                                                                                               \
        return functions;                                                                                  \
    }
#define CHECK(name, ...) check_answer(cu().name(__VA_ARGS__), #name)
