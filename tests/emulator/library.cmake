# What knows libhgemm: its kernels and its handles on the emulator.
# The library on a driver that fails.
driver_test(emulator-faults-test test/faults_test.cpp)
# Products in graphs that overlap.
driver_test(emulator-products-test test/overlap_products_test.cpp)
foreach(name emulator-faults-test emulator-products-test)
    target_link_libraries(${name} PRIVATE hgemm::hgemm)
endforeach()
if(HGEMM_EMBED_PTX)
    if(has_all_targets AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.9)
        add_subdirectory(mutation)
    endif()
    keep_built_in(architectures sm_80 sm_90 sm_100)
    foreach(architecture IN LISTS architectures)
        # A handle takes the emulator four times as long on sm_90, and makes the same calls.
        if(NOT architecture STREQUAL "sm_90")
            add_test(NAME emulator.faults.${architecture} COMMAND emulator-faults-test)
            set_tests_properties(emulator.faults.${architecture} PROPERTIES
                LABELS emulated TIMEOUT 900 COST 20 ENVIRONMENT EMU_ARCH=${architecture})
        endif()
        add_test(NAME emulator.products.${architecture} COMMAND emulator-products-test)
        set_tests_properties(emulator.products.${architecture} PROPERTIES LABELS emulated TIMEOUT 300
            ENVIRONMENT "EMU_ARCH=${architecture};EMU_OVERLAP=1;EMU_SM_COUNT=8;EMU_ARITHMETIC=fast;HGEMM_TUNING=off")
    endforeach()
endif()

include(emulated.cmake)
