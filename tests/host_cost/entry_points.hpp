// Looks up the driver's entry points as the library does: in libcuda.so.1, without linking it.
#pragma once

#include <fmt/format.h>

#include <cuda.h>
#include <dlfcn.h>

#include <stdexcept>

namespace hg::cost {

inline void check(CUresult result, const char* call)
{
    if (result != CUDA_SUCCESS)
        throw std::runtime_error(fmt::format("{} answers {}", call, static_cast<int>(result)));
}

class EntryPoints {
public:
    EntryPoints()
    {
        void* library = dlopen("libcuda.so.1", RTLD_NOW);
        get_ = library ? reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
        if (!get_)
            throw std::runtime_error("no CUDA driver (libcuda.so.1)");
    }

    // version: the CUDA version whose signature is meant, as CUDA_VERSION counts. Null if the driver lacks
    // it.
    template <typename Function>
    void find(const char* name, int version, Function*& function) const
    {
        void* address = nullptr;
        const CUresult found = get_(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
        function = found == CUDA_SUCCESS ? reinterpret_cast<Function*>(address) : nullptr;
    }

private:
    using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    Get get_ = nullptr;
};

}  // namespace hg::cost
