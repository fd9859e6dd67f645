# The emulator's own tests, which need nothing of libhgemm. ctest label: emulated.
find_package(GTest REQUIRED)  # Debian: libgtest-dev
include(GoogleTest)

add_executable(emulator_test
    test/bank_test.cpp
    test/bulk_test.cpp
    test/checker_lanes_test.cpp
    test/checker_test.cpp
    test/clock_test.cpp
    test/cluster_test.cpp
    test/control_test.cpp
    test/convert_test.cpp
    test/cp_async_test.cpp
    test/dependent_test.cpp
    test/element_types_test.cpp
    test/evaluate.cpp
    test/float_test.cpp
    test/global_test.cpp
    test/golden.cpp
    test/hardware_test.cpp
    test/integer_test.cpp
    test/matrix_test.cpp
    test/matrix_types_test.cpp
    test/mbarrier_test.cpp
    test/memory_test.cpp
    test/origin_test.cpp
    test/parser_limits_test.cpp
    test/parser_test.cpp
    test/ptxrun_test.cpp
    test/refused_test.cpp
    test/report_test.cpp
    test/residency_test.cpp
    test/run_ptx.cpp
    test/small_float_test.cpp
    test/spelling_test.cpp
    test/tcgen05_fixture.cpp
    test/tcgen05_move_test.cpp
    test/tcgen05_product.cpp
    test/tcgen05_rules_test.cpp
    test/tcgen05_test.cpp
    test/tensor_core_test.cpp
    test/tensor_map_test.cpp
    test/tma_store_test.cpp
    test/tma_test.cpp
    test/wgmma_test.cpp)
# Names its element types as the other test of matrices does.
set_source_files_properties(test/element_types_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_compile_options(emulator_test PRIVATE -Wall -Wextra -Wpedantic)
target_link_libraries(emulator_test PRIVATE emulator GTest::gtest_main)
# Runs from any folder that the build folder is copied to, on any system that has a C library.
target_link_options(emulator_test PRIVATE -static-libstdc++ -static-libgcc)
set_target_properties(emulator_test PROPERTIES BUILD_RPATH_USE_ORIGIN ON)
target_compile_definitions(emulator_test PRIVATE
    "EMU_PTXRUN=\"$<TARGET_FILE:ptxrun>\""
    "EMU_PTXAS=\"${CUDAToolkit_BIN_DIR}/ptxas\"")
add_dependencies(emulator_test ptxrun)
gtest_discover_tests(emulator_test NO_PRETTY_VALUES DISCOVERY_TIMEOUT 300 PROPERTIES LABELS emulated TIMEOUT 3000)

# A program that meets the driver as programs do, by its file.
function(driver_test name)
    add_executable(${name} test/driver_fixture.cpp ${ARGN})
    target_compile_features(${name} PRIVATE cxx_std_20)
    target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic)
    target_compile_definitions(${name} PRIVATE "EMU_DRIVER=\"$<TARGET_FILE:virtual_cuda>\"")
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_include_directories(${name} SYSTEM PRIVATE ${cuda_include})
    target_link_libraries(${name} PRIVATE GTest::gtest_main Threads::Threads ${CMAKE_DL_LIBS})
    add_dependencies(${name} virtual_cuda)
endfunction()
# The driver on each architecture.
driver_test(emulator-driver-test
    test/driver_capture_test.cpp
    test/driver_launch_test.cpp
    test/driver_settings_test.cpp
    test/driver_stream_test.cpp
    test/driver_strict_test.cpp
    test/driver_test.cpp
    test/driver_user_object_test.cpp)
# Kernels that run in turns.
driver_test(emulator-overlap-test test/driver_overlap_test.cpp)
# A program that uses the runtime: of the toolkit's version, and of CUDA 12 where that is beside it.
foreach(runtime IN LISTS runtimes)
    string(REPLACE virtual_cudart runtime name ${runtime})
    set(program emulator-${name}-test)
    add_executable(${program} test/runtime_test.cpp)
    target_compile_features(${program} PRIVATE cxx_std_20)
    target_compile_options(${program} PRIVATE -Wall -Wextra -Wpedantic)
    get_target_property(include ${runtime} INCLUDE_DIRECTORIES)
    target_include_directories(${program} SYSTEM PRIVATE ${include})
    target_link_libraries(${program} PRIVATE ${runtime} virtual_cuda GTest::gtest_main)
    add_test(NAME emulator.${name} COMMAND ${program})
    set_tests_properties(emulator.${name} PROPERTIES LABELS emulated TIMEOUT 60 ENVIRONMENT EMU_ARCH=sm_80)
endforeach()
foreach(architecture sm_80 sm_90 sm_100 sm_120)
    add_test(NAME emulator.driver.${architecture} COMMAND emulator-driver-test)
    set_tests_properties(emulator.driver.${architecture} PROPERTIES
        LABELS emulated TIMEOUT 60 ENVIRONMENT EMU_ARCH=${architecture})
    add_test(NAME emulator.overlap.${architecture} COMMAND emulator-overlap-test)
    set_tests_properties(emulator.overlap.${architecture} PROPERTIES
        LABELS emulated TIMEOUT 60 ENVIRONMENT "EMU_ARCH=${architecture};EMU_OVERLAP=1;EMU_SM_COUNT=4")
endforeach()
add_subdirectory(silicon)
# The command.
add_test(NAME emulator.command
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test/command.sh" $<TARGET_FILE:ptxrace> $<TARGET_FILE:emulator-runtime-test>
        "${CMAKE_C_COMPILER}" "${CMAKE_CURRENT_BINARY_DIR}/command")
set_tests_properties(emulator.command PROPERTIES LABELS emulated TIMEOUT 120)
add_test(NAME emulator.folders
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test/folders.sh" "${CMAKE_COMMAND}" "${CMAKE_GENERATOR}"
        "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}/folders")
set_tests_properties(emulator.folders PROPERTIES LABELS emulated TIMEOUT 120)
find_program(python3 python3)
if(CUDAToolkit_NVCC_EXECUTABLE AND python3 AND NOT HGEMM_SANITIZE)  # nvcc links no sanitizer
    add_test(NAME emulator.example
        COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test/example.sh" $<TARGET_FILE:ptxrace> "${CUDAToolkit_NVCC_EXECUTABLE}"
            "${python3}" "${CMAKE_CURRENT_SOURCE_DIR}/examples" "${CMAKE_CURRENT_BINARY_DIR}/example")
    set_tests_properties(emulator.example PROPERTIES LABELS emulated TIMEOUT 200)
endif()
# The Python package, which is compiled once more.
if(python3)
    add_test(NAME emulator.wheel
        COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/test/wheel.sh" "${python3}" "${CMAKE_CURRENT_SOURCE_DIR}"
            "${CMAKE_CURRENT_BINARY_DIR}/wheel" "${CUDAToolkit_NVCC_EXECUTABLE}")
    set_tests_properties(emulator.wheel PROPERTIES LABELS "bindings;host" TIMEOUT 900 COST 500 SKIP_RETURN_CODE 77)
endif()
