// Pool: the threads that convert operands and write results, beside those that OpenBLAS has of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace hg {

class Pool {
public:
    // Start `workers` threads; fewer where the system refuses, which costs speed and nothing else.
    explicit Pool(int workers);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // Call work(begin, end) for `parts` ranges that cover 0 ... count - 1, on at most `parts` threads with
    // the calling one, and return when all are done. Called by one thread at a time; `work` must not throw.
    template <class Work>
    void parallel_for(int parts, int64_t count, const Work& work)
    {
        if (parts <= 1 || count <= 1) {
            work(int64_t{0}, count);
            return;
        }
        run({parts, count, &work, [](const void* w, int64_t begin, int64_t end) {
                 (*static_cast<const Work*>(w))(begin, end);
             }});
    }

private:
    struct Job {
        int parts;
        int64_t count;
        const void* work;
        void (*call)(const void* work, int64_t begin, int64_t end);
    };

    void run(const Job& job);
    void take_parts(std::unique_lock<std::mutex>& lock);
    void serve();

    std::mutex mutex_;
    std::condition_variable work_ready_, work_done_;
    Job job_{};
    int next_ = 0, unfinished_ = 0;  // parts of job_ not yet taken start at next_
    bool stop_ = false;
    std::vector<std::thread> workers_;
};

}  // namespace hg
