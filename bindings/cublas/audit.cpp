// libhgemm_cublas_audit.so: the loader's auditing interface (rtld-audit(7)). The loader reports each
// function of cuBLAS that dlsym() finds, and gives the program what la_symbind64() returns.
#include "stand_in.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

// What the loader keeps for each library.
enum Kind : uintptr_t { Other, Cublas, Shim };

std::atomic<const char*> shim_path = nullptr;

bool begins_with(const char* name, const char* prefix)
{
    return std::strncmp(name, prefix, std::strlen(prefix)) == 0;
}

Kind kind_of(const char* path)
{
    const char* const slash = std::strrchr(path, '/');
    const char* const name = slash ? slash + 1 : path;
    return begins_with(name, "libcublas") ? Cublas : begins_with(name, "libhgemm_cublas.so") ? Shim : Other;
}

// Null without the shim. It lies in the program's namespace, where this library does not.
hg::shim::StandIn* find_stand_in()
{
    static constinit std::atomic<hg::shim::StandIn*> known = nullptr;
    if (!known && shim_path)
        if (void* const shim = dlmopen(LM_ID_BASE, shim_path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
            known = reinterpret_cast<hg::shim::StandIn*>(dlsym(shim, hg::shim::stand_in_name));
    return known;
}

}  // namespace

extern "C" {

unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

unsigned la_objopen(link_map* library, Lmid_t space, uintptr_t* cookie)
{
    const Kind kind = space == LM_ID_BASE ? kind_of(library->l_name) : Other;
    *cookie = kind;
    if (kind == Shim)
        shim_path = library->l_name;
    return kind == Cublas ? LA_FLG_BINDTO : 0;
}

unsigned la_objclose(uintptr_t* cookie)
{
    if (*cookie == Shim)
        shim_path = nullptr;
    return 0;
}

// What the shim and cuBLAS itself look up stays as it is.
uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned, uintptr_t* from, uintptr_t*, unsigned* flags,
                       const char* name)
{
    const uintptr_t found = symbol->st_value;
    if (*from != Other || (*flags & LA_SYMB_DLSYM) == 0)
        return found;
    hg::shim::StandIn* const stand_in = find_stand_in();
    return stand_in ? reinterpret_cast<uintptr_t>(stand_in(name, reinterpret_cast<void*>(found))) : found;
}

}  // extern "C"
