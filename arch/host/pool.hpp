// Pool: the threads that convert operands and write results, beside those that OpenBLAS has of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

namespace hg {

class Pool {
public:
    // Start `workers` threads; fewer where the system refuses, which costs speed and nothing else.
    explicit Pool(int workers);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // Call work(begin, end) for `parts` ranges that cover 0 ... count - 1, on at most `parts` threads with
    // the calling one, and return when all are done. In a forked child, which has no other threads, one
    // range covers them all. Called by one thread at a time; `work` must not throw.
    template <class Work>
    void parallel_for(int parts, int64_t count, const Work& work)
    {
        if (parts <= 1 || count <= 1 || is_forked()) {
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
    struct Crew;

    bool is_forked() const;
    void run(const Job& job);

    const pid_t process_;  // that has the threads
    std::unique_ptr<Crew> crew_;
};

}  // namespace hg
