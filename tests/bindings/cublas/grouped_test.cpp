// cublasGemmGroupedBatchedEx: a call is served whole, by one product for each group, or passed on whole.
#include "placed.hpp"

#include "tests/emulator/driver/control.hpp"

namespace hg::test {
namespace {

using namespace shim;

constexpr int invalid = 7, not_supported = 15;

struct Group {
    Sizes size;  // batch: problems that lie in memory
    int transa = op_n, transb = op_n;
    float alpha = 2, beta = 1;
    int64_t used = 1;  // how many of them the call has
};

// The arguments of one call, which a test may change before it makes the call.
struct Groups {
    Groups(Memory& memory, const std::vector<Group>& groups, int type = r_16f)
        : Groups(memory, groups, type, type)
    {
    }
    Groups(Memory& memory, const std::vector<Group>& groups, int type_ab, int type_d)
        : type_a(type_ab), type_b(type_ab), type_c(type_d)
    {
        for (const Group& g : groups) {
            Operands& o = operands.emplace_back(memory, g.size, g.transa, g.transb, type_ab, type_d);
            o.alpha = g.alpha;
            o.beta = g.beta;
            add(o, g.used);
        }
        a = pointers(memory, &Operands::a);
        b = pointers(memory, &Operands::b);
        c = pointers(memory, &Operands::c);
    }

    // `null`: which of the 14 arrays is none.
    template <typename Int = int>
    int call(void* handle, GemmGroupedBatchedEx<Int>* function = cublasGemmGroupedBatchedEx,
             int null = -1) const
    {
        int at = 0;
        const auto array = [&](auto* list) { return at++ == null ? nullptr : list; };
        std::vector<Int> lists[7];
        const std::vector<int64_t>* const wide[] = {&m, &n, &k, &lda, &ldb, &ldc, &sizes};
        for (size_t i = 0; i < 7; ++i)
            for (const int64_t value : *wide[i])
                lists[i].push_back(static_cast<Int>(value));
        const auto narrow = [&](size_t i) { return array(static_cast<const Int*>(lists[i].data())); };
        return function(handle, array(transa.data()), array(transb.data()), narrow(0), narrow(1), narrow(2),
                        array(alpha.data()), array(a.get<const void*>()), type_a, narrow(3),
                        array(b.get<const void*>()), type_b, narrow(4), array(beta.data()),
                        array(c.get<void*>()), type_c, narrow(5), static_cast<Int>(count), narrow(6),
                        compute);
    }

    // Elements of all C that are not factor * expected(), or that are no longer what they were where the
    // call has no problem.
    int64_t wrong(double factor = 1) const
    {
        int64_t wrong = 0;
        for (size_t i = 0; i < operands.size(); ++i)
            wrong += sizes[i] == 0 ? changed(operands[i]) : operands[i].wrong(factor);
        return wrong;
    }
    int64_t changed() const
    {
        int64_t changed_elements = 0;
        for (const Operands& o : operands)
            changed_elements += changed(o);
        return changed_elements;
    }

