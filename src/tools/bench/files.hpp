// The files that a run is asked for; "" for none.
#pragma once

#include "src/tools/bench/measurement.hpp"

namespace hg::bench {

struct Files {
    std::string csv, json, svg_roofline, svg_map;
};

// All but the CSV, which is written as the run goes.
void write_files(const Run& run, const Files& files);

}  // namespace hg::bench
