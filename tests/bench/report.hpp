// What was measured, as a table, as CSV and in summary.
#pragma once

#include "check.hpp"
#include "product.hpp"

#include <fstream>
#include <string>
#include <vector>

namespace hg::bench {

struct Machine {
    std::string device, driver, cuda, cublas, date;  // cublas is "" if there is none
};

struct Arm {
    double us, host_us;  // of one launch on the GPU, of one call on the host
    Verdict verdict;
};

struct Measurement {
    Product product;
    std::string kernel;
    Arm ours, cublas;  // cublas is meaningless if there is none
    double ratio;      // median over the pairs of cuBLAS's time / ours: above 1 we are faster
    double aa_spread;  // interquartile range of the same ratio of the baseline with itself
    int sets, launches, pairs, sm_mhz;
    double watts;
};

class Csv {
public:
    Csv(const std::string& path, const Machine& machine);  // "" writes nothing
    void write(const Measurement& measurement);

private:
    std::ofstream file_;
    Machine machine_;
};

void print_heading(const Machine& machine);
void print_line(const Measurement& measurement, bool with_cublas);
// Geometric mean, quantiles and the worst of the ratios, in all and for each region.
void print_summary(const std::vector<Measurement>& measurements);

}  // namespace hg::bench