    std::vector<Operands> operands;
    std::vector<int> transa, transb;
    std::vector<int64_t> m, n, k, lda, ldb, ldc, sizes;
    std::vector<float> alpha, beta;
    Block a, b, c;
    int type_a, type_b, type_c, compute = compute_32f;
    int64_t count = 0;

private:
    void add(const Operands& o, int64_t used)
    {
        transa.push_back(o.transa);
        transb.push_back(o.transb);
        alpha.push_back(o.alpha);
        beta.push_back(o.beta);
        m.push_back(o.size.m);
        n.push_back(o.size.n);
        k.push_back(o.size.k);
        lda.push_back(o.a.ld());
        ldb.push_back(o.b.ld());
        ldc.push_back(o.c.ld());
        sizes.push_back(used);
        ++count;
    }
    Block pointers(Memory& memory, DeviceMatrix Operands::*matrix) const
    {
        std::vector<const void*> list(1);
        for (size_t i = 0; i < operands.size(); ++i)
            for (int64_t problem = 0; problem < sizes[i]; ++problem)
                list.insert(list.end() - 1, (operands[i].*matrix).ptr(problem));
        Block block(memory, list.size() * sizeof list[0]);
        block.copy_in(list.data());
        return block;
    }
    static int64_t changed(const Operands& o)
    {
        const std::vector<unsigned char> now = o.c.now();
        int64_t changed = 0;
        for (int64_t z = 0; z < o.size.batch; ++z)
            for (int64_t j = 0; j < o.size.n; ++j)
                for (int64_t i = 0; i < o.size.m; ++i)
                    changed += o.c.at(now, z, i, j) != o.c.at(z, i, j);
        return changed;
    }
};

// Few pointers of Operands are multiples of 16 bytes.
const std::vector<Group> all_kinds = {
    {{24, 17, 40, 3}, op_n, op_n, 2, 1, 3},
    {{9, 33, 64, 1}, op_t, op_n, 1, 0},
    {{8, 8, 8, 2}, op_n, op_n, 2, 1, 0},
    {{65, 8, 16, 2}, op_n, op_t, -1, 0.5, 2},
    {{0, 17, 40, 1}},
    {{24, 0, 40, 1}, op_t, op_t},
    {{24, 17, 0, 2}, op_n, op_t, 2, -3, 2},
    {{17, 1, 23, 1}, op_c, op_c, 0.25, -2},
    {{40, 48, 128, 1}, op_t, op_n},
};

template <typename Function>
Function* emulator(const char* name)
{
    return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), name));
}

uint64_t launches() { return emulator<decltype(emu_calls)>("emu_calls")("cuLaunchKernelEx"); }

constexpr const char* name = "cublasGemmGroupedBatchedEx ";

// What a call finds depends on the variables.
class GroupedModes : public Shim {
protected:
    void TearDown() override
    {
        EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "off"), 0);
        EXPECT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "default"), 0);
        EXPECT_EQ(emulator<decltype(emu_set_faults)>("emu_set_faults")(""), 0);
        Shim::TearDown();
    }
};

// Groups that are served.
class GroupedShim : public GroupedModes {
protected:
    void SetUp() override
    {
        GroupedModes::SetUp();
        ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "batch-invariant"), 0);
    }
};

TEST_F(Shim, leaves_groups_to_cublas_unless_it_is_asked)
{
    const Groups groups(*memory_, all_kinds);
    EXPECT_EQ(groups.call(handle_), 0);
    EXPECT_EQ(groups.wrong(), 0);
    EXPECT_EQ(calls(), name);
    EXPECT_EQ(served(), 0u);
    EXPECT_NE(summary().find("groups, of which cuBLAS may be faster"), std::string::npos) << summary();
}

TEST_F(GroupedShim, serves_groups)
{
    for (const int type : {r_16f, r_16bf}) {
        const Groups narrow(*memory_, all_kinds, type), wide(*memory_, all_kinds, type);
        EXPECT_EQ(narrow.call(handle_), 0);
        EXPECT_EQ(narrow.wrong(), 0) << type;
        EXPECT_EQ(wide.call(handle_, cublasGemmGroupedBatchedEx_64), 0);
        EXPECT_EQ(wide.wrong(), 0) << type;
        for (const Group& g : all_kinds) {
            const Groups alone(*memory_, {g}, type);
            EXPECT_EQ(alone.call(handle_), 0);
            EXPECT_EQ(alone.wrong(), 0) << type << " " << g.size.m << " " << g.size.n << " " << g.size.k;
        }
    }
    // Alone, the groups that multiply nothing.
    EXPECT_EQ(calls(), std::string(name) + name + name + name + name + name + name + name);
    EXPECT_EQ(served(), 14u);
    EXPECT_EQ(passed_on(), 8u);
}

