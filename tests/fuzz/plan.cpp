// Target: plans of any product on the device that is there, or on the host. With EMU_ARCH of the virtual
// CUDA driver, and EMU_FAULTS=cuLaunchKernelEx:1+=LAUNCH_FAILED so that nothing runs, kernels' parameters
// are laid out as well.
#include "hgemm.h"
#include "input.hpp"
#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hg::fuzz {
namespace {

constexpr size_t most_text = 1024;

bool launches_fail()
{
    const char* const faults = std::getenv("EMU_FAULTS");
    return faults && std::strstr(faults, "cuLaunchKernelEx:1+=LAUNCH_FAILED");
}

hgemm_handle_t make_handle()
{
    hgemm_handle_t handle = nullptr;
    if (hgemm_create(&handle) != HGEMM_STATUS_SUCCESS)
        wrong("no handle: %s", hgemm_last_error());
    // A test that is to plan on a device must not end on the host.
    const bool on_host = std::strcmp(hgemm_backend(handle), "host") == 0;
    if (std::getenv("EMU_ARCH") && on_host)
        wrong("the virtual device was not found");
    return handle;
}

// Few, usual sizes of layers, powers of two and their neighbours, anything.
int64_t draw_size(Input& input)
{
    constexpr int64_t usual[] = {128,  192,  576,   1024,  1536,  4096,  5120,
                                 7168, 8192, 11008, 14336, 28672, 57344, 128256};
    const int kind = input.byte();
    if (kind < 96)
        return input.byte() % 65;
    if (kind < 160)
        return input.pick(usual);
    if (kind < 192)
        return static_cast<int64_t>(input.bits(2));
    if (kind < 240)
        return std::max<int64_t>((int64_t{1} << input.below(62)) + input.below(3) - 1, 0);
    return static_cast<int64_t>(input.bits(8) >> 1);
}

int64_t draw_ld(Input& input, int64_t length)
{
    const int64_t least = std::clamp<int64_t>(length, 1, INT64_MAX / 2);
    const int kind = input.byte();
    return kind < 160   ? least
           : kind < 224 ? least + input.below(16)
                        : least + static_cast<int64_t>(input.bits(4));
}

// Somewhere; nothing is there.
template <typename Pointer>
void draw_pointer(Input& input, Pointer& pointer, int alignment)
{
    const int kind = input.byte();
    const uintptr_t offset = kind < 160 ? 0 : static_cast<uintptr_t>(kind % 16 * alignment);
    pointer = reinterpret_cast<Pointer>((uintptr_t{1} << 40) + (uintptr_t{input.byte()} << 32) + offset);
}

int width(hgemm_type_t type) { return type == HGEMM_F32 ? 4 : 2; }

void draw_lines(Input& input, hgemm_args_t& g)
{
    const bool column = g.layout == HGEMM_COL_MAJOR;
    const bool a_along_m = column == (g.transa == HGEMM_NO_TRANS),
               b_along_k = column == (g.transb == HGEMM_NO_TRANS);
    g.lda = draw_ld(input, a_along_m ? g.m : g.k);
    g.ldb = draw_ld(input, b_along_k ? g.k : g.n);
    g.ldd = draw_ld(input, column ? g.m : g.n);
    g.ldc = input.one_in(4) ? draw_ld(input, column ? g.m : g.n) : g.ldd;
    if (!input.one_in(4))
        return;
    g.batch_count = input.one_in(4) ? draw_size(input) : 2 + input.below(8);
    for (int64_t* stride : {&g.stride_a, &g.stride_b, &g.stride_c, &g.stride_d})
        *stride = input.one_in(4) ? -input.below(3) * 64 : draw_size(input);
}

void draw_epilogue(Input& input, hgemm_args_t& g)
{
    constexpr hgemm_type_t types[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};
    if (input.one_in(4)) {
        g.bias_mode = static_cast<hgemm_bias_t>(1 + input.below(2));
        g.bias_type = input.pick(types);
        draw_pointer(input, g.bias, width(g.bias_type));
    }
    if (input.one_in(4))
        g.activation = static_cast<hgemm_activation_t>(input.below(5));
    if (input.one_in(8)) {
        draw_pointer(input, g.aux, width(g.type_d));
        g.ldaux = g.ldd;
        g.stride_aux = g.stride_d;
    }
    if (input.one_in(8))
        draw_pointer(input, g.alpha_device, 4);
    if (input.one_in(8))
        draw_pointer(input, g.beta_device, 4);
}

hgemm_args_t draw(Input& input)
{
    constexpr hgemm_layout_t layouts[] = {HGEMM_COL_MAJOR, HGEMM_ROW_MAJOR};
    constexpr hgemm_op_t ops[] = {HGEMM_NO_TRANS, HGEMM_TRANS};
    constexpr hgemm_type_t types[] = {HGEMM_F16, HGEMM_BF16, HGEMM_F32};
    constexpr float scalars[] = {1, 0, -0.5f, 2};
    hgemm_args_t g;
    hgemm_args_init(&g, sizeof g);
    g.layout = input.pick(layouts);
    g.transa = input.pick(ops);
    g.transb = input.pick(ops);
    g.type_ab = types[input.below(2)];
    g.type_d = input.one_in(2) ? input.pick(types) : g.type_ab;
    g.type_c = input.one_in(4) ? input.pick(types) : g.type_d;
    g.m = draw_size(input);
    g.n = draw_size(input);
    g.k = draw_size(input);
    g.alpha = input.pick(scalars);
    g.beta = scalars[(input.byte() + 1) % 4];
    draw_lines(input, g);
    draw_pointer(input, g.a, 2);
    draw_pointer(input, g.b, 2);
    draw_pointer(input, g.c, width(g.type_c));
    draw_pointer(input, g.d, width(g.type_d));
    draw_epilogue(input, g);
    return g;
}

void describe(const hgemm_args_t& g)
{
    note("layout=%d ops=%d,%d types=%d,%d,%d %" PRId64 "x%" PRId64 "x%" PRId64 " x%" PRId64
         " alpha=%g beta=%g lda=%" PRId64 " ldb=%" PRId64 " ldc=%" PRId64 " ldd=%" PRId64
         " strides=%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
         " a=%p b=%p c=%p d=%p bias=%d activation=%d aux=%p",
         g.layout, g.transa, g.transb, g.type_ab, g.type_c, g.type_d, g.m, g.n, g.k, g.batch_count,
         double{g.alpha}, double{g.beta}, g.lda, g.ldb, g.ldc, g.ldd, g.stride_a, g.stride_b, g.stride_c,
         g.stride_d, g.a, g.b, g.c, g.d, g.bias_mode, g.activation, g.aux);
}

// A size, a stride or an overlap that the library refuses is refused whoever asks; so is what no kernel
// takes.
bool is_refusal(hgemm_status_t status)
{
    return status == HGEMM_STATUS_INVALID_ARGUMENT || status == HGEMM_STATUS_NOT_SUPPORTED;
}

void check_status(const char* function, hgemm_status_t status, bool allowed)
{
    if (!allowed)
        wrong("%s answered %s (%s)", function, hgemm_status_string(status), hgemm_last_error());
    if (status != HGEMM_STATUS_SUCCESS && (!*hgemm_last_error() || !is_one_line(hgemm_last_error())))
        wrong("%s: the error is \"%s\"", function, hgemm_last_error());
}

std::string explain(hgemm_handle_t handle, const hgemm_args_t& g)
{
    char text[most_text] = "";
    const hgemm_status_t status = hgemm_explain(handle, &g, text, sizeof text);
    check_status("hgemm_explain", status, status == HGEMM_STATUS_SUCCESS || is_refusal(status));
    if (status == HGEMM_STATUS_SUCCESS && (!*text || !is_one_line(text)))
        wrong("hgemm_explain wrote \"%s\"", text);
    return status == HGEMM_STATUS_SUCCESS ? text : hgemm_status_string(status);
}

void ask(hgemm_handle_t handle, const hgemm_args_t& g)
{
    const std::string line = explain(handle, g);
    if (const std::string again = explain(handle, g); again != line)
        wrong("two plans of one product: %s, %s", line.c_str(), again.c_str());
    size_t bytes = 0;
    const hgemm_status_t status = hgemm_workspace_size(handle, &g, &bytes);
    check_status("hgemm_workspace_size", status, status == HGEMM_STATUS_SUCCESS || is_refusal(status));
    const std::string wanted = " workspace=" + std::to_string(bytes) + " ";
    if (status == HGEMM_STATUS_SUCCESS && line.starts_with("backend=") && line.find(wanted) == line.npos)
        wrong("hgemm_workspace_size says %zu, hgemm_explain %s", bytes, line.c_str());
}

void lay_out(hgemm_handle_t handle, const hgemm_args_t& g)
{
    char plan[64] = "";
    hgemm_explain(handle, &g, plan, sizeof plan);
    const bool empty = std::strncmp(plan, "nothing to compute", 18) == 0;
    const hgemm_status_t status = hgemm_gemm_ex(handle, &g);
    const bool stopped = status == HGEMM_STATUS_LAUNCH_FAILED || status == HGEMM_STATUS_DRIVER_ERROR;
    check_status("hgemm_gemm_ex", status,
                 (empty && status == HGEMM_STATUS_SUCCESS) || (!empty && stopped) || is_refusal(status));
}

void run(Input& input)
{
    static const hgemm_handle_t handle = make_handle();
    static const bool on_host = std::strcmp(hgemm_backend(handle), "host") == 0;
    if (input.one_in(8)) {
        const int count = input.below(200);
        note("hgemm_set_sm_count(%d)", count);
        hgemm_set_sm_count(handle, count);
    }
    const int mode = input.below(8);
    if (!on_host && mode <= HGEMM_MODE_TREE)
        hgemm_set_mode(handle, static_cast<hgemm_mode_t>(mode));
    for (int calls = 0; calls < 4 && !input.empty(); ++calls) {
        const hgemm_args_t g = draw(input);
        describe(g);
        ask(handle, g);
        if (!on_host && launches_fail())
            lay_out(handle, g);
    }
    hgemm_set_sm_count(handle, 0);
    hgemm_set_mode(handle, HGEMM_MODE_DEFAULT);
}

}  // namespace
}  // namespace hg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    hg::fuzz::begin();
    hg::fuzz::Input input(data, size);
    hg::fuzz::run(input);
    return 0;
}
