#include "src/tools/bench/svg.hpp"

#include <fmt/format.h>

namespace hg::bench {

std::string escaped(const std::string& text)
{
    std::string result;
    for (const char c : text)
        switch (c) {
        case '<': result += "&lt;"; break;
        case '>': result += "&gt;"; break;
        case '&': result += "&amp;"; break;
        case '"': result += "&quot;"; break;
        default: result += c;
        }
    return result;
}

Svg::Svg(double width, double height)
    : body_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                        "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\">\n",
                        width, height))
{
    rectangle(0, 0, width, height, "white");
}

void Svg::line(double x1, double y1, double x2, double y2, const char* color, double width)
{
    body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
                         "stroke-width=\"{}\"/>\n",
                         x1, y1, x2, y2, color, width);
}

void Svg::rectangle(double x, double y, double width, double height, const std::string& color,
                    const std::string& title)
{
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                         "fill=\"{}\"><title>{}</title></rect>\n",
                         x, y, width, height, color, escaped(title));
}

void Svg::circle(double x, double y, double radius, const char* color, const std::string& title)
{
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"0.75\">"
                         "<title>{}</title></circle>\n",
                         x, y, radius, color, escaped(title));
}

void Svg::text(double x, double y, const std::string& text, const char* anchor, int size)
{
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\">{}</text>\n",
                         x, y, size, anchor, escaped(text));
}

}  // namespace hg::bench
