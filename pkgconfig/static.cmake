# libhgemm.a, one object whose only global symbols are the public functions, as in the shared library.
set(combined "${PROJECT_BINARY_DIR}/hgemm.o")
# The linker may be LLVM's, which does not join groups.
function(joins_groups result program)
    execute_process(COMMAND "${program}" --help OUTPUT_VARIABLE help ERROR_QUIET)
    string(FIND "${help}" "--force-group-allocation" found)
    if(found EQUAL -1)
        set(${result} FALSE PARENT_SCOPE)
    endif()
endfunction()
find_program(HGEMM_JOINING_LINKER NAMES "${CMAKE_LINKER}" ld.bfd ld VALIDATOR joins_groups
    DOC "GNU ld, which joins the objects of libhgemm.a")
if(NOT HGEMM_JOINING_LINKER)
    message(FATAL_ERROR "A static library needs GNU ld (--force-group-allocation), which was not found; "
        "HGEMM_JOINING_LINKER may name it")
endif()
mark_as_advanced(HGEMM_JOINING_LINKER)
file(STRINGS src/api/hgemm.map public_functions REGEX "^ +[a-z]+\\*;$")
list(TRANSFORM public_functions REPLACE "^ +([a-z]+\\*);$" "--keep-global-symbol=\\1")
set(objects $<TARGET_OBJECTS:hgemm_objects>)
if(cuda_found)
    list(APPEND objects $<TARGET_OBJECTS:hgemm_image_objects>)
endif()
add_custom_command(OUTPUT "${combined}"
    COMMAND "${HGEMM_JOINING_LINKER}" -r --force-group-allocation -o "${combined}" ${objects}
    COMMAND "${CMAKE_OBJCOPY}" --localize-hidden --wildcard ${public_functions} "${combined}"
    DEPENDS hgemm_objects ${objects} src/api/hgemm.map
    COMMENT "Joining the objects of libhgemm.a"
    COMMAND_EXPAND_LISTS
    VERBATIM)
# Joined objects are in no COMDAT group any more. GCC's unique symbols, which objcopy cannot make local, would then
# be defined twice in a program that uses the same part of the C++ library.
target_compile_options(hgemm_objects PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
add_library(hgemm STATIC "${combined}")
set_source_files_properties("${combined}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(hgemm PROPERTIES LINKER_LANGUAGE CXX)

# What programs link with it, those in C as well. In the same build the compiler of C++ programs adds its own.
set(static_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER static_libraries INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|m)$")
list(REMOVE_DUPLICATES static_libraries)
set(cxx_libraries ${static_libraries})
list(APPEND static_libraries ${CMAKE_DL_LIBS})
target_link_libraries(hgemm INTERFACE Threads::Threads "$<INSTALL_INTERFACE:${static_libraries}>"
    "$<BUILD_INTERFACE:$<$<NOT:$<LINK_LANGUAGE:CXX>>:${cxx_libraries}>>" "$<BUILD_INTERFACE:${CMAKE_DL_LIBS}>")
