#include "arch/host/pool.hpp"

#include "src/base/float_environment.hpp"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hg {

// The worker threads and the state that they share.
struct Pool::Crew {
    ~Crew();
    void grow(int count);
    void run(Job& job);
    void append(Job& job);
    void remove(const Job& job);
    void take_part(Job& job, std::unique_lock<std::mutex>& lock);
    void serve();

    std::mutex mutex;
    std::condition_variable work_ready;
    Job* oldest = nullptr;  // of the jobs with a part that no thread has taken
    bool stop = false;
    std::vector<std::thread> workers;
};

namespace {

// Where the handles of a process find their pool. A forked child makes its own registry, since a thread of
// the parent may have held the lock of the inherited one.
struct Registry {
    const pid_t process = getpid();
    std::mutex mutex;
    std::weak_ptr<Pool> pool;
};

// Never freed: handles may be made until the process ends.
std::atomic<Registry*> newest_registry = nullptr;

Registry& registry()
{
    Registry* known = newest_registry;
    while (!known || known->process != getpid()) {
        auto* const own = new Registry;
        if (newest_registry.compare_exchange_strong(known, own))
            return *own;
        delete own;
    }
    return *known;
}

}  // namespace

std::shared_ptr<Pool> Pool::shared(int workers)
{
    Registry& here = registry();
    const std::lock_guard<std::mutex> lock(here.mutex);
    std::shared_ptr<Pool> pool = here.pool.lock();
    if (pool)
        pool->crew_->grow(workers);
    else
        here.pool = pool = std::make_shared<Pool>(workers);
    return pool;
}

Pool::Pool(int workers) : process_(getpid()), crew_(std::make_unique<Crew>()) { crew_->grow(workers); }

// A forked child does not have the threads: joining them, or destroying what they wait for or have locked,
// would never return. So it leaks the crew.
Pool::~Pool()
{
    if (is_forked())
        static_cast<void>(crew_.release());
}

bool Pool::is_forked() const { return getpid() != process_; }

void Pool::run(Job& job) { crew_->run(job); }

void Pool::Crew::grow(int count)
{
    try {
        while (static_cast<int>(workers.size()) < count)
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

void Pool::Crew::run(Job& job)
{
    std::unique_lock<std::mutex> lock(mutex);
    append(job);
    for (int i = 1; i < job.parts; ++i)
        work_ready.notify_one();
    while (job.next < job.parts)
        take_part(job, lock);
    job.done.wait(lock, [&] { return job.unfinished == 0; });
}

void Pool::Crew::append(Job& job)
{
    Job** end = &oldest;
    while (*end)
        end = &(*end)->younger;
    *end = &job;
}

void Pool::Crew::remove(const Job& job)
{
    Job** place = &oldest;
    while (*place != &job)
        place = &(*place)->younger;
    *place = job.younger;
}

// The range of a part depends on its number alone, not on the thread that takes it.
void Pool::Crew::take_part(Job& job, std::unique_lock<std::mutex>& lock)
{
    const int part = job.next++;
    if (job.next == job.parts)
        remove(job);
    const int64_t length = job.count / job.parts, longer = job.count % job.parts;
    const int64_t begin = part * length + (part < longer ? part : longer);
    const int64_t end = begin + length + (part < longer ? 1 : 0);
    lock.unlock();
    if (begin < end)
        job.call(job.work, begin, end);
    lock.lock();
    if (--job.unfinished == 0)
        job.done.notify_one();
}

void Pool::Crew::serve()
{
    const FloatEnvironment environment;
    std::unique_lock<std::mutex> lock(mutex);
    while (!stop) {
        if (oldest)
            take_part(*oldest, lock);
        else
            work_ready.wait(lock);
    }
}

}  // namespace hg
