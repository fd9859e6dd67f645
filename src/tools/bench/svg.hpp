// Just enough SVG for plots.
#pragma once

#include <cmath>
#include <string>

namespace hg::bench {

std::string escaped(const std::string& text);  // for XML

class Svg {
public:
    Svg(double width, double height);
    void line(double x1, double y1, double x2, double y2, const char* color, double width = 1);
    void rectangle(double x, double y, double width, double height, const std::string& color,
                   const std::string& title = "");
    void circle(double x, double y, double radius, const char* color, const std::string& title);
    // anchor: start, middle or end
    void text(double x, double y, const std::string& text, const char* anchor = "start", int size = 12);
    std::string finish() const { return body_ + "</svg>\n"; }

private:
    std::string body_;
};

// A logarithmic axis: where a value lies between two places.
struct LogAxis {
    double least, most;  // values
    double begin, end;   // places

    double at(double value) const
    {
        return begin + (end - begin) * std::log(value / least) / std::log(most / least);
    }
};

}  // namespace hg::bench
