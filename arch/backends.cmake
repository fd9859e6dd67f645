# From backends.def:
#   known_targets    the backends for GPUs
#   archs_of_<name>  the architectures of a backend's images
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS arch/backends.def)
file(STRINGS arch/backends.def lines REGEX "^BACKEND")
set(known_targets "")
foreach(line IN LISTS lines)
    if(NOT line MATCHES "^BACKEND\\(([a-z0-9]+), \"[0-9 ]+\", \"([0-9a-z ]+)\"\\)$")
        message(FATAL_ERROR "arch/backends.def: ${line}")
    endif()
    list(APPEND known_targets ${CMAKE_MATCH_1})
    string(REPLACE " " ";" archs_of_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()
list(SORT known_targets COMPARE NATURAL)
