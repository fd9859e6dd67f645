// Reports as lines of JSON. Their first fields are in this order, so that a line's beginning tells its
// class.
#include "core/report.hpp"

#include <cstdio>

namespace emu {
namespace {

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (c == '\n')
            out += "\\n";
        else if (static_cast<unsigned char>(c) < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
            out += escaped;
        } else
            out += c;
    }
    return out + "\"";
}

std::string field(const char* name, std::string_view text)
{
    return std::string(", \"") + name + "\": " + quoted(text);
}

std::string field(const char* name, int64_t number)
{
    return std::string(", \"") + name + "\": " + std::to_string(number);
}

}  // namespace

std::string json(const Report& report)
{
    constexpr const char* classes[report_classes] = {"defect", "departure", "harmless"};
    std::string out = "{\"class\": " + quoted(classes[static_cast<size_t>(class_of(report.kind))]);
    out += field("kind", report.kind) + field("kernel", report.kernel) + field("text", report.text);
    out += field("ptx_line", report.line) + field("ptx", report.source) + ", \"source\": [";
    for (size_t i = 0; i < report.origins.size(); ++i)
        out += std::string(i > 0 ? ", " : "") + "{\"file\": " + quoted(report.origins[i].file) +
               field("line", report.origins[i].line) + "}";
    out += "], \"cta\": [" + std::to_string(report.cta[0]) + ", " + std::to_string(report.cta[1]) + ", " +
           std::to_string(report.cta[2]) + "]";
    if (report.warp >= 0)
        out += field("warp", report.warp);
    if (report.lane >= 0)
        out += field("lane", report.lane);
    return out + field("count", static_cast<int64_t>(report.count)) + "}";
}

std::string json_event(std::string_view what, std::string_view kind, std::string_view text)
{
    return "{\"class\": " + quoted(what) + field("kind", kind) + field("text", text) + "}";
}

std::string json_text(std::string_view text) { return quoted(text); }

}  // namespace emu
