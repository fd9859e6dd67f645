// The text of a kernel as it grows, and the pieces that most kernels share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace emu::silicon {

// Results begin behind a line of status: its first word tells that a bounded wait has timed out.
constexpr uint32_t status_bytes = 128;
// Of a CTA, in most kernels.
constexpr uint32_t threads = 128;

// The body may use %in and %out (global addresses), %t (thread in the CTA) and %c (CTA in the cluster).
class Text {
public:
    template <class... A>
    void operator()(fmt::format_string<A...> format, A&&... values)
    {
        body_ += "    " + fmt::format(format, std::forward<A>(values)...) + "\n";
    }
    void lines(const std::string& text) { body_ += text; }

    // A new register of 16, 32, 64 bits, or a predicate.
    std::string half() { return fmt::format("%h{}", halves_++); }
    std::string word() { return fmt::format("%r{}", words_++); }
    std::string wide() { return fmt::format("%d{}", wides_++); }
    std::string predicate() { return fmt::format("%p{}", predicates_++); }
    std::vector<std::string> words(int count);
    std::string label() { return fmt::format("L{}", labels_++); }

    // Functions and variables before the kernel.
    void before(const std::string& text) { before_ += text; }
    // Static shared memory `name`; the address of its start.
    std::string shared(const std::string& name, uint32_t bytes, uint32_t alignment);

    // Words of a braced list.
    static std::string list(const std::vector<std::string>& words);

    // The whole module, for a number of tensor maps named map0, map1 ...
    std::string finish(size_t maps = 0, const std::string& directives = "") const;

private:
    std::string before_, body_;
    int halves_ = 0, words_ = 0, wides_ = 0, predicates_ = 0, labels_ = 0;
};

// All `threads` of the CTA copy bytes, a multiple of 16, from the input into shared memory or from there to
// the output; no barrier.
void fill_shared(Text& text, const std::string& shared, uint32_t bytes, uint32_t from, uint32_t threads);
void dump_shared(Text& text, const std::string& shared, uint32_t bytes, uint32_t to, uint32_t threads);
// The same, but where in the input or output a register says, in bytes.
void dump_shared(Text& text, const std::string& shared, uint32_t bytes, const std::string& to,
                 uint32_t threads);

// Address of %in or %out plus a register of 32 bits.
std::string global_address(Text& text, const char* base, const std::string& offset);
// 32-bit sum, or product and sum with constants.
std::string sum(Text& text, const std::string& a, const std::string& b);
std::string scaled(Text& text, const std::string& a, uint32_t factor, uint32_t offset = 0);
// Predicate: thread `index` of the CTA.
std::string thread_is(Text& text, uint32_t index);

// Wait until the phase of a parity has ended, for about a second at most: then the status says so.
void wait_parity(Text& text, const std::string& barrier, const std::string& parity);

void cluster_barrier(Text& text);

}  // namespace emu::silicon
