#include "suite.hpp"

#include "device.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace emu::silicon {
namespace {

constexpr int patience = 120;  // seconds for one kernel, the start of the driver included

uint64_t hash(const std::vector<uint8_t>& data)
{
    uint64_t value = 1469598103934665603ull;
    for (const uint8_t byte : data)
        value = (value ^ byte) * 1099511628211ull;
    return value;
}

void write_dump(const std::string& folder, const Job& job, const std::vector<uint8_t>& data)
{
    std::ofstream file(fmt::format("{}/{}-{}.bin", folder, job.family->name, job.seed), std::ios::binary);
    file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
}

void tell(int pipe, std::string text)
{
    for (char& c : text)
        if (c == '\n')
            c = ';';
    text += '\n';
    if (write(pipe, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        _exit(1);
}

// The child: one line about the device, then one a job, until the context is lost.
void work(const std::vector<Job>& jobs, size_t first, const std::string& dump, int pipe)
{
    try {
        Device device;
        tell(pipe, device.describe());
        for (size_t i = first; i < jobs.size() && !device.lost(); ++i) {
            try {
                const std::vector<uint8_t> output = device.run(make_kernel(*jobs[i].family, jobs[i].seed));
                if (!dump.empty())
                    write_dump(dump, jobs[i], output);
                tell(pipe, fmt::format("{:016x}", hash(output)));
            } catch (const DriverError& error) {
                tell(pipe, fmt::format("failed {}", error.what()));
            }
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
    }
}

// The next line from a pipe; false when it ends or nothing comes.
bool read_line(int pipe, std::string& line)
{
    line.clear();
    for (char c; line.size() < 4096;) {
        pollfd ready{pipe, POLLIN, 0};
        if (poll(&ready, 1, patience * 1000) <= 0 || read(pipe, &c, 1) <= 0)
            return false;
        if (c == '\n')
            return true;
        line += c;
    }
    return false;
}

// Jobs from `first` on in a child; the number that were answered, or -1 where there is no device.
int run_child(const std::vector<Job>& jobs, size_t first, const std::string& dump, Results& results)
{
    int ends[2];
    if (pipe(ends) != 0)
        throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0)
        throw std::runtime_error("no process");
    if (child == 0) {
        close(ends[0]);
        work(jobs, first, dump, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    std::string line;
    int answered = 0;
    const bool started = read_line(ends[0], line);
    if (started)
        results.device = line;
    while (started && first + answered < jobs.size() && read_line(ends[0], line))
        results.outcomes.push_back({jobs[first + answered++], line});
    close(ends[0]);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    return started ? answered : -1;
}

}  // namespace

std::vector<Job> select_jobs(const std::string& name, int seed)
{
    std::vector<Job> jobs;
    for (const Family& family : families())
        for (uint32_t i = 0; i < family.seeds; ++i)
            if ((name.empty() || name == family.name) && (seed < 0 || seed == static_cast<int>(i)))
                jobs.push_back({&family, i});
    return jobs;
}

Results run_jobs(const std::vector<Job>& jobs, const std::string& dump)
{
    Results results;
    if (!dump.empty())
        std::filesystem::create_directories(dump);
    for (size_t done = 0; done < jobs.size();) {
        const int answered = run_child(jobs, done, dump, results);
        if (answered < 0 && results.outcomes.empty())
            throw std::runtime_error("there is no device");
        // After a defect that the device does not survive, the rest is not tried.
        if (answered < 0) {
            while (done < jobs.size())
                results.outcomes.push_back({jobs[done++], "failed: the device was lost"});
            break;
        }
        done += answered;
        const bool broken = !results.outcomes.empty() && results.outcomes.back().failed();
        if (done < jobs.size() && (answered == 0 || !broken))
            results.outcomes.push_back({jobs[done++], "failed: the process ended or hung"});
    }
    return results;
}

}  // namespace emu::silicon
