// Which line of the source a line of PTX was compiled from: what nvcc -lineinfo writes.
#include "ptx/body.hpp"

#include <iterator>

namespace emu::ptx {
namespace {

constexpr size_t deepest = 16;  // calls that are told of one line

std::string place_of(const SourceLine& origin)
{
    return origin.file.substr(origin.file.rfind('/') + 1) + ":" + std::to_string(origin.line);
}

}  // namespace

// ".loc FILE LINE COLUMN", and in the body of a function that was inlined ", function_name LABEL,
// inlined_at FILE LINE COLUMN" behind it, the place of a .loc before. A wrong one is passed over, as it
// changes nothing.
void Body::location()
{
    const int line = lexer_.take().line;
    SourcePlace here{}, caller{};
    SourcePlace* place = &here;
    size_t count = 0;
    for (; lexer_.peek().line == line && lexer_.peek().form != Token::Form::End;) {
        const Token token = lexer_.take();
        if (token.is(","))
            place = nullptr;
        else if (token.is("inlined_at"))
            place = &caller, count = 0;
        else if (place && count < place->size() && token.form == Token::Form::Integer)
            (*place)[count++] = static_cast<int>(token.value);
    }
    auto origin = std::make_shared<Origin>(Origin{here[0], here[1], nullptr});
    if (caller[0] > 0) {
        std::shared_ptr<const Origin>& known = known_origins_[caller];
        if (!known)
            known = std::make_shared<Origin>(Origin{caller[0], caller[1], nullptr});
        origin->caller = known;
    }
    known_origins_[here] = origin;
    context_.module.origins[line] = here[0] > 0 && here[1] > 0 ? origin : nullptr;
}

std::vector<SourceLine> origins_of(const Module& module, int line)
{
    std::vector<SourceLine> lines;
    const auto behind = module.origins.upper_bound(line);
    if (behind == module.origins.begin())
        return lines;
    for (const Origin* at = std::prev(behind)->second.get(); at && lines.size() < deepest;
         at = at->caller.get()) {
        const auto file = module.files.find(at->file);
        if (file == module.files.end())
            break;
        lines.push_back({file->second, at->line});
    }
    return lines;
}

std::string brief(const std::vector<SourceLine>& origins)
{
    if (origins.empty())
        return "";
    std::string text = " (" + place_of(origins.front());
    if (origins.size() > 1)
        text += (origins.size() > 2 ? " ... from " : " from ") + place_of(origins.back());
    return text + ")";
}

}  // namespace emu::ptx