// A product launches one kernel or, where its operands are copied first, two.
TEST_F(GroupedShim, launches_nothing_for_groups_that_change_nothing)
{
    const std::vector<Group> three = {{{29, 17, 37, 2}, op_n, op_n, 2, 1, 2},
                                      {{13, 29, 37, 1}, op_n, op_n, 2, 0},
                                      {{29, 29, 0, 1}, op_n, op_n, 2, 3}};
    std::vector<Group> six = three;
    for (const Group& nothing :
         {Group{{29, 29, 0, 1}}, {{29, 0, 37, 1}}, {{29, 17, 37, 1}, op_n, op_n, 2, 1, 0}})
        six.insert(six.begin() + 1, nothing);
    const auto kernels_of = [&](const std::vector<Group>& list) {
        const Groups groups(*memory_, list);
        const uint64_t before = launches();
        EXPECT_EQ(groups.call(handle_), 0);
        EXPECT_EQ(groups.wrong(), 0);
        return launches() - before;
    };
    const uint64_t kernels = kernels_of(three);
    EXPECT_GE(kernels, 3u);
    EXPECT_LE(kernels, 5u);
    EXPECT_EQ(kernels_of(six), kernels);
    EXPECT_EQ(calls(), "");
}

TEST_F(GroupedShim, records_groups_into_a_graph)
{
    CUstream_st* stream = Cuda::get()->create_stream();
    cublasSetStream_v2(handle_, stream);
    const Groups groups(*memory_, all_kinds);
    CUgraphExec_st* graph = Cuda::get()->capture(stream, [&] { EXPECT_EQ(groups.call(handle_), 0); });
    EXPECT_EQ(groups.changed(), 0);
    Cuda::get()->launch(graph, stream);
    Cuda::get()->wait(stream);
    EXPECT_EQ(groups.wrong(), 0);
    EXPECT_EQ(calls(), "");
    Cuda::get()->destroy(graph);
    cublasSetStream_v2(handle_, nullptr);
    Cuda::get()->destroy(stream);
}

TEST_F(Shim, passes_on_groups_of_other_types)
{
    const auto passes = [&](Groups& groups, int status, const char* why) {
        EXPECT_EQ(groups.call(handle_), status) << why;
        EXPECT_EQ(calls(), name) << why;
        EXPECT_NE(summary().find(why), std::string::npos) << summary();
    };
    const std::vector<Group> two = {{{24, 17, 40, 2}, op_n, op_n, 2, 1, 2}, {{9, 33, 64}}};
    Groups halves(*memory_, two), wide(*memory_, two, r_16f, r_32f), single(*memory_, two, r_32f);
    for (const int compute : {compute_16f, 65, 69, 72, compute_32f_fast_16f, compute_32f_fast_tf32, 999}) {
        halves.compute = compute;
        passes(halves, not_supported, "compute or scale type");
    }
    halves.compute = compute_32f;
    passes(wide, not_supported, "element types");
    halves.type_b = r_16bf;
    passes(halves, not_supported, "element types");
    halves.type_b = r_16f;
    cublasSetPointerMode_v2(handle_, pointers_device);
    passes(halves, not_supported, "kind of alpha and beta");
    cublasSetPointerMode_v2(handle_, pointers_host);
    EXPECT_EQ(halves.changed() + wide.changed(), 0);
    passes(single, 0, "element types");
    EXPECT_EQ(single.wrong(), 0);
    ASSERT_EQ(hgemm_shim_set_mode("off"), 0);
    passes(halves, 0, "HGEMM_SHIM=off");
    EXPECT_EQ(halves.wrong(), 0);
    EXPECT_EQ(served(), 0u);
    EXPECT_EQ(passed_on(), 12u);
}

