# Cross build for aarch64 on Debian: its compiler, its arm64 packages unpacked in HGEMM_SYSROOT, and qemu for what is
# built. tests/configurations aarch64 shows how it is used. Compiled kernels are the same on every host.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
find_program(CMAKE_C_COMPILER NAMES aarch64-linux-gnu-gcc-12 aarch64-linux-gnu-gcc REQUIRED)
find_program(CMAKE_CXX_COMPILER NAMES aarch64-linux-gnu-g++-12 aarch64-linux-gnu-g++ REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${HGEMM_SYSROOT}")
# The build machine's would be found.
set(CMAKE_Fortran_COMPILER NOTFOUND)
set(CARGO OFF)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HGEMM_SYSROOT)
set(CMAKE_FIND_ROOT_PATH "${HGEMM_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
