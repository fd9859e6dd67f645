#include "command/run.hpp"

#include "command/events.hpp"
#include "command/program.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace emu::command {
namespace {

void say(const std::string& text) { fmt::print(stderr, "ptxrace: {}\n", text); }

// A file that is gone in the end.
class TemporaryFile {
public:
    TemporaryFile()
    {
        // The program may change its folder.
        const auto folder = std::filesystem::absolute(std::filesystem::temp_directory_path());
        name_ = (folder / "ptxrace-XXXXXX").string();
        const int file = mkstemp(name_.data());
        if (file < 0)
            throw std::runtime_error(fmt::format("cannot write {}: {}", name_, std::strerror(errno)));
        close(file);
    }
    ~TemporaryFile() { unlink(name_.c_str()); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& name() const { return name_; }

private:
    std::string name_;
};

void set(const char* name, const std::string& value)
{
    if (!value.empty())
        setenv(name, value.c_str(), 1);
}

void set_environment(const RunOptions& options, const std::string& libraries, const std::string& events)
{
    const char* before = std::getenv("LD_LIBRARY_PATH");
    set("LD_LIBRARY_PATH", before && *before ? libraries + ":" + before : libraries);
    set("EMU_ARCH", options.architecture);
    set("EMU_STRICT", options.strict);
    set("EMU_CHECK", options.check);
    set("EMU_SEED", options.seed);
    set("EMU_SM_COUNT", options.sms);
    set("EMU_DEVICES", options.devices);
    set("EMU_OVERLAP", options.overlap ? "1" : "");
    set("EMU_JSON", events);
}

// Hands on what would end this process, which has a file to remove and reports to write: the program gets
// it.
class HandedOn {
public:
    HandedOn()
    {
        sigemptyset(&signals_);
        for (const int signal : {SIGTERM, SIGHUP})
            sigaddset(&signals_, signal);
        sigprocmask(SIG_BLOCK, &signals_, &before_);
    }
    void start(pid_t program) const
    {
        program_ = program;
        for (const int signal : {SIGTERM, SIGHUP})
            if (std::signal(signal, [](int number) { kill(program_, number); }) == SIG_IGN)
                std::signal(signal, SIG_IGN);  // as nohup wants
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    // In the program's process.
    void forget() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

private:
    static inline volatile pid_t program_ = 0;
    sigset_t signals_, before_;
};

[[noreturn]] void become(const RunOptions& options, const std::string& path)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    std::vector<char*> words;
    for (const std::string& word : options.program)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(path.c_str(), words.data());
    const int why = errno;  // which printing may change
    say(fmt::format("cannot execute {}: {}", path, std::strerror(why)));
    _exit(why == ENOENT ? not_found : not_executable);
}

// Also with nothing, before the program runs, which may take hours: can the file be written?
void write_json(const std::string& file, const std::string& text)
{
    if (file.empty())
        return;
    std::ofstream json(file);
    json << text;
    if (!json.flush())
        throw std::runtime_error(fmt::format("cannot write {}", file));
}

// Ctrl-C is for the program; whoever started it waits for what it makes of that.
int wait_for(pid_t child)
{
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            throw std::runtime_error(fmt::format("waitpid: {}", std::strerror(errno)));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string library_folder()
{
    const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    for (const char* folder : {"lib", PTXRACE_LIBRARIES})
        if (const auto libraries = (here / folder).lexically_normal(); exists(libraries / "libcuda.so.1"))
            return libraries.string();
    throw std::runtime_error(
        fmt::format("there is no {}/libcuda.so.1", (here / PTXRACE_LIBRARIES).string()));
}

int run(const RunOptions& options)
{
    const std::string libraries = library_folder();
    const Program program = inspect(options.program.front());
    if (program.path.empty()) {
        say(fmt::format("no program '{}'", options.program.front()));
        return not_found;
    }
    const auto obstacles = command::obstacles(program, libraries);
    for (const std::string& text : obstacles)
        say(text);
    if (!obstacles.empty() && !options.anyway) {
        say("not run; --anyway runs it all the same");
        return failed;
    }
    if (!program.rpath.empty())
        say(fmt::format("{} has an RPATH, {}, which is searched before the emulator's folder", program.path,
                        program.rpath));
    write_json(options.json, "");
    const HandedOn signals;
    const TemporaryFile file;
    set_environment(options, libraries, file.name());
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0)
        throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
    if (child == 0) {
        signals.forget();
        become(options, program.path);
    }
    signals.start(child);
    const int status = wait_for(child);
    const Events events = read_events(file.name());
    if (!options.quiet)
        say(summary(events));
    write_json(options.json, document(events, options.program, status));
    return events.any_defect() ? options.defect_status : status;
}

}  // namespace emu::command
