# Debian packages: libhgemm1, libhgemm-dev and hgemm-tools, one for each install component.
#
#   cmake --preset deb && cmake --build --preset deb && cpack --preset deb
set(HGEMM_MAINTAINER "libhgemm maintainers <libhgemm@localhost>" CACHE STRING
    "Name and address in the packages")
set(build_date "Thu, 01 Jan 1970 00:00:00 +0000")
if(EXISTS "${PROJECT_SOURCE_DIR}/.git")
    execute_process(COMMAND git log -1 --format=%cD
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        OUTPUT_VARIABLE committed RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
        set(build_date "${committed}")
    endif()
endif()

# Debian wants a compressed changelog and the licence under these names in every package.
find_program(GZIP gzip)
if(GZIP)
    configure_file(pkgconfig/changelog.in generated/changelog @ONLY)
    execute_process(COMMAND "${GZIP}" -9nfk "${PROJECT_BINARY_DIR}/generated/changelog")
endif()
function(document component package)
    set(folder "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}")
    install(FILES LICENSE DESTINATION "${folder}" RENAME copyright COMPONENT ${component})
    if(GZIP)
        install(FILES "${PROJECT_BINARY_DIR}/generated/changelog.gz" DESTINATION "${folder}"
            COMPONENT ${component})
    endif()
endfunction()
document(runtime libhgemm1)
document(development libhgemm-dev)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hgemm)
set(CPACK_PACKAGE_VERSION "${version}")
set(CPACK_PACKAGE_CONTACT "${HGEMM_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS runtime)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# The system's folders need no rpath, and Debian allows none.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/pkgconfig/remove_rpath.cmake")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libhgemm1)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/pkgconfig/triggers")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS libopenblas0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS libcuda1)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "Products of fp16 and bf16 matrices with fp32 sums, on NVIDIA GPUs where the
driver is installed, else on the CPU with OpenBLAS: the shared libraries.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhgemm-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Headers for C and C++, a Fortran module as source, and what pkg-config and
CMake need to find the library.")

# hgemm-bench comes with the tests, the cuBLAS shim with the bindings.
if(HGEMM_TESTS OR HGEMM_BINDINGS)
    document(tools hgemm-tools)
    list(APPEND CPACK_COMPONENTS_ALL tools)
    set(CPACK_COMPONENT_TOOLS_DEPENDS runtime)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME hgemm-tools)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
    set(tools "")
    if(HGEMM_TESTS)
        list(APPEND tools "hgemm-bench shows the library at work and measures it, beside cuBLAS where that is\ninstalled.")
    endif()
    if(HGEMM_BINDINGS)
        list(APPEND tools "libhgemm_cublas.so, preloaded, takes over the half-precision products of programs\nthat use cuBLAS.")
    endif()
    list(JOIN tools "\n" CPACK_COMPONENT_TOOLS_DESCRIPTION)
endif()
include(CPack)
