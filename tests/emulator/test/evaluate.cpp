// A kernel around one instruction.
#include "test/evaluate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace emu {
namespace {

constexpr uint32_t cta_threads = 128;
constexpr char names[] = "dabce";

std::string register_type(int bits)
{
    // Not "b" + number: gcc 12 warns of an overlapping copy when it inlines that.
    return bits == 1 ? "pred" : std::string("b").append(std::to_string(bits));
}

std::string load_operand(char name, int bits, const std::string& address)
{
    const std::string n(1, name);
    if (bits == 1)
        return "ld.global.u64 %rd40, [" + address + "];\nsetp.ne.s64 " + n + ", %rd40, 0;\n";
    return "ld.global.b" + std::to_string(bits) + " " + n + ", [" + address + "];\n";
}

std::string store_result(int bits, const std::string& address)
{
    if (bits == 1)
        return "selp.b64 %rd40, 1, 0, d;\nst.global.u64 [" + address + "], %rd40;\n";
    return "mov.b64 %rd40, 0;\nst.global.u64 [" + address + "], %rd40;\nst.global.b" +
           std::to_string(bits) + " [" + address + "], d;\n";
}

}  // namespace

Values evaluate(const std::string& text, const std::vector<int>& widths,
                const std::vector<Values>& operands, int cc)
{
    const size_t count = operands.at(0).size();
    std::string body = "{\n";
    for (size_t i = 0; i < widths.size(); ++i)
        body += ".reg ." + register_type(widths[i]) + " " + names[i] + ";\n";
    body += ".reg .pred p, q;\nmad.lo.s32 %r2, %r1, " + std::to_string(cta_threads) +
            ", %r0;\nand.b32 %r3, %r2, 1;\nsetp.ne.u32 p, %r3, 0;\nrem.u32 %r3, %r2, 3;\nsetp.eq.u32 q, "
            "%r3, 0;\n"
            "mul.wide.u32 %rd30, %r2, 8;\nld.param.u64 %rd31, [p0];\nsetp.ge.u32 %p15, %r2, " +
            std::to_string(count) + ";\n@%p15 exit;\n";
    for (size_t i = 0; i < widths.size(); ++i) {
        const std::string parameter = "%rd" + std::to_string(i);
        body += "add.s64 %rd41, " + parameter + ", %rd30;\n";
        if (i > 0)
            body += load_operand(names[i], widths[i], "%rd41");
    }
    body += text + "\nadd.s64 %rd41, %rd0, %rd30;\n" + store_result(widths[0], "%rd41") + "}\n";
    Device device(cc);
    std::vector<uint64_t> parameters = {device.put(Values(count, 0xdeaddead))};
    for (const Values& values : operands)
        parameters.push_back(device.put(values));
    const std::string target = "sm_" + std::to_string(cc) + (cc >= 90 ? "a" : "");
    const std::string outcome = device.run(
        ptx_kernel(target, static_cast<int>(parameters.size()), body),
        shape_of(static_cast<uint32_t>((count + cta_threads - 1) / cta_threads), cta_threads), parameters);
    EXPECT_EQ(outcome, "") << text << "\n" << device.message();
    return device.get<uint64_t>(parameters[0], count);
}

Values interesting(int bits, size_t count, uint64_t seed)
{
    const uint64_t mask = ~uint64_t{0} >> (64 - bits);
    Values values = {
        0, 1, 2, 3, 7, 31, 32, 33, mask, mask - 1, mask >> 1, (mask >> 1) + 1, 0x5555555555555555 & mask};
    std::mt19937_64 random(seed);
    while (values.size() < count)
        values.push_back(random() >> random() % bits & mask);
    values.resize(count);
    return values;
}

Values interesting_floats(int bits, size_t count, uint64_t seed)
{
    const int width = std::abs(bits), fraction = bits == 16 ? 10 : bits == -16 ? 7 : bits == 32 ? 23 : 52;
    const uint64_t sign = uint64_t{1} << (width - 1), infinity = (sign - 1) >> fraction << fraction;
    const uint64_t one = (infinity >> 1) & infinity;
    Values values = {0,
                     sign,
                     1,
                     sign | 1,
                     (uint64_t{1} << fraction) - 1,
                     uint64_t{1} << fraction,
                     one,
                     one + 1,
                     one - 1,
                     sign | one,
                     infinity - 1,
                     infinity,
                     sign | infinity,
                     infinity | 1,
                     sign - 1,
                     one + (uint64_t{2} << fraction)};
    std::mt19937_64 random(seed);
    while (values.size() < count) {
        // Near one half of the time, so that sums cancel and round.
        const uint64_t near =
            (one + ((random() % 5) << fraction)) | (random() & ((uint64_t{1} << fraction) - 1));
        values.push_back(random() & 1 ? near | (random() & 1 ? sign : 0) : random() >> (64 - width));
    }
    values.resize(count);
    return values;
}

std::string place_of(const std::string& module, const std::string& text)
{
    const auto lines =
        std::count(module.begin(), module.begin() + static_cast<std::ptrdiff_t>(module.find(text)), '\n');
    return "test.ptx:" + std::to_string(lines + 1) + ": ";
}

void cross(const Values& a, const Values& b, Values& all_a, Values& all_b)
{
    for (const uint64_t x : a)
        for (const uint64_t y : b) {
            all_a.push_back(x);
            all_b.push_back(y);
        }
}

}  // namespace emu
