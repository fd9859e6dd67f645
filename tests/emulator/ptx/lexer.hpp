// PTX text -> tokens.
#pragma once

#include "ptx/module.hpp"

namespace emu::ptx {

struct Token {
    enum class Form : uint8_t {
        Word,       // add.s32, %r1, $L__BB0_1, shared::cta: letters, digits, _ $ % and inner dots
        Directive,  // .reg, .b32
        Integer,
        Float,   // value: the bits of a double
        String,  // text without its quotes
        Mark,    // one character
        End
    };
    Form form = Form::End;
    std::string_view text;
    int64_t value = 0;
    int line = 0;

    bool is(std::string_view what) const { return text == what && form != Form::String; }
};

// Bits of a double that stand for a float's, NaN payloads included, and back.
uint64_t widen_float(uint32_t bits);
uint32_t narrow_float(uint64_t bits);

class Lexer {
public:
    explicit Lexer(const Module& module, Place from = {});
    const Token& peek() const { return token_; }
    const Token& second() const { return next_; }
    Token take();
    Token expect(std::string_view text);
    bool accept(std::string_view text);
    int64_t integer();  // an integer literal with its sign
    void skip_line();   // to the end of the current token's line
    bool skip_block();  // in braces; true if it declares shared or global variables
    // From within what begins at `start`: behind its semicolon, if that was not taken last, or block.
    void skip_statement(Place start);
    void skip_directive(Place start);
    Place place() const { return {static_cast<size_t>(token_.text.data() - text_.data()), token_.line}; }

    [[noreturn]] void fail(const std::string& why) const
    {
        fail(token_.form == Token::Form::End ? "the text ends too early" : why, token_.line);
    }
    [[noreturn]] void fail(const std::string& why, int line) const;

private:
    Token scan();
    void move_to(Place place);
    void skip_blank();
    void skip_string();
    Token number(size_t start);
    Token finish(Token::Form form, size_t start);

    std::string_view text_;
    const Module& module_;
    size_t at_ = 0;
    int line_ = 1;
    Token token_, next_;
    bool ended_ = false;  // the last token taken was a semicolon
};

// The message for a fault in a line of a module.
std::string quote(const Module& module, int line, const std::string& why);

}  // namespace emu::ptx
