// A tuning file in a folder where others write as well.
#include "../../host/devices.hpp"
#include "src/tune/store.hpp"
#include "src/tuning/tuning.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace hg::bench {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

// Where root runs the test: another user, for as long as this lives.
class AsNobody {
public:
    AsNobody() : is_root_(geteuid() == 0)
    {
        if (is_root_) {
            EXPECT_EQ(seteuid(nobody), 0);
        }
    }
    ~AsNobody()
    {
        if (is_root_) {
            EXPECT_EQ(seteuid(0), 0);
        }
    }
    AsNobody(const AsNobody&) = delete;
    AsNobody& operator=(const AsNobody&) = delete;

private:
    bool is_root_;
};

class StoreSafety : public testing::Test {
protected:
    StoreSafety()
    {
        std::string name = testing::TempDir() + "hgemm_safety_XXXXXX";
        folder = mkdtemp(name.data());
        fs::permissions(folder, fs::perms::all);
        path = folder / "file";
        lock = folder / "file.lock";
    }
    ~StoreSafety() override { fs::remove_all(folder); }

    // Why it is not written; "" if it is.
    std::string write(const fs::path& file, double lock_seconds = 10)
    {
        try {
            Store(file, origin, lock_seconds).write({{key, entry_line(key, "host_blocked", 1.5, 2, 0.01)}});
        } catch (const std::exception& error) {
            return error.what();
        }
        return "";
    }
    static fs::perms mode(const fs::path& file) { return fs::status(file).permissions(); }
    std::string doubt() const
    {
        std::string text, doubt;
        bool is_missing = false;
        EXPECT_EQ(read_tuning_file(path.c_str(), text, is_missing, doubt), nullptr);
        return doubt;
    }

    fs::path folder, path, lock;
    const TuningOrigin origin{h200, 132};
    const std::string key = "1x1x1,f16,tn";
};

TEST_F(StoreSafety, makes_no_file_where_a_link_leads)
{
    fs::create_symlink("elsewhere", path);
    EXPECT_EQ(write(path), "cannot write " + (folder / "elsewhere").string() +
                               ": a link leads there, and no file is there");
    EXPECT_FALSE(fs::exists(folder / "elsewhere"));
    EXPECT_FALSE(fs::exists(folder / "elsewhere.lock"));
    fs::remove(path);
    fs::create_symlink("elsewhere", lock);
    EXPECT_EQ(write(path), "cannot write " + lock.string() + ": it is a link");
    EXPECT_FALSE(fs::exists(folder / "elsewhere"));
}

TEST_F(StoreSafety, follows_no_link_of_another_user)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "needs root, who alone can make links of another user";
    ASSERT_EQ(write(folder / "elsewhere"), "");
    fs::create_symlink("elsewhere", path);
    EXPECT_EQ(write(path), "");
    ASSERT_EQ(lchown(path.c_str(), nobody, nobody), 0);
    EXPECT_EQ(write(path), "cannot write " + path.string() + ": it is a link of another user");
}

TEST_F(StoreSafety, waits_for_a_lock_no_longer_than_it_may)
{
    ASSERT_EQ(write(path), "");
    const int other = open(lock.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(other, 0);
    ASSERT_EQ(flock(other, LOCK_EX), 0);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(write(path, 0.25),
              "cannot write " + lock.string() + ": another process holds it for more than 0.25 s");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    std::thread later([other] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        close(other);
    });
    EXPECT_EQ(write(path, 60), "");
    later.join();
}

TEST_F(StoreSafety, locks_what_it_may_only_read)
{
    std::ofstream(lock).close();
    fs::permissions(lock, fs::perms{0444});
    const AsNobody other;
    EXPECT_EQ(write(path), "");
    EXPECT_EQ(mode(lock), fs::perms{0444});
}

TEST_F(StoreSafety, waits_for_no_pipe)
{
    ASSERT_EQ(mkfifo(lock.c_str(), 0666), 0);
    EXPECT_EQ(write(path), "cannot write " + lock.string() + ": not a regular file");
}

TEST_F(StoreSafety, leaves_no_file_that_others_may_write)
{
    const mode_t mask = umask(0);
    const std::string wrong = write(path);
    umask(mask);
    EXPECT_EQ(wrong, "");
    EXPECT_EQ(mode(path), fs::perms{0644});
    EXPECT_EQ(mode(lock), fs::perms{0644});
    fs::permissions(path, fs::perms{0666});
    const Store store(path, origin);
    ASSERT_EQ(store.remarks().size(), 1u);
    EXPECT_EQ(store.remarks()[0],
              path.string() + " may have lines of others: others may write it, its mode is 0666");
    EXPECT_EQ(write(path), "");
    EXPECT_EQ(mode(path), fs::perms{0644});
}

TEST_F(StoreSafety, says_who_else_may_have_written_a_file)
{
    ASSERT_EQ(write(path), "");
    EXPECT_EQ(doubt(), "");
    fs::permissions(path, fs::perms{0602});
    EXPECT_EQ(doubt(), "others may write it, its mode is 0602");
    fs::permissions(path, fs::perms{0620});
    EXPECT_EQ(doubt(), "others may write it, its mode is 0620");
    if (geteuid() != 0)
        return;
    ASSERT_EQ(chown(path.c_str(), nobody, nobody), 0);
    EXPECT_EQ(doubt(), "it belongs to another user, number 65534");
}

}  // namespace
}  // namespace hg::bench
