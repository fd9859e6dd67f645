// Wrong calls of cublasLtMatmul.
#include "wrong_calls_parts.hpp"

namespace hg::test {
namespace {

using namespace shim;

constexpr float one = 1, zero = 0;

// What cublasLtMatmul is called with; `call` is what its descriptors are to say.
struct Setting {
    LtCall call;
    void* handle;
    bool no_desc = false, no_layout_a = false, no_layout_c = false, no_layout_d = false;
    const LtAlgorithm* algorithm = nullptr;
    void* workspace = nullptr;
    size_t workspace_bytes = 0;
};

LtMatrix matrix(uint64_t rows, uint64_t columns)
{
    LtMatrix x;
    x.type = r_16f;
    x.order = order_col;
    x.rows = rows;
    x.columns = columns;
    x.ld = static_cast<int64_t>(rows);
    return x;
}

Setting right_call(const Given& given)
{
    Setting s{};
    LtCall& call = s.call;
    call = {};
    call.compute = compute_32f;
    call.scale_type = r_32f;
    call.pointer_mode = pointers_host;
    call.transa = call.transb = op_n;
    call.epilogue = epilogue_default;
    call.a = matrix(32, 40);
    call.b = matrix(40, 16);
    call.c = call.d = matrix(32, 16);
    call.alpha = call.beta = &one;
    call.a_data = given.operand(0);
    call.b_data = given.operand(1);
    call.c_data = given.operand(2);
    call.d_data = given.operand(3);
    s.handle = given.handle;
    return s;
}

class Descriptors {
public:
    Descriptors(const Given& given, const LtCall& call) : given_(given)
    {
        given.make_desc(&desc, call.compute, call.scale_type);
        set(desc_pointer_mode, call.pointer_mode);
        set(desc_transa, call.transa);
        set(desc_transb, call.transb);
        set(desc_transc, call.transc);
        set(desc_epilogue, call.epilogue);
        if (call.bias)
            set(desc_bias_pointer, call.bias);
        if (call.bias_type != -1)
            set(desc_bias_data_type, call.bias_type);
        const LtMatrix* const matrices[] = {&call.a, &call.b, &call.c, &call.d};
        for (int i = 0; i < 4; ++i)
            make_layout(*matrices[i], layouts[i]);
    }
    ~Descriptors()
    {
        for (void* layout : layouts)
            given_.free_layout(layout);
        given_.free_desc(desc);
    }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

    void* desc = nullptr;
    void* layouts[4] = {};

private:
    template <typename T>
    void set(int attribute, T value) const
    {
        given_.set_desc(desc, attribute, &value, sizeof value);
    }
    void make_layout(const LtMatrix& x, void*& layout) const
    {
        given_.make_layout(&layout, x.type, x.rows, x.columns, x.ld);
        given_.set_layout(layout, layout_order, &x.order, sizeof x.order);
        given_.set_layout(layout, layout_batch_count, &x.batch, sizeof x.batch);
        given_.set_layout(layout, layout_batch_stride, &x.stride, sizeof x.stride);
    }

