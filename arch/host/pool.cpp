#include "arch/host/pool.hpp"

#include <exception>

namespace hg {

Pool::Pool(int workers)
{
    if (workers <= 0)
        return;
    workers_.reserve(static_cast<size_t>(workers));
    try {
        for (int i = 0; i < workers; ++i)
            workers_.emplace_back([this] { serve(); });
    } catch (const std::exception&) {
        // The calling thread takes every part that no worker takes.
    }
}

Pool::~Pool()
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
    }
    work_ready_.notify_all();
    for (std::thread& worker : workers_)
        worker.join();
}

void Pool::run(const Job& job)
{
    std::unique_lock<std::mutex> lock(mutex_);
    job_ = job;
    next_ = 0;
    unfinished_ = job.parts;
    for (int i = 1; i < job.parts; ++i)
        work_ready_.notify_one();
    take_parts(lock);
    work_done_.wait(lock, [this] { return unfinished_ == 0; });
}

// The range of a part depends on its number alone, so it does not matter who takes it.
void Pool::take_parts(std::unique_lock<std::mutex>& lock)
{
    while (next_ < job_.parts) {
        const int part = next_++;
        const int64_t length = job_.count / job_.parts, longer = job_.count % job_.parts;
        const int64_t begin = part * length + (part < longer ? part : longer);
        const int64_t end = begin + length + (part < longer ? 1 : 0);
        lock.unlock();
        if (begin < end)
            job_.call(job_.work, begin, end);
        lock.lock();
        if (--unfinished_ == 0)
            work_done_.notify_one();
    }
}

void Pool::serve()
{
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_) {
        take_parts(lock);
        work_ready_.wait(lock, [this] { return stop_ || next_ < job_.parts; });
    }
}

}  // namespace hg
