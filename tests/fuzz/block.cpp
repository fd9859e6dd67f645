#include "block.hpp"

#include "report.hpp"
#include "src/tools/support/reference.hpp"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

namespace hg::fuzz {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t guard = 0;
#elif defined(__has_feature)
constexpr int64_t guard = __has_feature(address_sanitizer) ? 0 : 64;
#else
constexpr int64_t guard = 64;
#endif

constexpr __int128 most_elements = 1 << 16;

__int128 magnitude(int64_t value) { return value < 0 ? -static_cast<__int128>(value) : value; }

}  // namespace

int64_t Extent::span() const
{
    if (empty())
        return 0;
    const __int128 elements = (batch - 1) * magnitude(stride) + (lines - 1) * magnitude(ld) + length;
    const bool has_many = lines > most_elements || length > most_elements || batch > most_elements ||
                          static_cast<__int128>(lines) * length * batch > 16 * most_elements;
    return elements > most_elements || has_many || ld < 0 ? -1 : static_cast<int64_t>(elements);
}

bool Extent::overlaps_itself() const
{
    if (empty() || span() < 0)
        return false;
    // Lines of two matrices begin less than a line apart.
    for (int64_t z = 1; z < batch; ++z)
        for (int64_t line = 1 - lines; line < lines; ++line)
            if (magnitude(z * stride + line * ld) < length)
                return true;
    return false;
}

Block::Block(hgemm_type_t type, const Extent& extent, int shift) : type_(type), extent_(extent)
{
    const bool backwards = extent.stride < 0 && extent.batch > 1 && !extent.empty();
    const int64_t back = backwards ? -extent.stride * (extent.batch - 1) : 0;
    origin_ = guard + shift + back;
    const int64_t elements = 2 * guard + shift + extent.span();
    const size_t width = test::bytes_of(type);
    before_.resize(static_cast<size_t>(elements) * width + 1);
    memory_ = std::make_unique<unsigned char[]>(static_cast<size_t>(elements) * width);
    const uint32_t nan = test::sentinel(type);
    for (int64_t i = 0; i < elements; ++i)
        std::memcpy(memory_.get() + static_cast<size_t>(i) * width, &nan, width);
    remember();
}

size_t Block::offset(int64_t z, int64_t line, int64_t position) const
{
    return static_cast<size_t>(origin_ + z * extent_.stride + line * extent_.ld + position) *
           test::bytes_of(type_);
}

void Block::set_bits(int64_t z, int64_t line, int64_t position, uint32_t bits)
{
    std::memcpy(memory_.get() + offset(z, line, position), &bits, test::bytes_of(type_));
}

void Block::fill(uint64_t seed)
{
    if (extent_.empty())
        return;
    for (int64_t z = 0; z < extent_.batch; ++z)
        for (int64_t line = 0; line < extent_.lines; ++line)
            for (int64_t i = 0; i < extent_.length; ++i) {
                const auto index = static_cast<uint64_t>((z * extent_.lines + line) * extent_.length + i);
                set(z, line, i, static_cast<double>(test::hash(seed, index) % 9) - 4);
            }
    remember();
}

void Block::remember()
{
    before_.assign(memory_.get(), memory_.get() + (before_.size() - 1));
    before_.push_back(0);
    expected_ = before_;
}

void Block::restore()
{
    std::memcpy(memory_.get(), before_.data(), before_.size() - 1);
    expected_ = before_;
}

void Block::expect(int64_t z, int64_t line, int64_t position, double value, double error)
{
    const size_t at = offset(z, line, position), width = test::bytes_of(type_);
    const double result = test::load(type_, memory_.get() + at);
    const bool same = error > 0 || value != value ? test::matches(type_, result, value, error)
                                                  : result == test::round_to(type_, value);
    if (same)
        std::memcpy(&expected_[at], memory_.get() + at, width);
    else
        wrong("element %" PRId64 " of line %" PRId64 " of problem %" PRId64 " is %g, must be %g", position,
              line, z, result, test::round_to(type_, value));
}

void Block::check(const char* name) const
{
    const size_t bytes = before_.size() - 1;
    for (size_t i = 0; i < bytes; ++i)
        if (memory_[i] != expected_[i])
            wrong("%s changed where it must not, %" PRId64 " bytes behind its first element", name,
                  static_cast<int64_t>(i) - origin_ * static_cast<int64_t>(test::bytes_of(type_)));
}

}  // namespace hg::fuzz