    const Given& given_;
};

struct Change {
    const char* name;
    bool is_right;
    void (*apply)(Setting&);
};

constexpr LtAlgorithm zeros{};

constexpr Change changes[] = {
    {"right", true, [](Setting&) {}},
    {"right with ReLU", true, [](Setting& s) { s.call.epilogue = epilogue_relu; }},
    {"handle null", false, [](Setting& s) { s.handle = nullptr; }},
    {"desc null", false, [](Setting& s) { s.no_desc = true; }},
    {"layout of A null", false, [](Setting& s) { s.no_layout_a = true; }},
    {"layout of D null", false, [](Setting& s) { s.no_layout_d = true; }},
    {"alpha null", false, [](Setting& s) { s.call.alpha = nullptr; }},
    {"beta null", false, [](Setting& s) { s.call.beta = nullptr; }},
    {"A null", false, [](Setting& s) { s.call.a_data = nullptr; }},
    {"B null", false, [](Setting& s) { s.call.b_data = nullptr; }},
    {"C null", false, [](Setting& s) { s.call.c_data = nullptr; }},
    {"D null", false, [](Setting& s) { s.call.d_data = nullptr; }},
    {"C null and beta 0", true,
     [](Setting& s) {
         s.call.c_data = nullptr;
         s.call.beta = &zero;
     }},
    {"C and its layout null and beta 0", true,
     [](Setting& s) {
         s.call.c_data = nullptr;
         s.call.beta = &zero;
         s.no_layout_c = true;
     }},
    {"layout of C null", false, [](Setting& s) { s.no_layout_c = true; }},
    {"A at an odd address", false,
     [](Setting& s) { s.call.a_data = static_cast<const char*>(s.call.a_data) + 1; }},
    {"k of A and B differ", false, [](Setting& s) { s.call.a.columns = 39; }},
    {"rows of C and D differ", false, [](Setting& s) { s.call.c.rows = 31; }},
    {"columns of D and B differ", false, [](Setting& s) { s.call.c.columns = s.call.d.columns = 15; }},
    {"no rows", false, [](Setting& s) { s.call.a.rows = s.call.c.rows = s.call.d.rows = 0; }},
    {"lda 31", false, [](Setting& s) { s.call.a.ld = 31; }},
    {"ldd 31", false, [](Setting& s) { s.call.d.ld = 31; }},
    {"ldb -40", false, [](Setting& s) { s.call.b.ld = -40; }},
    {"batch counts differ", false, [](Setting& s) { s.call.a.batch = 2; }},
    {"batch 0", false,
     [](Setting& s) { s.call.a.batch = s.call.b.batch = s.call.c.batch = s.call.d.batch = 0; }},
    {"transa c", false,
     [](Setting& s) {
         s.call.transa = op_c;
         s.call.a = matrix(40, 32);
     }},
    {"transb 9", false, [](Setting& s) { s.call.transb = 9; }},
    {"transc t", false, [](Setting& s) { s.call.transc = op_t; }},
    {"A bf16", false, [](Setting& s) { s.call.a.type = r_16bf; }},
    {"D bf16", false, [](Setting& s) { s.call.c.type = s.call.d.type = r_16bf; }},
    {"C f32 and D f16", false, [](Setting& s) { s.call.c.type = r_32f; }},
    {"compute fast f16", false, [](Setting& s) { s.call.compute = compute_32f_fast_16f; }},
    {"compute fast bf16", false, [](Setting& s) { s.call.compute = compute_32f_fast_16bf; }},
    {"compute fast tf32", false, [](Setting& s) { s.call.compute = compute_32f_fast_tf32; }},
    {"compute type 999", false, [](Setting& s) { s.call.compute = 999; }},
    {"scale type f16", false, [](Setting& s) { s.call.scale_type = r_16f; }},
    {"pointer mode 9", false, [](Setting& s) { s.call.pointer_mode = 9; }},
    {"epilogue 0", false, [](Setting& s) { s.call.epilogue = 0; }},
    {"epilogue 3", false, [](Setting& s) { s.call.epilogue = 3; }},
    {"epilogue 4096", false, [](Setting& s) { s.call.epilogue = 4096; }},
    {"bias null", false, [](Setting& s) { s.call.epilogue = epilogue_bias; }},
    {"bias f32", false,
     [](Setting& s) {
         s.call.epilogue = epilogue_bias;
         s.call.bias = s.call.c_data;
         s.call.bias_type = r_32f;
     }},
    {"A in row order", false,
     [](Setting& s) {
         s.call.a.order = order_row;
         s.call.a.ld = 40;
     }},
    {"all in row order", false,
     [](Setting& s) {
         for (LtMatrix* x : {&s.call.a, &s.call.b, &s.call.c, &s.call.d}) {
             x->order = order_row;
             x->ld = static_cast<int64_t>(x->columns);
         }
     }},
    {"A in tiles", false, [](Setting& s) { s.call.a.order = 2; }},
    {"order 77", false, [](Setting& s) { s.call.b.order = 77; }},
    {"D is C with another ld", false,
     [](Setting& s) {
         s.call.d_data = const_cast<void*>(s.call.c_data);
         s.call.d.ld = 40;
     }},
    {"algorithm of zeros", false, [](Setting& s) { s.algorithm = &zeros; }},
    {"workspace null of 1024 bytes", false, [](Setting& s) { s.workspace_bytes = 1024; }},
    {"workspace at an odd address", false,
     [](Setting& s) {
         s.workspace = static_cast<char*>(s.call.d_data) + Given::part / 2 + 1;
         s.workspace_bytes = 1024;
     }},
    {"workspace aligned to 4 bytes", false,
     [](Setting& s) {
         s.workspace = static_cast<char*>(s.call.d_data) + Given::part / 2 + 4;
         s.workspace_bytes = 1024;
     }},
};

int call(const Change& change, const Products& products, const Given& given)
{
    Setting s = right_call(given);
    change.apply(s);
    const LtCall& c = s.call;
    const Descriptors d(given, c);
    return products.cublasLtMatmul(
        s.handle, s.no_desc ? nullptr : d.desc, c.alpha, c.a_data, s.no_layout_a ? nullptr : d.layouts[0],
        c.b_data, d.layouts[1], c.beta, c.c_data, s.no_layout_c ? nullptr : d.layouts[2], c.d_data,
        s.no_layout_d ? nullptr : d.layouts[3], s.algorithm, s.workspace, s.workspace_bytes, nullptr);
}

}  // namespace

void add_lt_calls(std::vector<WrongCall>& calls)
{
    for (const Change& change : changes)
        calls.push_back(
            {"cublasLtMatmul", change.name, change.is_right,
             [&change](const Products& p, const Given& given) { return call(change, p, given); }});
}

}  // namespace hg::test
