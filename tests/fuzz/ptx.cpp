// Target: the emulator's PTX parser. Text is read or refused by an error that tells file and line; nothing
// else comes out of it.
#include "input.hpp"
#include "ptx/module.hpp"
#include "report.hpp"

#include <string>

namespace hg::fuzz {
namespace {

// What PTX is made of, so that inputs come further than to the first letter.
constexpr const char* words[] = {".version 8.8\n",
                                 ".target sm_90a\n",
                                 ".address_size 64\n",
                                 ".visible ",
                                 ".entry ",
                                 ".func ",
                                 "k",
                                 "(",
                                 ")",
                                 "{",
                                 "}",
                                 "[",
                                 "]",
                                 ",",
                                 ";",
                                 ":",
                                 "\n",
                                 " ",
                                 ".reg ",
                                 ".b32 ",
                                 ".b64 ",
                                 ".pred ",
                                 ".f32 ",
                                 ".f16x2 ",
                                 ".v2 ",
                                 ".shared ",
                                 ".global ",
                                 ".const ",
                                 ".local ",
                                 ".param ",
                                 ".align ",
                                 ".extern ",
                                 ".b8 ",
                                 "%r1",
                                 "%rd1",
                                 "%p1",
                                 "%f1",
                                 "%r<8>",
                                 "%rd<8>",
                                 "%p<4>",
                                 "%f<4>",
                                 "@%p1 ",
                                 "@!%p1 ",
                                 "bra ",
                                 "L",
                                 "ret",
                                 "mov",
                                 "add",
                                 "ld",
                                 "st",
                                 "cp.async",
                                 "call ",
                                 "setp.eq",
                                 ".u32",
                                 ".s32",
                                 ".u64",
                                 "0",
                                 "1",
                                 "-1",
                                 "0x7fffffffffffffff",
                                 "99999999999999999999",
                                 "0f3F800000",
                                 "0d0000000000000000",
                                 "+",
                                 "-",
                                 "_",
                                 "!",
                                 "|",
                                 "=",
                                 "<",
                                 ">",
                                 "\"",
                                 "//",
                                 "/*",
                                 "*/",
                                 "%tid.x",
                                 "%laneid",
                                 ".maxntid ",
                                 ".reqntid ",
                                 ".minnctapersm ",
                                 ".maxnreg ",
                                 ".explicitcluster ",
                                 ".reqnctapercluster ",
                                 ".pragma ",
                                 "\"nounroll\"",
                                 ".loc 1 1 1",
                                 ".file 1 \"a\"",
                                 ".section .debug {",
                                 ".branchtargets ",
                                 ".callprototype ",
                                 ".alias ",
                                 "%envreg1",
                                 ".weak ",
                                 ".common ",
                                 ".noreturn",
                                 ".unified ",
                                 "mbarrier.init.shared::cta.b64 ",
                                 "x",
                                 ".x",
                                 ".L2::cache_hint "};

std::string from_words(Input& input)
{
    std::string text;
    while (!input.empty()) {
        const uint8_t next = input.byte();
        if (next < std::size(words))
            text += words[next];
        else
            text += static_cast<char>(next);
    }
    return text;
}

std::string from_bytes(Input& input)
{
    const auto rest = input.rest();
    return std::string(reinterpret_cast<const char*>(rest.data()), rest.size());
}

std::string in_kernel(const std::string& body)
{
    return ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg "
           ".pred %p<4>;\n"
           ".reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .f32 %f<4>;\n" +
           body + "\n}\n";
}

// A whole module of bytes first, as files are.
std::string draw_text(Input& input)
{
    switch (input.rest().empty() ? 0 : input.rest().front()) {
    case 1: return input.byte(), from_words(input);
    case 2: return input.byte(), in_kernel(from_words(input));
    case 3: return input.byte(), in_kernel(from_bytes(input));
    default: return from_bytes(input);
    }
}

void read(const std::string& text)
{
    emu::ptx::Module module = emu::ptx::parse(text, "fuzzed.ptx");
    for (emu::ptx::Kernel& kernel : module.kernels)
        emu::ptx::read_body(module, kernel);
}

void run(Input& input)
{
    const std::string text = draw_text(input);
    note("%s", text.c_str());
    try {
        read(text);
    } catch (const emu::ptx::Error& error) {
        if (std::string(error.what()).find("fuzzed.ptx:") == std::string::npos)
            wrong("an error without its place: %s", error.what());
    } catch (const std::exception& error) {
        wrong("no error of PTX: %s", error.what());
    }
}

}  // namespace
}  // namespace hg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    hg::fuzz::begin();
    hg::fuzz::Input input(data, size);
    hg::fuzz::run(input);
    return 0;
}
