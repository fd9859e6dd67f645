// Times launches on a stream, each by itself.
#pragma once

#include "src/base/status.hpp"
#include "src/driver/driver.hpp"
#include "src/tune/contest.hpp"

#include <cstddef>
#include <vector>

namespace hg {

class Stopwatch {
public:
    Stopwatch() = default;
    ~Stopwatch()
    {
        for (const driver::Event event : events_)
            driver::destroy_event(event);
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

    // The median time in microseconds of `launches` times launch(), with prepare() before each, which does
    // not count. Waits for the stream.
    template <typename Prepare, typename Launch>
    Status time(hgemm_stream_t stream, size_t launches, Prepare prepare, Launch launch, double& us)
    {
        Status status = create_events(2 * launches);
        for (size_t i = 0; status == ok && i < launches; ++i) {
            status = prepare();
            if (status == ok)
                status = driver::record(events_[2 * i], stream);
            if (status == ok)
                status = launch();
            if (status == ok)
                status = driver::record(events_[2 * i + 1], stream);
        }
        const Status waited = driver::wait_for(stream);
        status = status == ok ? waited : status;
        std::vector<double> times(launches);
        for (size_t i = 0; status == ok && i < launches; ++i)
            status = driver::elapsed_us(events_[2 * i], events_[2 * i + 1], times[i]);
        us = median_of(times);
        return status;
    }

private:
    Status create_events(size_t count)
    {
        events_.reserve(count);
        Status status = ok;
        while (status == ok && events_.size() < count) {
            driver::Event event = nullptr;
            status = driver::create_event(&event);
            if (status == ok)
                events_.push_back(event);
        }
        return status;
    }

    std::vector<driver::Event> events_;
};

}  // namespace hg
