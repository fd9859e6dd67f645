// Numbers with a fraction as text, with a decimal point whatever the locale of the program: printf() has
// the decimal separator of the locale.
#pragma once

#include <charconv>
#include <limits>

namespace hg {

class Decimal {
public:
    Decimal(double value, std::chars_format format, int precision)
    {
        const auto [end, error] = std::to_chars(text_, text_ + sizeof text_ - 1, value, format, precision);
        *(error == std::errc() ? end : text_) = '\0';
    }

    const char* text() const { return text_; }

private:
    static constexpr int most_digits = 8;  // behind the point
    char text_[std::numeric_limits<double>::max_exponent10 + most_digits + 4];
};

// As printf() has them without a locale: %.<digits>f, %g, and %.<digits>e.
inline Decimal fixed(double value, int digits) { return {value, std::chars_format::fixed, digits}; }
inline Decimal general(double value) { return {value, std::chars_format::general, 6}; }
inline Decimal scientific(double value, int digits)
{
    return {value, std::chars_format::scientific, digits};
}

}  // namespace hg
