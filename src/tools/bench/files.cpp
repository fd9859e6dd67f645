#include "src/tools/bench/files.hpp"

#include "src/tools/bench/picture.hpp"
#include "src/tools/bench/report.hpp"

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

void write_files(const Run& run, const Files& files)
{
    if (!files.json.empty())
        write(files.json, json(run));
    if (!files.svg_roofline.empty())
        write(files.svg_roofline, roofline(run, limits_of(run.machine)));
    if (!files.svg_map.empty())
        write(files.svg_map, ratio_map(run));
}

}  // namespace hg::bench
