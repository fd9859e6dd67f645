#include "outputs.hpp"

#include "picture.hpp"
#include "report.hpp"

#include <fstream>
#include <stdexcept>

namespace hg::bench {
namespace {

void write(const std::string& path, const std::string& text)
{
    std::ofstream file(path);
    file << text;
    if (!file.flush())
        throw std::runtime_error("cannot write " + path);
}

}  // namespace

void write_outputs(const Run& run, const Outputs& outputs)
{
    if (!outputs.json.empty())
        write(outputs.json, json(run));
    if (!outputs.svg_roofline.empty())
        write(outputs.svg_roofline, roofline(run));
    if (!outputs.svg_map.empty())
        write(outputs.svg_map, ratio_map(run));
}

}  // namespace hg::bench
