# Which kernels are built in: HGEMM_TARGETS names backends, HGEMM_ARCHS the GPUs that they are for. Sets
#   HGEMM_TARGETS  those of which an image is built
#   image_archs    the architectures of these images; ptx stands for GPUs that have none

# What the toolkit can compile; whether the code is fast, compile.sh finds out (NVCC.md).
set(known_archs ${archs_of_sm80})
if(CUDAToolkit_VERSION VERSION_LESS 12.1)  # has no st.async
    list(REMOVE_ITEM known_archs 90)
endif()
if(CUDAToolkit_VERSION VERSION_LESS 12.9)
    list(REMOVE_ITEM known_archs 100 120)
endif()
if(CUDAToolkit_VERSION VERSION_LESS 13.0)
    list(REMOVE_ITEM known_archs 110)
endif()

# The architecture whose images run on GPUs of a compute capability, written without the point. Machine code goes to
# higher minor versions, but not from desktop to Tegra devices or back (CUDA C++ Programming Guide, Binary
# Compatibility).
function(arch_of capability result)
    set(arch ptx)
    if(capability MATCHES "^8[69]$")
        set(arch 80)
    elseif(capability MATCHES "^1([02])[0-9]$")
        set(arch 1${CMAKE_MATCH_1}0)
    elseif(capability IN_LIST known_archs)
        set(arch ${capability})
    endif()
    if(NOT arch IN_LIST known_archs)
        set(arch ptx)
    endif()
    set(${result} ${arch} PARENT_SCOPE)
endfunction()

# The architectures of the GPUs in this machine that the library serves.
function(find_native_archs result)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_QUIET)
    set(archs "")
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${answer}")
    foreach(capability IN LISTS capabilities)
        if(capability VERSION_GREATER_EQUAL 8.0 AND NOT failed)
            string(REPLACE "." "" capability "${capability}")
            arch_of(${capability} arch)
            list(APPEND archs ${arch})
        endif()
    endforeach()
    set(${result} "${archs}" PARENT_SCOPE)
endfunction()

list(JOIN known_targets " " names)
if(NOT HGEMM_TARGETS)
    message(FATAL_ERROR "HGEMM_TARGETS is empty, must name some of ${names}; "
        "for the host backend alone set HGEMM_CUDA=OFF")
endif()
foreach(target IN LISTS HGEMM_TARGETS)
    if(NOT target IN_LIST known_targets)
        message(FATAL_ERROR "HGEMM_TARGETS has '${target}', known: ${names}")
    endif()
endforeach()
# The general path of all others: k = 0, sizes of 2^31 and more, and, of most, what TMA cannot address.
if(NOT "sm80" IN_LIST HGEMM_TARGETS)
    list(PREPEND HGEMM_TARGETS sm80)
endif()

list(JOIN known_archs " " names)
string(APPEND names " (CUDA ${CUDAToolkit_VERSION})")
set(image_archs "")
if(HGEMM_ARCHS STREQUAL "all")
    set(image_archs ${known_archs})
elseif(HGEMM_ARCHS STREQUAL "native")
    find_native_archs(image_archs)
    if(NOT image_archs)
        message(FATAL_ERROR "HGEMM_ARCHS is native, but nvidia-smi finds no GPU of compute capability 8.0 or higher here; "
            "name some of ${names}; for the host backend alone set HGEMM_CUDA=OFF")
    endif()
elseif(NOT HGEMM_ARCHS)
    message(FATAL_ERROR "HGEMM_ARCHS is empty, must be all, native or some of ${names}; "
        "for the host backend alone set HGEMM_CUDA=OFF")
else()
    foreach(named IN LISTS HGEMM_ARCHS)
        arch_of("${named}" arch)
        if(arch STREQUAL "ptx" AND NOT named STREQUAL "ptx")
            message(FATAL_ERROR "HGEMM_ARCHS has '${named}', must be all, native or some of ${names}")
        endif()
        list(APPEND image_archs ${arch})
    endforeach()
endif()
list(REMOVE_DUPLICATES image_archs)

foreach(target IN LISTS HGEMM_TARGETS)
    set(archs ${archs_of_${target}})
    list(REMOVE_ITEM archs ${image_archs})
    if(archs STREQUAL "${archs_of_${target}}")
        list(REMOVE_ITEM HGEMM_TARGETS ${target})
    endif()
endforeach()