TEST_F(Shim, wrong_groups_get_the_real_status)
{
    const std::vector<Group> two = {{{24, 17, 40}}, {{9, 33, 64}}};
    const Groups right(*memory_, two);
    EXPECT_EQ(right.call(nullptr), 1);
    for (int null = 0; null < 14; ++null)
        EXPECT_EQ(right.call(handle_, cublasGemmGroupedBatchedEx, null), invalid) << null;
    const std::function<void(Groups&)> changes[] = {
        [](Groups& g) { g.count = -1; },    [](Groups& g) { g.m[1] = -1; },
        [](Groups& g) { g.n[1] = -1; },     [](Groups& g) { g.k[1] = -1; },
        [](Groups& g) { g.sizes[1] = -1; }, [](Groups& g) { g.lda[1] = 8; },
        [](Groups& g) { g.ldb[1] = 63; },   [](Groups& g) { g.ldc[1] = 8; },
        [](Groups& g) { g.transa[1] = 3; }, [](Groups& g) { g.transb[1] = -1; }};
    for (const auto& change : changes) {
        Groups wrong(*memory_, two);
        change(wrong);
        EXPECT_EQ(wrong.call(handle_), invalid) << &change - changes;
        EXPECT_EQ(wrong.changed(), 0);
    }
    EXPECT_EQ(served(), 0u);
    EXPECT_EQ(passed_on(), 25u);
    Groups none(*memory_, two);
    none.count = 0;
    EXPECT_EQ(none.call(handle_), 0);
    EXPECT_EQ(passed_on(), 26u);
}

TEST_F(GroupedModes, strict_mode_refuses_half_precision_groups)
{
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "on"), 0);
    const std::vector<Group> two = {{{24, 17, 40}}, {{9, 33, 64}}};
    Groups groups(*memory_, two), single(*memory_, two, r_32f);
    groups.compute = compute_16f;
    EXPECT_EQ(groups.call(handle_), not_supported);
    EXPECT_EQ(calls(), "");
    groups.ldc[1] = 8;  // for cuBLAS to refuse
    EXPECT_EQ(groups.call(handle_), invalid);
    EXPECT_EQ(calls(), name);
    EXPECT_EQ(groups.changed(), 0);
    EXPECT_EQ(single.call(handle_), 0);
    EXPECT_EQ(calls(), name);
    const Groups all(*memory_, all_kinds);
    EXPECT_EQ(all.call(handle_), 0);
    EXPECT_EQ(all.wrong(), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(GroupedModes, tree_mode_serves_groups_whose_k_it_halves)
{
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "tree"), 0);
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "on"), 0);
    const Groups groups(*memory_, {{{24, 17, 40}}, {{9, 33, 512}}, {{9, 33, 1024}}});
    EXPECT_EQ(groups.call(handle_), 0);
    EXPECT_EQ(groups.wrong(), 0);
    EXPECT_EQ(calls(), "");
}

// If the first group had run, cuBLAS would add to it once more. Tree mode does not serve so large a k.
TEST_F(GroupedModes, no_group_runs_if_one_is_refused)
{
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "tree"), 0);
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_STRICT", "on"), 0);
    Groups groups(*memory_, {{{24, 17, 40}}, {{9, 33, 64}}});
    groups.k[1] = groups.ldb[1] = int64_t{1} << 27;
    EXPECT_EQ(groups.call(handle_), not_supported);
    EXPECT_EQ(groups.changed(), 0);
    EXPECT_EQ(calls(), "");
}

TEST_F(GroupedModes, groups_have_the_bits_of_products_alone)
{
    ASSERT_EQ(hgemm_shim_set("HGEMM_SHIM_MODE", "batch-invariant"), 0);
    constexpr int m = 40, k = 2048, tokens[] = {1, 70, 6};
    const Placed w(
        *memory_, HGEMM_BF16, m * k, 1, [](size_t i) { return normal(1, i); }, 1);
    const Placed x(
        *memory_, HGEMM_BF16, 77 * k, 1, [](size_t i) { return normal(2, i); }, 1);
    const auto nothing = [](size_t) { return 0; };
    const Placed alone(*memory_, HGEMM_BF16, 77 * m, 1, nothing, 1),
        grouped(*memory_, HGEMM_BF16, 77 * m, 1, nothing, 1);
    const float one = 1, zero = 0;
    EXPECT_EQ(cublasGemmEx(handle_, op_t, op_n, m, 77, k, &one, w.ptr(), r_16bf, k, x.ptr(), r_16bf, k,
                           &zero, alone.ptr(), r_16bf, m, compute_32f, algo_default),
              0);
    std::vector<const void*> a, b, c;
    for (int i = 0, first = 0; i < 3; first += tokens[i++]) {
        a.push_back(w.ptr());
        b.push_back(x.ptr() + first * k);
        c.push_back(grouped.ptr() + first * m);
    }
    Block la(*memory_, sizeof(void*) * 3), lb(*memory_, sizeof(void*) * 3), lc(*memory_, sizeof(void*) * 3);
    la.copy_in(a.data());
    lb.copy_in(b.data());
    lc.copy_in(c.data());
    const int t[] = {op_t, op_t, op_t}, n[] = {op_n, op_n, op_n}, ms[] = {m, m, m}, ks[] = {k, k, k},
              sizes[] = {1, 1, 1};
    const float ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    EXPECT_EQ(cublasGemmGroupedBatchedEx(handle_, t, n, ms, tokens, ks, ones, la.get<const void*>(), r_16bf,
                                         ks, lb.get<const void*>(), r_16bf, ks, zeros, lc.get<void*>(),
                                         r_16bf, ms, 3, sizes, compute_32f),
              0);
    EXPECT_EQ(grouped.now(), alone.now());
    EXPECT_TRUE(grouped.nothing_else_written());
    EXPECT_EQ(calls(), "");
}

