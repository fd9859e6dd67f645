// Pool: the threads of all kernels of the host. OpenBLAS has its own.
#pragma once

#include <sys/types.h>

#include <condition_variable>
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

    // The pool of this process, with at least `workers` threads. It ends with the last that holds it.
    static std::shared_ptr<Pool> shared(int workers);

    // Calls work(begin, end) for `parts` ranges that cover 0 ... count - 1, on at most `parts` threads, of
    // which the caller is one, and returns when all are done. Several threads may call at a time: each runs
    // parts of its own job, and the workers run those of the oldest job. A forked child, which has no
    // workers, runs one range. `work` must not throw.
    template <class Work>
    void parallel_for(int parts, int64_t count, const Work& work)
    {
        if (parts <= 1 || count <= 1 || is_forked()) {
            work(int64_t{0}, count);
            return;
        }
        Job job(parts, count, &work, [](const void* w, int64_t begin, int64_t end) {
            (*static_cast<const Work*>(w))(begin, end);
        });
        run(job);
    }

private:
    using Call = void (*)(const void* work, int64_t begin, int64_t end);
    struct Job {
        Job(int p, int64_t n, const void* w, Call c) : parts(p), count(n), work(w), call(c), unfinished(p)
        {
        }

        const int parts;
        const int64_t count;
        const void* const work;
        const Call call;
        int next = 0, unfinished;  // `next`: the first part that no thread has taken
        std::condition_variable done;
        Job* younger = nullptr;
    };
    struct Crew;

    bool is_forked() const;
    void run(Job& job);

    const pid_t process_;  // the one that has the threads
    std::unique_ptr<Crew> crew_;
};

}  // namespace hg
