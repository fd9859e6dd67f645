#include "fit.hpp"

#include <algorithm>
#include <cmath>

namespace hg::cblas {
namespace {

double error_of(const std::vector<Times>& times, int cores, const Rates& rates)
{
    double sum = 0;
    for (const Times& t : times) {
        const Forecast f = forecast(t.product, cores, rates);
        sum += std::abs(std::log(f.host_us / t.host_us)) + std::abs(std::log(f.gpu_us / t.gpu_us));
    }
    return sum;
}

}  // namespace

Rates fit(const std::vector<Times>& times, int cores)
{
    constexpr double Rates::*fitted[] = {&Rates::gpu_start_us, &Rates::staged_bytes_per_us,
                                         &Rates::host_start_us, &Rates::host_flops_per_us};
    constexpr double finest = 1.001;
    Rates best;
    double error = error_of(times, cores, best);
    for (double step = 2; step > finest;) {
        bool better = false;
        for (double Rates::*rate : fitted)
            for (const double factor : {step, 1 / step}) {
                Rates next = best;
                next.*rate *= factor;
                const double left = error_of(times, cores, next);
                if (left < error) {
                    best = next;
                    error = left;
                    better = true;
                }
            }
        if (!better)
            step = std::sqrt(step);
    }
    return best;
}

Loss loss_of(const std::vector<Times>& times, int cores, const Rates& rates)
{
    Loss loss{0, 1};
    for (const Times& t : times) {
        const Forecast f = forecast(t.product, cores, rates);
        const double factor = (f.gpu_us < f.host_us ? t.gpu_us : t.host_us) / std::min(t.gpu_us, t.host_us);
        loss.mean += std::log(factor) / static_cast<double>(times.size());
        loss.most = std::max(loss.most, factor);
    }
    loss.mean = std::exp(loss.mean);
    return loss;
}

}  // namespace hg::cblas
