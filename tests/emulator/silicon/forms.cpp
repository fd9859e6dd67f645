#include "forms.hpp"

#include "text.hpp"

#include <cstring>
#include <map>

namespace emu::silicon {
namespace {

constexpr uint32_t form_threads = 384, form_slot = 8, most_operands = 5, most_results = 3;

char register_of(char kind)
{
    if (kind == 'p')
        return 'p';
    return bytes_of(kind) == 2 ? 'h' : bytes_of(kind) == 8 ? 'd' : 'r';
}

std::string new_register(Text& text, char type)
{
    switch (type) {
    case 'h': return text.half();
    case 'r': return text.word();
    case 'p': return text.predicate();
    default: return text.wide();
    }
}

int bits_of(char type) { return type == 'h' ? 16 : type == 'r' ? 32 : 64; }

std::string load_operand(Text& text, char kind, const std::string& base, uint32_t offset)
{
    const char type = register_of(kind);
    if (type != 'p') {
        const std::string value = new_register(text, type);
        text("ld.global.b{} {}, [{} + {}];", bits_of(type), value, base, offset);
        return value;
    }
    const std::string word = text.word(), value = text.predicate();
    text("ld.global.b32 {}, [{} + {}];", word, base, offset);
    text("setp.ne.u32 {}, {}, 0;", value, word);
    return value;
}

void store_result(Text& text, char kind, const std::string& value, const std::string& base, uint32_t offset)
{
    const char type = register_of(kind);
    if (type != 'p')
        return text("st.global.b{} [{} + {}], {};", bits_of(type), base, offset, value);
    const std::string word = text.word();
    text("selp.u32 {}, 1, 0, {};", word, value);
    text("st.global.b32 [{} + {}], {};", base, offset, word);
}

// Puts registers for $d0 and so on; new ones for those that have none yet.
std::string substitute(Text& text, const std::string& form, std::map<std::string, std::string> names)
{
    std::string out;
    for (size_t i = 0; i < form.size(); ++i) {
        if (form[i] != '$') {
            out += form[i];
            continue;
        }
        const std::string key = form.substr(i + 1, 2);
        if (!names.count(key))
            names[key] = new_register(text, key[0] == 'w' ? 'd' : key[0]);
        out += names[key];
        i += 2;
    }
    return out;
}

// Operands in planes of a slot a thread.
void apply(Text& text, const Form& form, uint32_t index, const std::string& in, const std::string& out)
{
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < form.operands.size(); ++i) {
        const auto plane = static_cast<uint32_t>(index * most_operands + i);
        names[fmt::format("a{}", i)] =
            load_operand(text, form.operands[i], in, plane * form_threads * form_slot);
    }
    for (size_t i = 0; i < form.results.size(); ++i)
        names[fmt::format("d{}", i)] = new_register(text, register_of(form.results[i]));
    text("{}", substitute(text, form.text, names));
    for (size_t i = 0; i < form.results.size(); ++i) {
        const auto plane = static_cast<uint32_t>(index * most_results + i);
        store_result(text, form.results[i], names[fmt::format("d{}", i)], out,
                     status_bytes + plane * form_threads * form_slot);
    }
}

}  // namespace

Form plain(const std::string& opcode, const std::string& results, const std::string& operands,
           const std::string& tail)
{
    std::string text = opcode + " ";
    for (size_t i = 0; i < results.size(); ++i)
        text += fmt::format("{}$d{}", i ? "|" : "", i);
    for (size_t i = 0; i < operands.size(); ++i)
        text += fmt::format(", $a{}", i);
    return {text + tail + ";", results, operands};
}

uint32_t kernels_for(const std::vector<Form>& forms)
{
    return static_cast<uint32_t>((forms.size() + forms_a_kernel - 1) / forms_a_kernel);
}

Kernel form_kernel(Random& random, const std::vector<Form>& forms, uint32_t seed, uint32_t seeds)
{
    Text text;
    const std::string offset = text.word();
    text("mul.lo.u32 {}, %t, {};", offset, form_slot);
    const std::string in = global_address(text, "%in", offset), out = global_address(text, "%out", offset);
    Kernel kernel;
    kernel.block.x = form_threads;
    uint32_t index = 0;
    // Every `seeds`-th form, so that neighbours of a list meet in different kernels.
    for (size_t i = seed; i < forms.size(); i += seeds, ++index) {
        apply(text, forms[i], index, in, out);
        std::vector<uint8_t> planes(most_operands * form_threads * form_slot);
        for (size_t operand = 0; operand < forms[i].operands.size(); ++operand)
            for (uint32_t thread = 0; thread < form_threads; ++thread) {
                const uint64_t value = draw(random, forms[i].operands[operand]);
                std::memcpy(planes.data() + (operand * form_threads + thread) * form_slot, &value,
                            form_slot);
            }
        kernel.input.insert(kernel.input.end(), planes.begin(), planes.end());
    }
    kernel.output = untouched(status_bytes + index * most_results * form_threads * form_slot);
    kernel.ptx = text.finish();
    return kernel;
}

}  // namespace emu::silicon
