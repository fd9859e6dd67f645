// The list of families.
#include "forms.hpp"
#include "kernel.hpp"
#include "makers.hpp"

#include <string_view>

namespace emu::silicon {
namespace {

template <const std::vector<Form>& (*Forms)()>
Kernel make_forms(Random& random, uint32_t seed)
{
    return form_kernel(random, Forms(), seed, kernels_for(Forms()));
}

template <const std::vector<Form>& (*Forms)()>
Family form_family(const char* name)
{
    return {name, kernels_for(Forms()), make_forms<Forms>};
}

}  // namespace

const std::vector<Family>& families()
{
    static const std::vector<Family> list = {
        form_family<integer_forms>("integer"),
        form_family<bit_forms>("bits"),
        form_family<integer_conversion_forms>("convert_integer"),
        form_family<float_conversion_forms>("convert_float"),
        form_family<single_forms>("single"),
        form_family<double_forms>("double"),
        form_family<half_forms>("half"),
        form_family<compare_forms>("compare"),
        form_family<warp_forms>("warp"),
        {"atomics", 10, make_atomics},
        {"mma", 12, make_mma},
        {"matrix", 12, make_matrix},
        {"wgmma", 60, make_wgmma},
        {"cp_async", 12, make_cp_async},
        {"bulk", 52, make_bulk},
        {"tma_load", 52, make_tma_load},
        {"tma_multicast", 24, make_tma_multicast},
        {"tma_store", 30, make_tma_store},
        {"tma_reduce", 32, make_tma_reduce},
        {"tma_refused", refused_boxes, make_tma_refused},
        {"mbarrier", 12, make_mbarrier},
        {"remote_barrier", 18, make_remote_barrier},
        {"cluster_memory", 12, make_cluster_memory},
        {"control", 24, make_control},
        {"named_barriers", 8, make_named_barriers},
        {"special_registers", 8, make_special_registers},
    };
    return list;
}

Kernel make_kernel(const Family& family, uint32_t seed)
{
    uint64_t mixed = seed;
    for (const char c : std::string_view(family.name))
        mixed = mixed * 1099511628211ull + static_cast<uint8_t>(c);
    Random random(mixed);
    return family.make(random, seed);
}

std::vector<uint8_t> untouched(size_t bytes)
{
    std::vector<uint8_t> pattern(bytes);
    for (size_t i = 0; i < bytes; ++i)
        pattern[i] = static_cast<uint8_t>(0x5a + 7 * i + (i >> 8));
    return pattern;
}

}  // namespace emu::silicon
