// A product whose rows come from another stream while it runs, block by block.
#include "../trial.hpp"
#include "gpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hg::test {
namespace {

constexpr int block_count = 3;

GemmCase described()
{
    GemmCase g;
    g.layout = HGEMM_ROW_MAJOR;
    g.transb = HGEMM_TRANS;
    g.type_ab = g.type_c = g.type_d = HGEMM_BF16;
    g.m = 96;
    g.n = 136;
    g.k = 128;
    g.aligned = true;
    g.data = Data::Normal;
    return g;
}

// Copies A from elsewhere, a block of rows at a time, and raises a flag for each; and the product that
// takes them. Each on a stream of its own.
class Pair {
public:
    explicit Pair(const char* backend)
        : producer_(make(backend)), consumer_(make(backend)), memory_(consumer_->memory()),
          trial_(described(), memory_), from_(memory_, a_bytes()), flags_(memory_, flag_bytes)
    {
        memory_.fill(flags_.get(), 0, flags_.bytes());
        for (int i = 0; i < block_count; ++i)
            flag_pointers_[i] = flags_.get<hgemm_flag_t>() + i;
        EXPECT_EQ(hgemm_set_stream(producer_->handle(), produced_), HGEMM_STATUS_SUCCESS);
        EXPECT_EQ(hgemm_set_stream(consumer_->handle(), consumed_), HGEMM_STATUS_SUCCESS);
        // The first launch of a kernel copies its code, for which CUDA may wait for all that runs.
        renew(0);
        produce();
        wait();
        consume();
        wait();
        expect_right();
    }

    void consume()
    {
        hgemm_blocks_t blocks;
        hgemm_blocks_init(&blocks, sizeof blocks);
        blocks.rows = rows;
        blocks.first = 1;
        blocks.wait = flag_pointers_;
        EXPECT_EQ(hgemm_gemm_blocks(consumer_->handle(), &trial_.args(), &blocks), HGEMM_STATUS_SUCCESS)
            << hgemm_last_error();
    }

    void produce()
    {
        const int64_t k = trial_.args().k, lda = trial_.args().lda;
        for (int64_t i = 0; i < block_count; ++i) {
            const void* parts[] = {from_.get<uint16_t>() + i * rows * k};
            void* d[] = {a() + i * rows * lda};
            hgemm_exchange_args_t args;
            hgemm_exchange_args_init(&args, sizeof args);
            args.rows = rows;
            args.columns = args.ld_part = k;
            args.ldd = lda;
            args.type_part = args.type_d = HGEMM_BF16;
            args.parts = parts;
            args.d = d;
            args.part_count = args.d_count = 1;
            args.raise_after = flag_pointers_ + i;
            args.raise_after_count = 1;
            EXPECT_EQ(hgemm_exchange(producer_->handle(), &args), HGEMM_STATUS_SUCCESS)
                << hgemm_last_error();
        }
    }

    // New values where A comes from, and NaN where it goes.
    void renew(uint64_t seed)
    {
        const GemmCase g = described();
        trial_.fill_a([=](int64_t, int64_t i, int64_t p) {
            return Trial::draw(Data::Normal, seed, static_cast<uint64_t>(i * g.k + p));
        });
        trial_.upload();
        const auto width = static_cast<size_t>(g.k) * 2;
        for (int64_t i = 0; i < g.m; ++i) {
            uint16_t* const line = a() + i * trial_.args().lda;
            memory_.copy(from_.get<uint16_t>() + i * g.k, line, width);
            memory_.fill(line, 0xff, width);
        }
    }

    void expect_right()
    {
        trial_.download();
        EXPECT_EQ(trial_.judge(consumer_->arithmetic()).message, "");
    }
    void wait() const
    {
        Cuda::get()->wait(produced_);
        Cuda::get()->wait(consumed_);
    }
    CUstream_st* produced() const { return produced_; }
    CUstream_st* consumed() const { return consumed_; }

private:
    static constexpr int64_t rows = 32;
    static constexpr size_t flag_bytes = block_count * sizeof(hgemm_flag_t);
    static size_t a_bytes() { return static_cast<size_t>(described().m * described().k) * 2; }
    uint16_t* a() const { return const_cast<uint16_t*>(static_cast<const uint16_t*>(trial_.args().a)); }

    Stream produced_, consumed_;
    std::unique_ptr<Library> producer_, consumer_;
    Memory& memory_;
    Trial trial_;
    Block from_, flags_;
    hgemm_flag_t* flag_pointers_[block_count] = {};
};

class DeviceExchange : public testing::TestWithParam<const char*> {};

// The product is on its stream before what it waits for.
TEST_P(DeviceExchange, streams)
{
    NEEDS_BACKEND(GetParam());
    Pair pair(GetParam());
    for (uint64_t seed = 1; seed < 3; ++seed) {
        pair.renew(seed);
        pair.consume();
        pair.produce();
        pair.wait();
        pair.expect_right();
    }
}

TEST_P(DeviceExchange, graphs)
{
    NEEDS_BACKEND(GetParam());
    Pair pair(GetParam());
    CUgraphExec_st* const consumer = Cuda::get()->capture(pair.consumed(), [&] { pair.consume(); });
    CUgraphExec_st* const producer = Cuda::get()->capture(pair.produced(), [&] { pair.produce(); });
    for (uint64_t seed = 1; seed < 4; ++seed) {
        pair.renew(seed);
        Cuda::get()->launch(consumer, pair.consumed());
        Cuda::get()->launch(producer, pair.produced());
        pair.wait();
        pair.expect_right();
    }
    Cuda::get()->destroy(consumer);
    Cuda::get()->destroy(producer);
}

INSTANTIATE_TEST_SUITE_P(, DeviceExchange, testing::ValuesIn(backends),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hg::test
