#include "arch/host/pool.hpp"

#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hg {

// The threads and what they share.
struct Pool::Crew {
    ~Crew();
    void start(int count);
    void run(const Job& wanted);
    void take_parts(std::unique_lock<std::mutex>& lock);
    void serve();

    std::mutex mutex;
    std::condition_variable work_ready, work_done;
    Job job{};
    int next = 0, unfinished = 0;  // parts of job not yet taken start at next
    bool stop = false;
    std::vector<std::thread> workers;
};

Pool::Pool(int workers) : process_(getpid()), crew_(std::make_unique<Crew>()) { crew_->start(workers); }

// The threads are not there in a forked child: to join them, or to destroy what they wait for or have
// locked, would take for ever.
Pool::~Pool()
{
    if (is_forked())
        static_cast<void>(crew_.release());
}

bool Pool::is_forked() const { return getpid() != process_; }

void Pool::run(const Job& job) { crew_->run(job); }

void Pool::Crew::start(int count)
{
    if (count <= 0)
        return;
    workers.reserve(static_cast<size_t>(count));
    try {
        for (int i = 0; i < count; ++i)
            workers.emplace_back([this] { serve(); });
    } catch (const std::exception&) {
        // The calling thread takes every part that no worker takes.
    }
}

Pool::Crew::~Crew()
{
    {
        const std::lock_guard<std::mutex> lock(mutex);
        stop = true;
    }
    work_ready.notify_all();
    for (std::thread& worker : workers)
        worker.join();
}

void Pool::Crew::run(const Job& wanted)
{
    std::unique_lock<std::mutex> lock(mutex);
    job = wanted;
    next = 0;
    unfinished = wanted.parts;
    for (int i = 1; i < wanted.parts; ++i)
        work_ready.notify_one();
    take_parts(lock);
    work_done.wait(lock, [this] { return unfinished == 0; });
}

// The range of a part depends on its number alone, so it does not matter who takes it.
void Pool::Crew::take_parts(std::unique_lock<std::mutex>& lock)
{
    while (next < job.parts) {
        const int part = next++;
        const int64_t length = job.count / job.parts, longer = job.count % job.parts;
        const int64_t begin = part * length + (part < longer ? part : longer);
        const int64_t end = begin + length + (part < longer ? 1 : 0);
        lock.unlock();
        if (begin < end)
            job.call(job.work, begin, end);
        lock.lock();
        if (--unfinished == 0)
            work_done.notify_one();
    }
}

void Pool::Crew::serve()
{
    std::unique_lock<std::mutex> lock(mutex);
    while (!stop) {
        take_parts(lock);
        work_ready.wait(lock, [this] { return stop || next < job.parts; });
    }
}

}  // namespace hg
