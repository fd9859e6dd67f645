# Run by CPack on the files that it has laid out.
file(GLOB_RECURSE libraries "${CPACK_TEMPORARY_DIRECTORY}/*.so" "${CPACK_TEMPORARY_DIRECTORY}/*.so.*")
file(GLOB_RECURSE programs "${CPACK_TEMPORARY_DIRECTORY}/*/usr/bin/*")
foreach(file IN LISTS libraries programs)
    if(NOT IS_SYMLINK "${file}")
        file(RPATH_REMOVE FILE "${file}")
    endif()
endforeach()
