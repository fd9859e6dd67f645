#include "text.hpp"

namespace emu::silicon {
namespace {

constexpr uint32_t wait_clocks = 1u << 30;

std::string begin_loop(Text& text, uint32_t bytes, const std::string& counter)
{
    const std::string done = text.predicate(), top = text.label();
    text("shl.b32 {}, %t, 4;", counter);
    text.lines(top + ":\n");
    text("setp.ge.u32 {}, {}, {};", done, counter, bytes);
    text("@{} bra {}_end;", done, top);
    return top;
}

void end_loop(Text& text, const std::string& top, const std::string& counter, uint32_t threads)
{
    text("add.u32 {}, {}, {};", counter, counter, threads * 16);
    text("bra {};", top);
    text.lines(top + "_end:\n");
}

}  // namespace

std::vector<std::string> Text::words(int count)
{
    std::vector<std::string> list;
    for (int i = 0; i < count; ++i)
        list.push_back(word());
    return list;
}

std::string Text::shared(const std::string& name, uint32_t bytes, uint32_t alignment)
{
    before(fmt::format(".shared .align {} .b8 {}[{}];\n", alignment, name, bytes));
    const std::string address = word();
    (*this)("mov.u32 {}, {};", address, name);
    return address;
}

std::string Text::list(const std::vector<std::string>& words)
{
    return fmt::format("{{{}}}", fmt::join(words, ", "));
}

std::string Text::finish(size_t maps, const std::string& directives) const
{
    std::string parameters = ".param .u64 in, .param .u64 out";
    for (size_t i = 0; i < maps; ++i)
        parameters += fmt::format(", .param .align 64 .b8 map{}[128]", i);
    std::string registers;
    const auto declare = [&](const char* type, const char* prefix, int count) {
        if (count > 0)
            registers += fmt::format("    .reg .{} %{}<{}>;\n", type, prefix, count);
    };
    declare("b16", "h", halves_);
    declare("b32", "r", words_);
    declare("b64", "d", wides_);
    declare("pred", "p", predicates_);
    return fmt::format(".version 9.0\n.target sm_90a\n.address_size 64\n{}"
                       ".visible .entry kernel({})\n{}{{\n{}"
                       "    .reg .b64 %in, %out;\n    .reg .b32 %t, %c;\n"
                       "    ld.param.u64 %in, [in];\n    cvta.to.global.u64 %in, %in;\n"
                       "    ld.param.u64 %out, [out];\n    cvta.to.global.u64 %out, %out;\n"
                       "    mov.u32 %t, %tid.x;\n    mov.u32 %c, %cluster_ctarank;\n"
                       "{}    ret;\n}}\n",
                       before_, parameters, directives, registers, body_);
}

std::string global_address(Text& text, const char* base, const std::string& offset)
{
    const std::string address = text.wide();
    text("cvt.u64.u32 {}, {};", address, offset);
    text("add.u64 {}, {}, {};", address, address, base);
    return address;
}

std::string sum(Text& text, const std::string& a, const std::string& b)
{
    const std::string result = text.word();
    text("add.u32 {}, {}, {};", result, a, b);
    return result;
}

std::string scaled(Text& text, const std::string& a, uint32_t factor, uint32_t offset)
{
    const std::string result = text.word();
    text("mad.lo.u32 {}, {}, {}, {};", result, a, factor, offset);
    return result;
}

std::string thread_is(Text& text, uint32_t index)
{
    const std::string result = text.predicate();
    text("setp.eq.u32 {}, %t, {};", result, index);
    return result;
}

void fill_shared(Text& text, const std::string& shared, uint32_t bytes, uint32_t from, uint32_t threads)
{
    const std::string counter = text.word(), top = begin_loop(text, bytes, counter);
    const std::string source = global_address(text, "%in", counter), to = sum(text, shared, counter);
    const std::string data = Text::list(text.words(4));
    text("ld.global.v4.b32 {}, [{} + {}];", data, source, from);
    text("st.shared.v4.b32 [{}], {};", to, data);
    end_loop(text, top, counter, threads);
}

void dump_shared(Text& text, const std::string& shared, uint32_t bytes, const std::string& to,
                 uint32_t threads)
{
    const std::string counter = text.word(), top = begin_loop(text, bytes, counter);
    const std::string target = global_address(text, "%out", sum(text, to, counter));
    const std::string source = sum(text, shared, counter), data = Text::list(text.words(4));
    text("ld.shared.v4.b32 {}, [{}];", data, source);
    text("st.global.v4.b32 [{}], {};", target, data);
    end_loop(text, top, counter, threads);
}

void dump_shared(Text& text, const std::string& shared, uint32_t bytes, uint32_t to, uint32_t threads)
{
    const std::string offset = text.word();
    text("mov.u32 {}, {};", offset, to);
    dump_shared(text, shared, bytes, offset, threads);
}

void wait_parity(Text& text, const std::string& barrier, const std::string& parity)
{
    const std::string done = text.predicate(), late = text.predicate(), top = text.label();
    const std::string start = text.wide(), now = text.wide(), mark = text.word();
    text("mov.u64 {}, %clock64;", start);
    text.lines(top + ":\n");
    text("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 {}, [{}], {};", done, barrier, parity);
    text("@{} bra {}_end;", done, top);
    text("mov.u64 {}, %clock64;", now);
    text("sub.u64 {}, {}, {};", now, now, start);
    text("setp.lt.u64 {}, {}, {};", late, now, wait_clocks);
    text("@{} bra {};", late, top);
    text("mov.u32 {}, 0xdead;", mark);
    text("st.global.u32 [%out], {};", mark);
    text.lines(top + "_end:\n");
}

void cluster_barrier(Text& text)
{
    text("barrier.cluster.arrive.release;");
    text("barrier.cluster.wait.acquire;");
}

}  // namespace emu::silicon
