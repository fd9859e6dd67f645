#include "buffer.hpp"
#include "library_rules.hpp"
#include "reference.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hg::test {
namespace {

constexpr int64_t rows[] = {3, 0, 70, 1, 16}, groups = 5, n = 40, k = 50, capacity = 70;

// Groups of all three kinds over the same data: fp16 integers, fp32 results.
class Groups {
public:
    Groups(Memory& memory, hgemm_grouping_t grouping);
    hgemm_status_t run(Library& library);
    void expect_right();

private:
    // Contiguous groups are one matrix; the others have room for `capacity` rows each.
    bool contiguous() const { return grouping_ == HGEMM_GROUPED_CONTIGUOUS; }
    int64_t matrix(int64_t group) const { return contiguous() ? 0 : group; }
    int64_t first_row(int64_t group) const
    {
        return contiguous() ? offsets_[static_cast<size_t>(group)] : 0;
    }
    std::vector<hgemm_args_t> problems() const;

    hgemm_grouping_t grouping_;
    std::vector<int64_t> offsets_ = {0}, counts_;
    Buffer a_, b_, d_;
    Block sizes_;
};

Groups::Groups(Memory& memory, hgemm_grouping_t grouping)
    : grouping_(grouping), counts_(rows, rows + groups)
{
    for (const int64_t count : rows)
        offsets_.push_back(offsets_.back() + count);
    const int64_t matrices = contiguous() ? 1 : groups, lines = contiguous() ? offsets_.back() : capacity;
    a_ = Buffer(memory, HGEMM_F16, {lines, k, k + 5, matrices, capacity * (k + 5)}, 1, Guard::Pads);
    b_ = Buffer(memory, HGEMM_F16, {n, k, k, groups, n * k + 3}, 2, Guard::Pads);
    d_ = Buffer(memory, HGEMM_F32, {lines, n, n + 1, matrices, capacity * (n + 1)}, 3, Guard::Pads);
    Random random(32);
    for (Buffer* buffer : {&a_, &b_})
        for (int64_t z = 0; z < buffer->extent().batch; ++z)
            for (int64_t i = 0; i < buffer->extent().lines; ++i)
                for (int64_t j = 0; j < k; ++j)
                    buffer->set(z, i, j, static_cast<double>(random.below(5) - 2));
    for (Buffer* buffer : {&a_, &b_, &d_})
        buffer->upload();
    const std::vector<int64_t>& sizes = contiguous() ? offsets_ : counts_;
    sizes_ = Block(memory, sizes.size() * sizeof(int64_t), Guard::Fence);
    sizes_.copy_in(sizes.data());
}

std::vector<hgemm_args_t> Groups::problems() const
{
    std::vector<hgemm_args_t> list(groups);
    for (int64_t z = 0; z < groups; ++z) {
        hgemm_args_t& p = list[static_cast<size_t>(z)];
        hgemm_args_init(&p, sizeof p);
        p.layout = HGEMM_ROW_MAJOR;
        p.transb = HGEMM_TRANS;
        p.type_c = p.type_d = HGEMM_F32;
        p.m = rows[z];
        p.n = n;
        p.k = k;
        p.a = a_.ptr(matrix(z));
        p.b = b_.ptr(z);
        p.c = p.d = d_.ptr(matrix(z));
        p.lda = a_.extent().ld;
        p.ldb = b_.extent().ld;
        p.ldc = p.ldd = d_.extent().ld;
    }
    return list;
}

hgemm_status_t Groups::run(Library& library)
{
    const std::vector<hgemm_args_t> list = problems();
    hgemm_grouped_args_t args;
    hgemm_grouped_args_init(&args, sizeof args);
    args.grouping = grouping_;
    args.type_d = HGEMM_F32;
    args.group_count = groups;
    args.m = a_.extent().lines;
    args.n = n;
    args.k = k;
    args.a = a_.ptr();
    args.lda = a_.extent().ld;
    args.stride_a = a_.extent().stride;
    args.b = b_.ptr();
    args.ldb = b_.extent().ld;
    args.stride_b = b_.extent().stride;
    args.d = d_.ptr();
    args.ldd = d_.extent().ld;
    args.stride_d = d_.extent().stride;
    args.offsets = args.counts = sizes_.get<const int64_t>();
    args.problems = list.data();
    return library.wait(hgemm_grouped_ex(library.handle(), &args));
}

void Groups::expect_right()
{
    for (Buffer* buffer : {&a_, &b_, &d_})
        buffer->download();
    EXPECT_EQ(a_.damage(true) + b_.damage(true) + d_.damage(false), "");
    for (int64_t z = 0; z < groups; ++z)
        for (int64_t i = 0; i < (contiguous() ? rows[z] : capacity); ++i)
            for (int64_t j = 0; j < n; ++j) {
                const int64_t row = first_row(z) + i;
                // What lies behind a group's rows keeps its NaN.
                double sum = i < rows[z] ? 0 : decode(HGEMM_F32, sentinel(HGEMM_F32));
                for (int64_t p = 0; p < k; ++p)
                    sum += a_.get(matrix(z), row, p) * b_.get(z, j, p);
                EXPECT_TRUE(matches(HGEMM_F32, d_.get(matrix(z), row, j), sum, 0))
                    << "group " << z << " row " << i;
            }
}

}  // namespace

bool check_grouped(Library& library, hgemm_grouping_t grouping)
{
    Groups grouped(library.memory(), grouping);
    const hgemm_status_t status = grouped.run(library);
    if (status == HGEMM_STATUS_NOT_SUPPORTED)
        return false;
    EXPECT_EQ(status, HGEMM_STATUS_SUCCESS) << hgemm_last_error();
    grouped.expect_right();
    return true;
}

}  // namespace hg::test