TEST_F(GroupedModes, verify_compares_each_group)
{
    ASSERT_EQ(hgemm_shim_set_mode("verify"), 0);
    const std::vector<Group> two = {
        {{22, 17, 40, 3}, op_n, op_n, 2, 1, 3}, {{9, 0, 8}}, {{9, 31, 64}, op_t, op_n, 1, 0}};
    const Groups same(*memory_, two), other(*memory_, two);
    EXPECT_EQ(same.call(handle_), 0);
    EXPECT_EQ(same.wrong(), 0);
    EXPECT_EQ(calls(), name);
    EXPECT_EQ(served(), 1u);
    const std::string line = "\n  cublasGemmGroupedBatchedEx ",
                      exact = ": 1 compared, largest difference 0.00e+00";
    EXPECT_NE(summary().find(line + "nn 22x17x40 x3 f16 to f16" + exact), std::string::npos) << summary();
    EXPECT_NE(summary().find(line + "tn 9x31x64 f16 to f16" + exact), std::string::npos) << summary();
    fake_set_error(1.5);
    EXPECT_EQ(other.call(handle_), 0);
    EXPECT_EQ(other.wrong(1.5), 0) << "the program does not have cuBLAS's result";
    EXPECT_NE(summary().find(line + "tn 9x31x64 f16 to f16: 2 compared, largest difference 3.33e-01"),
              std::string::npos)
        << summary();
}

// cuBLAS may compute all groups again, but not add to C again.
TEST_F(GroupedShim, says_so_if_a_later_group_cannot_be_launched)
{
    const Groups first(*memory_, {{{29, 17, 37}}});
    const uint64_t before = launches();
    EXPECT_EQ(first.call(handle_), 0);
    const std::string fault =
        "cuLaunchKernelEx:" + std::to_string(launches() - before + 1) + "=LAUNCH_FAILED";
    const auto fail_second_group = [&] {
        EXPECT_EQ(emulator<decltype(emu_set_faults)>("emu_set_faults")(fault.c_str()), 0);
    };
    const Groups again(*memory_, {{{29, 17, 37}, op_n, op_n, 2, 0}, {{29, 29, 37}, op_n, op_n, 2, 0}});
    fail_second_group();
    EXPECT_EQ(again.call(handle_), 0);
    EXPECT_EQ(again.wrong(), 0);
    EXPECT_EQ(calls(), name);
    const Groups adding(*memory_, {{{29, 17, 37}}, {{29, 29, 37}}});
    fail_second_group();
    EXPECT_EQ(adding.call(handle_), status_execution_failed);
    EXPECT_EQ(adding.operands[0].wrong(), 0);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(served(), 1u);
    EXPECT_EQ(passed_on(), 1u);
    EXPECT_NE(summary().find("1: libhgemm failed after it may have added to C"), std::string::npos)
        << summary();
}

}  // namespace
}  // namespace hg::test
