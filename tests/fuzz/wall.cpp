// Target: the C API on host handles. Products and what is asked about them.
#include "wall.hpp"

#include "caller.hpp"
#include "report.hpp"

#include <algorithm>
#include <cstring>

namespace hg::fuzz {

using test::Form;

namespace {

Form draw_form(Input& input)
{
    constexpr Form forms[] = {Form::General, Form::Short,   Form::Cblas,   Form::Strided,
                              Form::Batched, Form::General, Form::General, Form::General};
    return input.pick(forms);
}

// C plus nothing is C, every bit of it.
bool keeps_c(const Product& p)
{
    return !p.reads_ab() && !p.g.beta_device && p.g.beta == 1 && !p.separate_c &&
           p.g.bias_mode == HGEMM_BIAS_NONE && p.g.activation == HGEMM_ACTIVATION_NONE && !p.g.aux &&
           p.g.alpha == p.g.alpha && p.g.uplo != HGEMM_BOTH && !p.is_gated();
}

// NaN with contents, and zeros with signs.
void fill_with_bits(Block& block, uint64_t seed)
{
    constexpr uint32_t bits[] = {0x8000, 0x7e01, 0xfe55, 0x0001, 0x3c00, 0x7c00, 0x80000000, 0x7fc12345};
    const Extent& e = block.extent();
    for (int64_t z = 0; z < e.batch; ++z)
        for (int64_t line = 0; line < e.lines; ++line)
            for (int64_t i = 0; i < e.length; ++i)
                block.set_bits(z, line, i,
                               bits[test::hash(seed, static_cast<uint64_t>(line * e.length + i)) % 8]);
    block.remember();
}

}  // namespace

hgemm_status_t call_product(hgemm_handle_t handle, const Product& p)
{
    if (p.form != Form::General)
        return test::call(p.form, handle, p.g);
    const std::vector<unsigned char> copy = p.bytes();
    const auto memory = std::make_unique<unsigned char[]>(copy.size());
    std::memcpy(memory.get(), copy.data(), copy.size());
    return hgemm_gemm_ex(handle, p.is_null ? nullptr : reinterpret_cast<const hgemm_args_t*>(memory.get()));
}

// The same again comes by another way through the library, and must be right again; an array of pointers
// may be another by then.
void Wall::run_again(Live& live, Product& p, const std::vector<double>& c)
{
    const std::string function = test::function_name(p.form, p.g);
    p.d.restore();
    if (p.aux.exists())
        p.aux.restore();
    if (p.is_array() && p.reads_ab() && p.has_memory && input_.one_in(4)) {
        p.a_list[input_.byte() % p.a_list.size()] = nullptr;
        note("again, with a NULL in A's array");
        check_answer(p, judge(p, true), call_product(live.handle, p), function);
        check_untouched(p);
        return;
    }
    note("again");
    expect_status(call_product(live.handle, p), HGEMM_STATUS_SUCCESS, function, 0);
    check_results(p, c);
}

void Wall::accept(Live& live, Product& p, const Verdict& verdict)
{
    const std::string function = test::function_name(p.form, p.g);
    size_t needed = 0;
    if (live.least() != SIZE_MAX) {
        hgemm_args_t general = p.g;
        general.size = sizeof general;
        if (hgemm_workspace_size(live.handle, &general, &needed) != HGEMM_STATUS_SUCCESS &&
            verdict.doubtful.empty())
            wrong("hgemm_workspace_size of a right product: %s", hgemm_last_error());
    }
    const std::vector<double> c = c_before(p);
    hgemm_status_t status;
    {
        const CallerEnvironment environment(input_);
        status = call_product(live.handle, p);
        environment.check();
    }
    if (needed > live.least() && status == HGEMM_STATUS_WORKSPACE_TOO_SMALL) {
        check_error(function, 0, {});
        return check_untouched(p);
    }
    if (needed > live.most())
        wrong("needs %zu bytes of workspace, has %zu, and answered %s", needed, live.most(),
              hgemm_status_string(status));
    if (!check_answer(p, verdict, status, function))
        return check_untouched(p);
    if (!promises_results(p))
        return;
    if (keeps_c(p))
        check_untouched(p);
    else
        check_results(p, c);
    if (input_.one_in(4) && !keeps_c(p))
        run_again(live, p, c);
}

void Wall::multiply()
{
    Live& live = pick_live();
    Product p = draw_product(input_, draw_form(input_));
    note("%s", p.describe().c_str());
    const Verdict verdict = judge(p, true);
    if (verdict.is_right() && !p.has_memory)
        return;
    if (verdict.is_right()) {
        if (keeps_c(p))
            fill_with_bits(p.d, input_.byte());
        return accept(live, p, verdict);
    }
    check_answer(p, verdict, call_product(live.handle, p), test::function_name(p.form, p.g));
    check_untouched(p);
}

void Wall::ask_workspace(Live& live, const Product& p, const Verdict& verdict)
{
    const std::vector<unsigned char> copy = p.bytes();
    const auto* args = p.is_null ? nullptr : reinterpret_cast<const hgemm_args_t*>(copy.data());
    const bool null = input_.one_in(16);
    size_t bytes = 12345;
    const hgemm_status_t status = hgemm_workspace_size(live.handle, args, null ? nullptr : &bytes);
    if (null && verdict.is_right() && verdict.doubtful.empty())
        return expect_status(status, HGEMM_STATUS_INVALID_ARGUMENT, "hgemm_workspace_size", 3);
    if (null)
        return;
    const bool accepted = check_answer(p, verdict, status, "hgemm_workspace_size");
    if (!accepted && bytes != 12345)
        wrong("a refused hgemm_workspace_size wrote %zu", bytes);
    if (accepted && bytes == 12345)
        wrong("hgemm_workspace_size wrote nothing");
}

void Wall::explain(Live& live, const Product& p, const Verdict& verdict)
{
    const std::vector<unsigned char> copy = p.bytes();
    const auto* args = p.is_null ? nullptr : reinterpret_cast<const hgemm_args_t*>(copy.data());
    const size_t length = input_.one_in(4) ? input_.byte() : 1024;
    const auto text = std::make_unique<char[]>(length + 1);
    std::memset(text.get(), 'x', length + 1);
    const bool null = input_.one_in(16);
    const hgemm_status_t status = hgemm_explain(live.handle, args, null ? nullptr : text.get(), length);
    if (null && length > 0 && verdict.is_right() && verdict.doubtful.empty())
        return expect_status(status, HGEMM_STATUS_INVALID_ARGUMENT, "hgemm_explain", 3);
    if (null)
        return;
    const bool accepted = check_answer(p, verdict, status, "hgemm_explain");
    if (text[length] != 'x' || (!accepted && length > 0 && text[0] != 'x'))
        wrong("hgemm_explain wrote where it must not");
    if (accepted && length > 0 && (!std::memchr(text.get(), 0, length) || !is_one_line(text.get())))
        wrong("hgemm_explain wrote no line");
}

// Without a look at what pointers point to, so that any size may be asked about.
void Wall::ask()
{
    Live& live = pick_live();
    const bool workspace = input_.one_in(2);
    const Product p = draw_product(input_, Form::General);
    note("%s of %s", workspace ? "hgemm_workspace_size" : "hgemm_explain", p.describe().c_str());
    const Verdict verdict = judge(p, false);
    if (workspace)
        ask_workspace(live, p, verdict);
    else
        explain(live, p, verdict);
}

void Wall::run()
{
    for (int calls = 0; calls < 12 && !input_.empty(); ++calls)
        switch (input_.below(16)) {
        case 8: ask(); break;
        case 9: multiply_vector(); break;
        case 10: create(); break;
        case 11: destroy(); break;
        case 12: set(); break;
        case 13: use_dead(); break;
        case 14:
            read_texts();
            get();
            break;
        case 15: init_structs(); break;
        default: multiply();
        }
}

}  // namespace hg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    hg::fuzz::begin();
    hg::fuzz::Input input(data, size);
    hg::fuzz::Wall(input).run();
    return 0;
}
