// Tokens, numbers in all their spellings, comments.
#include "ptx/lexer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>

namespace emu::ptx {
namespace {

bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// By character: may a block, a string, a comment, a directive or a line begin or end with it?
constexpr std::array<bool, 256> is_boundary = [] {
    std::array<bool, 256> boundary{};
    for (const char c : {'{', '}', '"', '/', '.', '\n'})
        boundary[static_cast<unsigned char>(c)] = true;
    return boundary;
}();

size_t next_boundary(std::string_view text, size_t at)
{
    while (at < text.size() && !is_boundary[static_cast<unsigned char>(text[at])])
        ++at;
    return at;
}

}  // namespace

uint64_t widen_float(uint32_t bits)
{
    const uint32_t fraction = bits & 0x7fffff;
    if ((bits & 0x7f800000) == 0x7f800000 && fraction)
        return uint64_t{bits >> 31} << 63 | uint64_t{0x7ff} << 52 | uint64_t{fraction} << 29;
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
}

uint32_t narrow_float(uint64_t bits)
{
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    if ((bits >> 52 & 0x7ff) == 0x7ff && fraction)
        return static_cast<uint32_t>(bits >> 63) << 31 | 0x7f800000 |
               (fraction >> 29 ? static_cast<uint32_t>(fraction >> 29) : 0x400000);
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
}

std::string quote(const Module& module, int line, const std::string& why)
{
    std::string message = module.file + ":" + std::to_string(line) + ": " + why;
    if (line >= 1)
        message.append(": ").append(source_line(module, line));
    return message;
}

// Lines are counted from the kernel that it is in.
std::string_view source_line(const Module& module, int line)
{
    if (line < 1)
        return "";
    Place place;
    for (const Kernel& kernel : module.kernels)
        if (kernel.body.line <= line)
            place = kernel.body;
    std::string_view text = module.text;
    text.remove_prefix(place.at == 0 ? 0 : text.rfind('\n', place.at) + 1);
    for (; place.line < line; ++place.line)
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    text = text.substr(0, text.find('\n'));
    return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

Lexer::Lexer(const Module& module, Place from) : text_(module.text), module_(module) { move_to(from); }

void Lexer::move_to(Place place)
{
    at_ = place.at;
    line_ = place.line;
    token_ = scan();
    next_ = scan();
}

void Lexer::fail(const std::string& why, int line) const { throw Error(quote(module_, line, why)); }

Token Lexer::take()
{
    if (token_.form == Token::Form::End)
        fail("the text ends too early");
    const Token taken = token_;
    ended_ = taken.is(";");
    token_ = next_;
    next_ = scan();
    return taken;
}

Token Lexer::expect(std::string_view text)
{
    if (!token_.is(text))
        fail("expected '" + std::string(text) + "', found '" + std::string(token_.text) + "'");
    return take();
}

bool Lexer::accept(std::string_view text)
{
    if (!token_.is(text))
        return false;
    take();
    return true;
}

int64_t Lexer::integer()
{
    const bool negative = accept("-");
    if (token_.form != Token::Form::Integer)
        fail("expected an integer, found '" + std::string(token_.text) + "'");
    const auto value = static_cast<uint64_t>(take().value);
    return static_cast<int64_t>(negative ? 0 - value : value);
}

void Lexer::skip_line()
{
    const int line = token_.line;
    while (token_.form != Token::Form::End && token_.line == line)
        take();
}

void Lexer::skip_statement(Place start)
{
    if (place().at == start.at)
        take();
    while (!ended_)
        take();
}

void Lexer::skip_directive(Place start)
{
    if (place().at == start.at)
        take();
    while (!ended_ && token_.form != Token::Form::End) {
        if (token_.is("{")) {
            skip_block();
            return;
        }
        take();
    }
}

// Without looking at tokens, which would take longer than all the rest of loading an image.
bool Lexer::skip_block()
{
    const Place begin = place();
    at_ = begin.at;
    line_ = begin.line;
    const auto is_next = [&](std::string_view word) { return text_.substr(at_, word.size()) == word; };
    bool declares = false;
    int depth = 0;
    do {
        at_ = next_boundary(text_, at_);
        if (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '/'))
            skip_blank();
        if (at_ == text_.size())
            fail("the text ends too early", line_);
        const char c = text_[at_];
        if (c == '"')
            skip_string();
        else if (c == '.' && !is_letter(text_[at_ - 1]) && !is_digit(text_[at_ - 1]))
            declares |= is_next(".shared") || is_next(".global") || is_next(".const");
        depth += (c == '{') - (c == '}');
        ++at_;
    } while (depth > 0);
    move_to({at_, line_});
    return declares;
}

void Lexer::skip_blank()
{
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '\n') {
            ++line_, ++at_;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\0') {
            ++at_;
        } else if (c == '/' && text_.substr(at_, 2) == "//") {
            while (at_ < text_.size() && text_[at_] != '\n')
                ++at_;
        } else if (c == '/' && text_.substr(at_, 2) == "/*") {
            const size_t end = text_.find("*/", at_ + 2);
            if (end == text_.npos)
                fail("comment without an end", line_);
            for (; at_ < end + 2; ++at_)
                line_ += text_[at_] == '\n';
        } else {
            return;
        }
    }
}

