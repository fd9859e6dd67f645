// A user object lives while a reference is left: the caller's, or one of a graph, of an executable graph or
// of a launch of it. Destructors run in a thread of the driver's own, as NVIDIA's document has it.
#include "driver/user_object.hpp"

#include "driver/call.hpp"
#include "driver/capture.hpp"

#include <climits>
#include <condition_variable>
#include <deque>
#include <thread>

using namespace emu::driver;

namespace {

thread_local bool destroys = false;

class Destructors {
public:
    void add(CUhostFn function, void* data)
    {
        const std::lock_guard lock(mutex_);
        due_.emplace_back(function, data);
        if (!started_)
            std::thread([this] { run(); }).detach();
        started_ = true;
        changed_.notify_all();
    }
    void wait()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return due_.empty() && !running_; });
    }

private:
    [[noreturn]] void run()
    {
        destroys = true;
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return !due_.empty(); });
            const auto [function, data] = due_.front();
            due_.pop_front();
            running_ = true;
            lock.unlock();
            function(data);
            lock.lock();
            running_ = false;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::pair<CUhostFn, void*>> due_;
    bool started_ = false, running_ = false;
};

// Never destroyed, like the driver: its thread does not end.
Destructors& destructors()
{
    static auto* const instance = new Destructors;
    return *instance;
}

std::shared_ptr<CUuserObject_st> get_object(CUuserObject handle)
{
    const auto found = driver().user_objects.find(handle);
    require(found != driver().user_objects.end(), CUDA_ERROR_INVALID_VALUE);
    return found->second.lock();
}

void require_count(unsigned count) { require(count > 0 && count <= INT_MAX, CUDA_ERROR_INVALID_VALUE); }

// What a program gives back without having it would be another's reference.
void release_owned(const std::shared_ptr<CUuserObject_st>& object, unsigned count)
{
    if (object->owned < count)
        throw Failure{CUDA_ERROR_INVALID_VALUE, std::to_string(count) +
                                                    " references of a user object, and the caller owns " +
                                                    std::to_string(object->owned)};
    object->owned -= count;
    if (object->owned == 0)
        object->self = nullptr;
}

}  // namespace

namespace emu::driver {

bool in_destructor() { return destroys; }

void wait_for_destructors() { destructors().wait(); }

}  // namespace emu::driver

CUuserObject_st::~CUuserObject_st()
{
    driver().user_objects.erase(this);
    destructors().add(destroy, data);
}

CUresult cuUserObjectCreate(CUuserObject* object, void* data, CUhostFn destroy, unsigned count,
                            unsigned flags)
{
    return call("cuUserObjectCreate", Needs::Driver, [&] {
        require(object && destroy && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CUDA_ERROR_INVALID_VALUE);
        require_count(count);
        auto made = std::make_shared<CUuserObject_st>(data, destroy, count);
        driver().user_objects[made.get()] = made;
        *object = made.get();
        made->self = std::move(made);
    });
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned count)
{
    return call("cuUserObjectRetain", Needs::Driver, [&] {
        const auto object = get_object(handle);
        require_count(count);
        object->owned += count;
        object->self = object;
    });
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned count)
{
    return call("cuUserObjectRelease", Needs::Driver, [&] {
        const auto object = get_object(handle);
        require_count(count);
        release_owned(object, count);
    });
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned count, unsigned flags)
{
    return call("cuGraphRetainUserObject", Needs::Driver, [&] {
        const auto graph = get_graph(handle);
        const auto object = get_object(object_handle);
        require_count(count);
        require(flags <= CU_GRAPH_USER_OBJECT_MOVE, CUDA_ERROR_INVALID_VALUE);
        if (flags == CU_GRAPH_USER_OBJECT_MOVE)
            release_owned(object, count);
        graph->objects[object] += count;
    });
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle, unsigned count)
{
    return call("cuGraphReleaseUserObject", Needs::Driver, [&] {
        const auto graph = get_graph(handle);
        const auto held = graph->objects.find(get_object(object_handle));
        require_count(count);
        require(held != graph->objects.end() && held->second >= count, CUDA_ERROR_INVALID_VALUE);
        held->second -= count;
        if (held->second == 0)
            graph->objects.erase(held);
    });
}
