# shipped(<target>...): options of all that is installed.
#
# Protection: canaries on the stack, the C library's checks of sizes where the compiler optimises, relocations
# that are resolved at load and read-only from then on, no executable stack. And what nothing refers to is left
# out, of the static libstdc++ above all, which raises the version of the C library that is needed.
include(CheckCXXSourceCompiles)

# Level 3 where compiler and C library have it; they warn where they do not.
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_cxx_source_compiles("#include <cstring>\nint main() {}" HGEMM_HAS_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
set(fortified -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${HGEMM_HAS_FORTIFY_3}>,3,2>)

# The version of the C library that all of it needs at most, where it is built with that of Debian 12. 2.34 is the
# version of threads and dlopen() since that release; the static libgcc_eh of GCC 12 also calls _dl_find_object.
set(c_library 2.35)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(c_library 2.34)
endif()

function(shipped)
    foreach(target IN LISTS ARGN)
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:C,CXX>:-ffunction-sections>
            $<$<COMPILE_LANGUAGE:C,CXX>:-fdata-sections>
            $<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)
        if(NOT HGEMM_SANITIZE)  # sanitizers check the same calls themselves
            target_compile_options(${target} PRIVATE
                "$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>:${fortified}>")
        endif()
        target_link_options(${target} PRIVATE
            LINKER:--gc-sections
            LINKER:-z,relro
            LINKER:-z,now
            LINKER:-z,noexecstack)
    endforeach()
endfunction()

# shipped_library(<target> <version script> [option of the linker...]): the same for a shared library. It has the C++
# library in it, and needs no other that it does not use.
function(shipped_library target map)
    shipped(${target})
    target_link_options(${target} PRIVATE
        -static-libstdc++
        -static-libgcc
        "LINKER:--version-script=${map}"
        ${no_undefined}
        LINKER:--as-needed
        ${ARGN})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
endfunction()