// From its first quote to its last.
void Lexer::skip_string()
{
    for (++at_; at_ == text_.size() || text_[at_] != '"'; ++at_) {
        if (at_ == text_.size() || text_[at_] == '\n')
            fail("string without an end", line_);
        at_ += text_[at_] == '\\' && at_ + 1 < text_.size();
    }
}

Token Lexer::finish(Token::Form form, size_t start)
{
    Token token;
    token.form = form;
    token.text = text_.substr(start, at_ - start);
    token.line = line_;
    return token;
}

// Decimal, octal, 0x, 0b, with a U behind it; 0f and 0d bits; decimal floats.
Token Lexer::number(size_t start)
{
    const auto prefix = [&](char lower) {
        return text_[start] == '0' && (text_[start + 1] | 0x20) == lower;
    };
    const auto digits = [&](int base, size_t from) {
        uint64_t value = 0;
        const auto result = std::from_chars(text_.data() + from, text_.data() + text_.size(), value, base);
        at_ = result.ptr - text_.data();
        if (result.ec != std::errc{})
            fail("bad number", line_);
        return value;
    };
    uint64_t value = 0;
    if (start + 1 < text_.size() && (prefix('f') || prefix('d'))) {
        const size_t length = prefix('f') ? 8 : 16;
        value = digits(16, start + 2);
        if (at_ != start + 2 + length)
            fail("a floating literal needs " + std::to_string(length) + " hexadecimal digits", line_);
        Token token = finish(Token::Form::Float, start);
        token.value = static_cast<int64_t>(length == 8 ? widen_float(static_cast<uint32_t>(value)) : value);
        return token;
    }
    if (start + 1 < text_.size() && prefix('x'))
        value = digits(16, start + 2);
    else if (start + 1 < text_.size() && prefix('b'))
        value = digits(2, start + 2);
    else {
        size_t end = start;
        while (end < text_.size() && is_digit(text_[end]))
            ++end;
        if (end < text_.size() && (text_[end] == '.' || text_[end] == 'e' || text_[end] == 'E')) {
            double parsed = 0;
            const auto result = std::from_chars(text_.data() + start, text_.data() + text_.size(), parsed);
            at_ = result.ptr - text_.data();
            Token token = finish(Token::Form::Float, start);
            token.value = std::bit_cast<int64_t>(parsed);
            return token;
        }
        value = digits(text_[start] == '0' && end > start + 1 ? 8 : 10, start);
    }
    if (at_ < text_.size() && (text_[at_] == 'U' || text_[at_] == 'u'))
        ++at_;
    if (at_ < text_.size() && (is_letter(text_[at_]) || is_hex(text_[at_])))
        fail("bad number", line_);
    Token token = finish(Token::Form::Integer, start);
    token.value = static_cast<int64_t>(value);
    return token;
}

Token Lexer::scan()
{
    skip_blank();
    const size_t start = at_;
    if (at_ == text_.size())
        return finish(Token::Form::End, start);
    const auto look = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    const char c = text_[at_];
    if (is_digit(c))
        return number(start);
    if (c == '"') {
        skip_string();
        Token token = finish(Token::Form::String, start + 1);
        ++at_;
        return token;
    }
    const bool directive = c == '.';
    if (!directive && !is_letter(c)) {
        ++at_;
        return finish(Token::Form::Mark, start);
    }
    for (++at_; at_ < text_.size(); ++at_) {
        const char d = text_[at_];
        if ((is_letter(d) && d != '%') || is_digit(d))  // "add.s32%r1, ..." has two words
            continue;
        if (d == '.' && !directive && (is_letter(look(at_ + 1)) || is_digit(look(at_ + 1))))
            continue;
        if (d == ':' && look(at_ + 1) == ':') {
            ++at_;
            continue;
        }
        break;
    }
    return finish(directive ? Token::Form::Directive : Token::Form::Word, start);
}

}  // namespace emu::ptx
