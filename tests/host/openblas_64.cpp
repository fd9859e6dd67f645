// Stands in for an OpenBLAS with 64-bit integers.
#include <cstdlib>

extern "C" const char* openblas_get_config()
{
    return "OpenBLAS 0.3.21 USE64BITINT DYNAMIC_ARCH NO_AFFINITY";
}
extern "C" void cblas_sgemm() { std::abort(); }
