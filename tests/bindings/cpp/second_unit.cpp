// The header a second time in one program.
#include "hgemm.hpp"

#include "hgemm.hpp"

libhgemm::Result<libhgemm::Handle> make_in_another_unit();
libhgemm::Result<libhgemm::Handle> make_in_another_unit() { return libhgemm::Handle::create_on(-1); }
