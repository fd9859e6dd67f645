// Between libhgemm and loggers in Python. Threads may outlive the interpreter, and handles keep their
// loggers. A thread that asks an interpreter which has ended for its lock is ended itself, by an exception
// that must not pass a frame of C++.
#include <pthread.h>

#include <atomic>

namespace {

using Logger = void (*)(void* data, const char* line);

std::atomic<bool> ended = false;
pthread_rwlock_t calls = PTHREAD_RWLOCK_INITIALIZER;  // read by each call of a logger

}  // namespace

extern "C" {

// The hgemm_logger_t. data: the logger in Python, as ctypes makes it.
__attribute__((visibility("default"))) void hgemm_python_log(void* data, const char* line)
{
    if (ended)
        return;
    pthread_rwlock_rdlock(&calls);
    if (!ended)
        reinterpret_cast<Logger>(data)(nullptr, line);
    pthread_rwlock_unlock(&calls);
}

// No logger runs any more when it returns. The caller does not hold the interpreter's lock, which loggers
// wait for.
__attribute__((visibility("default"))) void hgemm_python_end_logs()
{
    ended = true;
    pthread_rwlock_wrlock(&calls);
    pthread_rwlock_unlock(&calls);
}

// In a forked child, which has none of the other threads that were in a logger.
__attribute__((visibility("default"))) void hgemm_python_forked() { calls = PTHREAD_RWLOCK_INITIALIZER; }
}
