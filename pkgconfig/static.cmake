# libhgemm.a, one object whose hidden symbols are local: programs see the public functions alone, as in the shared
# library.
set(combined "${PROJECT_BINARY_DIR}/hgemm.o")
add_custom_command(OUTPUT "${combined}"
    COMMAND "${CMAKE_LINKER}" -r --force-group-allocation -o "${combined}" $<TARGET_OBJECTS:hgemm_objects>
    COMMAND "${CMAKE_OBJCOPY}" --localize-hidden "${combined}"
    DEPENDS hgemm_objects $<TARGET_OBJECTS:hgemm_objects>
    COMMENT "Joining the objects of libhgemm.a"
    COMMAND_EXPAND_LISTS
    VERBATIM)
add_library(hgemm STATIC "${combined}")
set_source_files_properties("${combined}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(hgemm PROPERTIES LINKER_LANGUAGE CXX)

# What programs link with it, those in C as well.
set(static_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER static_libraries INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|m)$")
list(REMOVE_DUPLICATES static_libraries)
list(APPEND static_libraries ${CMAKE_DL_LIBS})
target_link_libraries(hgemm INTERFACE Threads::Threads "$<INSTALL_INTERFACE:${static_libraries}>"
    "$<BUILD_INTERFACE:${CMAKE_DL_LIBS}>")
