// What the checks of exchange_rules.hpp share: flags, an error word and matrices in a library's memory.
#pragma once

#include "library.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace hg::test {

// Flags in the library's memory.
class Flags {
public:
    Flags(Library& library, int count)
        : memory_(library.memory()), block_(memory_, static_cast<size_t>(count) * sizeof(hgemm_flag_t)),
          count_(count)
    {
        memory_.fill(block_.get(), 0, block_.bytes());
        for (int i = 0; i < count; ++i)
            pointers_.push_back(at(i));
    }
    hgemm_flag_t* at(int i) const { return block_.get<hgemm_flag_t>() + i; }
    hgemm_flag_t* const* array() const { return pointers_.data(); }
    hgemm_flag_t read(int i) const
    {
        hgemm_flag_t flag;
        memory_.copy_out(&flag, at(i), sizeof flag);
        return flag;
    }
    // All flags: raised and taken so often, and free of what kernels keep there.
    void expect(uint32_t raised, uint32_t taken) const
    {
        for (int i = 0; i < count_; ++i) {
            const hgemm_flag_t flag = read(i);
            EXPECT_EQ(flag.raised, raised) << i;
            EXPECT_EQ(flag.taken, taken) << i;
            EXPECT_EQ(flag.internal[0] | flag.internal[1], 0u) << i;
        }
    }

private:
    Memory& memory_;
    Block block_;
    int count_;
    std::vector<hgemm_flag_t*> pointers_;
};

class ErrorWord {
public:
    explicit ErrorWord(Library& library) : library_(library), block_(library.memory(), 16)
    {
        library.memory().fill(block_.get(), 0, block_.bytes());
    }
    uint32_t* get() const { return block_.get<uint32_t>(); }
    hgemm_status_t status() const { return hgemm_read_error(library_.handle(), get()); }

private:
    Library& library_;
    Block block_;
};

inline hgemm_exchange_args_t default_exchange()
{
    hgemm_exchange_args_t args;
    hgemm_exchange_args_init(&args, sizeof args);
    return args;
}

inline hgemm_status_t run(Library& library, const hgemm_exchange_args_t& args)
{
    return library.wait(hgemm_exchange(library.handle(), &args));
}

// One matrix of ones, and where its copy is to go.
struct Copy {
    explicit Copy(Library& library)
        : memory(library.memory()), from(memory, bytes), to(memory, bytes), parts{from.get()}, d{to.get()}
    {
        const std::vector<float> ones(elements, 1.0f);
        memory.copy_in(from.get(), ones.data(), bytes);
        memory.fill(to.get(), 0, bytes);
    }
    void add_to(hgemm_exchange_args_t& args) const
    {
        args.rows = 64;
        args.columns = elements / 64;
        args.ld_part = args.ldd = args.columns;
        args.part_count = args.d_count = 1;
        args.parts = parts;
        args.d = d;
    }
    bool is_done() const
    {
        std::vector<float> values(elements);
        memory.copy_out(values.data(), to.get(), bytes);
        return values == std::vector<float>(elements, 1.0f);
    }
    bool is_untouched() const
    {
        std::vector<float> values(elements);
        memory.copy_out(values.data(), to.get(), bytes);
        return values == std::vector<float>(elements, 0.0f);
    }

    static constexpr size_t elements = 1 << 15, bytes = elements * sizeof(float);
    Memory& memory;
    Block from, to;
    const void* parts[1];
    void* d[1];
};

}  // namespace hg::test
