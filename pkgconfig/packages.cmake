# Debian packages: libhgemm1, libhgemm-dev and hgemm-tools, one for each install component.
#
#   cmake --preset deb && cmake --build --preset deb && cpack --preset deb

# The maintainer of a package is who builds it: known as Debian's tools know it, or by git.
set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if(NOT DEFINED ENV{DEBFULLNAME} OR NOT DEFINED ENV{DEBEMAIL})
    foreach(key name email)
        execute_process(COMMAND git config "user.${key}" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
            OUTPUT_VARIABLE ${key} RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endforeach()
    set(maintainer "${name} <${email}>")
    if(NOT name OR NOT email)
        set(maintainer "Nobody <set-HGEMM_MAINTAINER@invalid>")
    endif()
endif()
set(HGEMM_MAINTAINER "${maintainer}" CACHE STRING "Name and address in the packages")
set(build_date "Thu, 01 Jan 1970 00:00:00 +0000")
if(EXISTS "${PROJECT_SOURCE_DIR}/.git")
    execute_process(COMMAND git log -1 --format=%cD
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        OUTPUT_VARIABLE committed RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
        set(build_date "${committed}")
    endif()
endif()

# compressed(<file> <folder> <component>): as Debian wants changelogs and manual pages, where gzip is.
find_program(GZIP gzip)
function(compressed file folder component)
    if(GZIP)
        get_filename_component(name "${file}" NAME)
        set(copy "${PROJECT_BINARY_DIR}/generated/${name}.gz")
        execute_process(COMMAND "${GZIP}" -9nc "${file}" OUTPUT_FILE "${copy}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
        set(file "${copy}")
    endif()
    install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/${folder}" COMPONENT ${component})
endfunction()

# document(<component> <package> <file with a licence>...): what Debian wants in every package.
configure_file(pkgconfig/changelog.in generated/changelog @ONLY)
function(document component package)
    set(copyright "")
    foreach(license ${ARGN})
        file(READ "${license}" text)
        string(APPEND copyright "${text}\n")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${license}")
    endforeach()
    set(file "${PROJECT_BINARY_DIR}/generated/copyright-${package}")
    file(WRITE "${file}" "${copyright}")
    install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}" RENAME copyright
        COMPONENT ${component})
    compressed("${PROJECT_BINARY_DIR}/generated/changelog" "doc/${package}" ${component})
endfunction()

document(runtime libhgemm1 LICENSE)
install(FILES pkgconfig/lintian-overrides DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides"
    RENAME libhgemm1 COMPONENT runtime)
document(development libhgemm-dev LICENSE)
compressed("${PROJECT_SOURCE_DIR}/pkgconfig/man/hgemm.7" man/man7 development)
install(FILES README.md DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/libhgemm-dev" COMPONENT development)
install(FILES
    bindings/c/example.c
    bindings/cpp/example.cpp
    bindings/fortran/example.f90
    bindings/rust/hgemm/examples/linear.rs
    DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/libhgemm-dev/examples" COMPONENT development)
# To be named by path in a Cargo.toml.
install(DIRECTORY bindings/rust/ DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/hgemm/rust" COMPONENT development
    FILES_MATCHING PATTERN "*.rs" PATTERN Cargo.toml PATTERN Cargo.lock PATTERN README.md
    PATTERN target EXCLUDE PATTERN tests EXCLUDE)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hgemm)
set(CPACK_PACKAGE_VERSION "${version}")
set(CPACK_PACKAGE_CONTACT "${HGEMM_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own, the first line of its description
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS runtime)
set(CPACK_DEB_COMPONENT_INSTALL ON)
if(HGEMM_EMBED_PTX)  # some 420 MB, for tests: gzip would take half a minute longer, xz more
    set(CPACK_DEBIAN_COMPRESSION_TYPE none)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# The system's folders need no rpath, and Debian allows none.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/pkgconfig/remove_rpath.cmake")

# dpkg-shlibdeps says which C library is needed. In a cross build it looks for the other machine's libraries among
# this machine's packages; there it is the version that install.hardened tests.
if(CMAKE_CROSSCOMPILING)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libc6 (>= ${c_library})")
    set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libc6 (>= ${c_library})")
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
        set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
    endif()
else()
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
endif()

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libhgemm1)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/pkgconfig/triggers")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS libopenblas0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS libcuda1)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "half-precision matrix products: shared libraries
Products of fp16 and bf16 matrices with fp32 sums, on NVIDIA GPUs where the
driver is installed, else on the CPU.")
if(TARGET hgemm_cublas)
    string(APPEND CPACK_COMPONENT_RUNTIME_DESCRIPTION "
.
libhgemm_cublas.so, preloaded, takes over the half-precision products of
programs that use cuBLAS.")
endif()

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhgemm-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "half-precision matrix products: headers and bindings
Headers for C and C++, a Fortran module and Rust crates as source, examples,
and what pkg-config and CMake need to find the library.")

if(has_tools)
    document(tools hgemm-tools LICENSE src/tools/NOTICES)
    compressed("${PROJECT_SOURCE_DIR}/src/tools/man/hgemm-bench.1" man/man1 tools)
    compressed("${PROJECT_SOURCE_DIR}/src/tools/man/hgemm-tune.1" man/man1 tools)
    list(APPEND CPACK_COMPONENTS_ALL tools)
    set(CPACK_COMPONENT_TOOLS_DEPENDS runtime)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME hgemm-tools)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
    set(CPACK_COMPONENT_TOOLS_DESCRIPTION "half-precision matrix products: benchmark and tuning
hgemm-bench shows the library at work, on the GPU or the CPU, and measures it
beside cuBLAS where that is installed. hgemm-tune finds the fastest kernels for
a user's products on this GPU. All results are checked.")
endif()
include(CPack)
