# The library's device tests on emulated devices.

# Are there images of this architecture, its backend, and that which the test is named after?
function(has_kernels architecture name result)
    string(REPLACE "_" "" own ${architecture})
    string(REGEX REPLACE "^sm8[0-9]$" "sm80" own ${own})
    string(REGEX REPLACE "^sm1([012])[0-9]$" "sm1\\10" own ${own})
    string(REPLACE "sm110" "sm100" own ${own})
    set(${result} TRUE PARENT_SCOPE)
    keep_built_in(kept ${architecture})
    if(NOT kept)
        set(${result} FALSE PARENT_SCOPE)
    endif()
    foreach(backend ${own} ${name})
        if(backend MATCHES "^sm[0-9]+$" AND NOT backend IN_LIST HGEMM_TARGETS)
            set(${result} FALSE PARENT_SCOPE)
        endif()
    endforeach()
endfunction()

# COST: the longest tests, here and elsewhere, begin first, so that no processor waits for another in the end. The time
# limit is for what hangs: one takes up to three minutes of a processor's time, beside other work ten times as long.
set(longest_test 1800)

# The unmodified library and device tests on emulated devices, one case in `thinning`; a report that is not harmless
# fails the launch, and a test that finds no device or no backend fails instead of being skipped. More arguments are
# added to the environment.
function(emulated_conformance architecture name thinning filter)
    has_kernels(${architecture} ${name} has)
    if(NOT has)
        return()
    endif()
    add_test(NAME emulated.${architecture}.${name}
        COMMAND hgemm-device-conformance "--gtest_filter=${filter}")
    set_tests_properties(emulated.${architecture}.${name} PROPERTIES
        LABELS emulated
        TIMEOUT ${longest_test}
        COST 10
        FAIL_REGULAR_EXPRESSION "no CUDA driver|built without|Running 0 tests|PASSED  . 0 tests"
        ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/lib;EMU_ARCH=${architecture};EMU_STRICT=1;EMU_DEPENDENT=1;HGEMM_TEST_THINNING=${thinning};${ARGN}")
endfunction()

# Kernels on small problems under `count` other schedules than the one of emulated_conformance, a test each; of sm90
# half of them, of all kinds that wait for barriers. It has clusters of eight, and needs as many multiprocessors.
function(emulated_seeds architecture count thinning)
    foreach(seed RANGE 1 ${count})
        emulated_conformance(${architecture} seeds.${seed} ${thinning}
            "DeviceKernels.each_one_forced:*_long_sums:*_random_data:*_batches" EMU_SEED=${seed} ${ARGN})
    endforeach()
endfunction()

# One cluster at a time: whoever waits for a cluster that has not started waits for ever. In ascending order those of
# higher numbers have not, in descending order those of lower numbers.
function(emulated_progress architecture name thinning filter)
    foreach(order ascending descending)
        emulated_conformance(${architecture} progress.${name}.${order} ${thinning} "${filter}"
            EMU_FREE_SMS=1 EMU_START=${order} ${ARGN})
    endforeach()
endfunction()

# A driver that does not start is not one that is absent.
add_executable(create-handle create_handle.c)
target_link_libraries(create-handle PRIVATE hgemm::hgemm)
function(emulated_create name faults answer)
    add_test(NAME emulated.create.${name} COMMAND create-handle)
    set_tests_properties(emulated.create.${name} PROPERTIES
        LABELS emulated
        PASS_REGULAR_EXPRESSION "${answer}"
        ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/lib;EMU_FAULTS=${faults}")
endfunction()
emulated_create(no_device cuInit:1=NO_DEVICE "HGEMM_STATUS_SUCCESS: host")
emulated_create(not_ready cuInit:1=SYSTEM_NOT_READY "HGEMM_STATUS_DRIVER_ERROR: hgemm_create: cuInit answered 802")
emulated_create(not_initialised cuDeviceGetCount:1+=NOT_INITIALIZED "HGEMM_STATUS_DRIVER_ERROR: hgemm_create: cuDeviceGetCount answered 3")

if(HGEMM_EMBED_PTX)
    # Fewer products where a device runs the kernels of another backend than its own.
    emulated_conformance(sm_80 sm80 12 "DeviceConformance.holds/sm80_*:-*freivalds")
    # Their shared memory, and their own images or PTX.
    foreach(architecture sm_86 sm_87 sm_89 sm_121)
        emulated_conformance(${architecture} sm80 120 "DeviceConformance.holds/sm80_*:-*freivalds")
    endforeach()
    emulated_conformance(sm_121 sm120 60 "DeviceConformance.holds/sm120_*:-*freivalds")
    emulated_conformance(sm_80 kernels 60 "DeviceKernels.agree*:DeviceKernels.each_one*")
    emulated_conformance(sm_80 splits 200 "DeviceKernels.each_split*" EMU_SM_COUNT=8 EMU_CHECK=3)
    emulated_conformance(sm_90 sm90 12 "DeviceConformance.holds/sm90_*:-*freivalds")
    emulated_conformance(sm_90 sm80 80 "DeviceConformance.holds/sm80_*:-*freivalds")
    emulated_conformance(sm_120 sm120 12 "DeviceConformance.holds/sm120_*:-*freivalds")
    emulated_conformance(sm_120 sm80 80 "DeviceConformance.holds/sm80_*:-*freivalds")
    emulated_conformance(sm_90 sm120 80 "DeviceConformance.holds/sm120_*:-*freivalds")
    emulated_conformance(sm_90 agreement 200 "DeviceKernels.agree*:DeviceKernels.each_one_streamed:DeviceKernels.each_one_handed*" EMU_SM_COUNT=8)
    emulated_conformance(sm_90 kernels 160 "DeviceKernels.each_one*:-*streamed:*handed*" EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=sm90)
    emulated_conformance(sm_90 splits 200 "DeviceKernels.each_split*" EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=split)
    # Those of tile N 1 to 4 have many tiles where products have more rows.
    emulated_conformance(sm_90 direct_splits 400 "DeviceKernels.each_split*" EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=sm90_direct,sm90_gemv)
    # Slices anywhere on the device, up to sixteen: as many SMs, and races in global memory.
    emulated_conformance(sm_90 slices 60 "DeviceKernels.each_split*:DeviceKernels.many_slices" EMU_SM_COUNT=64 EMU_CHECK=3
        HGEMM_TEST_KERNELS=splitk_global)
    # Remapped clusters want all SMs of an H200.
    emulated_conformance(sm_90 alone 20 "DeviceKernels.alone" EMU_SM_COUNT=132)
    # Kernels of two graphs in turns, as a GPU runs them.
    emulated_conformance(sm_90 graphs 2 "DeviceGraphs.run_beside_each_other/*:DeviceGraphs.leave*" EMU_OVERLAP=1)
    emulated_conformance(sm_90 exchange 2 "DeviceExchange.*/sm90" EMU_OVERLAP=1 EMU_SM_COUNT=8)
    # Each backend on a device of its own. Groups of sm100 are those of sm80.
    foreach(backend IN LISTS known_targets)
        string(REPLACE sm sm_ architecture ${backend})
        set(rules gemv workspace sm_count tree exchange blocks experts* grouped*)
        if(backend STREQUAL sm100)
            list(REMOVE_ITEM rules grouped*)
        endif()
        list(TRANSFORM rules REPLACE "(.+)" "DeviceRules.\\1/${backend}")
        list(JOIN rules ":" rules)
        emulated_conformance(${architecture} rules 2 "${rules}")
        emulated_conformance(${architecture} streams 2 "DeviceStreams.*/${backend}:DeviceGraphs.*/${backend}:DeviceExperts.graphs/${backend}")
    endforeach()
    # What a kernel stores to other places than a product's, and what runs as several products.
    emulated_conformance(sm_90 outputs 4
        "DeviceKernels.triangle:DeviceKernels.gated*:DeviceRules.triangle/sm90:DeviceRules.gate_*/sm90:-*by_sm80" EMU_SM_COUNT=8)
    emulated_conformance(sm_90 leaves 4 "DeviceKernels.tree" EMU_SM_COUNT=8)
    emulated_conformance(sm_90 branches 4 "DeviceKernels.tree_branches*" EMU_SM_COUNT=8)
    emulated_conformance(sm_80 outputs 4
        "DeviceKernels.gated_by_sm80:DeviceRules.triangle/sm80:DeviceRules.gate_*/sm80" EMU_SM_COUNT=8)
    emulated_conformance(sm_90 groups 6 "DeviceGroups*:DeviceKGroups*")
    emulated_conformance(sm_80 groups 4 "DeviceGroups*:DeviceKGroups*")
    emulated_conformance(sm_100 groups 1 "DeviceGroupsOf*:DeviceKGroupsOf*")
    emulated_conformance(sm_120 groups 1 "DeviceKGroupsOf*")
    emulated_conformance(sm_120 agreement 20 "DeviceKernels.agree*")
    emulated_conformance(sm_120 kernels 20 "DeviceKernels.each_one*" HGEMM_TEST_KERNELS=sm120)
    emulated_conformance(sm_100 sm100 12 "DeviceConformance.holds/sm100_*:-*freivalds")
    emulated_conformance(sm_100 sm80 80 "DeviceConformance.holds/sm80_*:-*freivalds")
    emulated_conformance(sm_100 agreement 40 "DeviceKernels.agree*")
    emulated_conformance(sm_100 kernels 40 "DeviceKernels.each_one*" HGEMM_TEST_KERNELS=sm100)
    # More slices of k than SMs; fewer SMs than tiles.
    emulated_conformance(sm_100 splits 50 "DeviceKernels.each_split*" EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=sm100)
    emulated_conformance(sm_100 persistent 60 "DeviceKernels.each_one*" EMU_SM_COUNT=2 HGEMM_TEST_KERNELS=sm100)
    # Clusters with fewer tiles than CTAs, CTAs with several.
    emulated_conformance(sm_100 tiles 2 "DeviceKernels.numbers_of_tiles")
    emulated_conformance(sm_120 tiles 1 "DeviceKernels.numbers_of_tiles" HGEMM_TEST_KERNELS=sm120)
    emulated_conformance(sm_100 freivalds 2 "DeviceConformance.holds/sm100_freivalds" EMU_ARITHMETIC=fast)
    if(TEST emulated.sm_100.freivalds)
        set_property(TEST emulated.sm_100.freivalds APPEND PROPERTY FAIL_REGULAR_EXPRESSION "cases 0,")
    endif()
    # What measures is the same code for all backends.
    emulated_conformance(sm_90 tuning 1 "DeviceTuning.*:DeviceTune.*" EMU_SM_COUNT=16)
    foreach(architecture sm_80 sm_100 sm_120)
        emulated_conformance(${architecture} tuning 1 "DeviceTuning.*:DeviceTune.keeps_*:DeviceTune.serves_groups" EMU_SM_COUNT=16)
    endforeach()
    # Relatives, with an image's machine code or, where none is for them, PTX alone; Orin with its multiprocessors.
    foreach(architecture sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_100 sm_103 sm_107 sm_110 sm_120 sm_121)
        emulated_conformance(${architecture} image 1 "DeviceImages.*" EMU_SM_COUNT=16 EMU_MACHINE_CODE=1)
    endforeach()
    foreach(architecture sm_80 sm_90 sm_100 sm_120)
        emulated_conformance(${architecture} green 1 "DeviceGreen.*" EMU_SM_COUNT=16 EMU_DEVICES=2)
    endforeach()
    emulated_progress(sm_90 slices 60 "DeviceKernels.each_split*:DeviceKernels.many_slices" EMU_SM_COUNT=64
        HGEMM_TEST_KERNELS=splitk_global_64x64,splitk_global_128x80_1x2)
    emulated_progress(sm_90 splits 200 "DeviceKernels.each_split*" EMU_SM_COUNT=8
        HGEMM_TEST_KERNELS=splitk_128x64_1x2,splitk_64x64_occ2,splitk_64x8_occ2,direct_32x8,gemv_64x1)
    emulated_progress(sm_90 tiles 200 "DeviceKernels.each_one_streamed:DeviceKernels.each_one_handed*" EMU_SM_COUNT=8
        HGEMM_TEST_KERNELS=pingpong_128x128_2x1,pingpong_64x256,coop_128x208_2x1)
    emulated_progress(sm_80 splits 200 "DeviceKernels.each_split*" EMU_SM_COUNT=8
        HGEMM_TEST_KERNELS=sm80_64x64x64_s4,sm80_16x64x64,sm80_unaligned_64x64x64)
    emulated_progress(sm_100 sm100 60 "DeviceKernels.each_one_forced:DeviceKernels.each_split*:DeviceKernels.numbers_of_tiles"
        EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=sm100_2cta_256x128,sm100_128x64,static,sm100_splitk_128x32)
    emulated_progress(sm_120 sm120 60 "DeviceKernels.each_one_forced" EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=sm120)
    emulated_progress(sm_80 groups 8 "DeviceGroups.*:DeviceGroupsOf.graph*" EMU_SM_COUNT=8)
    emulated_progress(sm_90 groups 8 "DeviceGroups.each_kernel_handed_out:DeviceGroupsOf.graph*/sm90:DeviceKGroupsOf.graph*/sm90"
        EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=sm90_grouped_128x128_1x2)
    emulated_seeds(sm_80 1 300)
    emulated_seeds(sm_90 1 150 EMU_SM_COUNT=8 HGEMM_TEST_KERNELS=coop,pingpong,splitk_192x1,splitk_128x1,splitk_64x6,splitk_global)
    emulated_seeds(sm_100 2 150 HGEMM_TEST_KERNELS=sm100)
    emulated_seeds(sm_120 1 150 HGEMM_TEST_KERNELS=sm120)
endif()
