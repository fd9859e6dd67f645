# Where `cmake --install` puts things, and how pkg-config and find_package() find them there.
# The Fortran module goes there as source, which fits every compiler.
install(FILES include/hgemm.h include/hgemm.hpp bindings/fortran/hgemm.f90
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
install(TARGETS hgemm EXPORT hgemmTargets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT development
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)

# ${pcfiledir} makes the file relocatable. An absolute libdir or includedir stays as it was given, and
# then only an absolute prefix means anything.
set(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH up "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(pc_prefix "\${pcfiledir}/${up}")
    string(PREPEND pc_libdir "\${prefix}/")
endif()
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    string(PREPEND pc_includedir "\${prefix}/")
endif()
set(pc_libs_private "")
set(config_dependencies "")
if(NOT BUILD_SHARED_LIBS)
    list(JOIN static_libraries " -l" pc_libs_private)
    set(pc_libs_private "-l${pc_libs_private} -pthread")
    set(config_dependencies "include(CMakeFindDependencyMacro)\nset(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)")
endif()
configure_file(pkgconfig/hgemm.pc.in generated/hgemm.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/generated/hgemm.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hgemm")
configure_package_config_file(pkgconfig/hgemmConfig.cmake.in generated/hgemmConfig.cmake
    INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/hgemmConfigVersion.cmake"
    COMPATIBILITY SameMajorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/generated/hgemmConfig.cmake"
    "${PROJECT_BINARY_DIR}/generated/hgemmConfigVersion.cmake"
    DESTINATION "${package_dir}" COMPONENT development)
install(EXPORT hgemmTargets NAMESPACE hgemm:: DESTINATION "${package_dir}" COMPONENT development)

if(PROJECT_IS_TOP_LEVEL AND BUILD_SHARED_LIBS)
    include(pkgconfig/packages.cmake)
endif()
