// The tuning file: where it lies, and what is read of it.
#include "src/tuning/key.hpp"
#include "tuning_fixture.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace hg {
namespace {

TEST_F(TuningFile, OfAnotherOriginIsNotUsed)
{
    NEEDS_CUDA_BUILD();
    const std::string good = line(layer, splitk);
    write("libhgemm-tuning 2\n" + header().substr(header().find('\n') + 1) + good);
    expect_unused("it is of another format, version '2', not '1'");
    write(header(h100) + good);
    expect_unused("it is of another device ");
    Device fewer = h200;
    fewer.sm_count = 114;
    write(header(fewer) + good);
    expect_unused("it is of another device ");
    std::string other = header();
    write(other.insert(other.size() - 1, "+") + good);
    expect_unused("it is of another library ");
    write("");
    expect_unused("its header is not complete");
    write(header().substr(0, header().size() / 2));
    expect_unused("it ");
    write("\n" + header() + good);
    expect_unused("it has no line 'libhgemm-tuning' where one must be");
    write(std::string(300, '\x1b') + "\n" + good);
    expect_unused("it has no line ");
}

TEST_F(TuningFile, BadLinesAreSkippedOneByOne)
{
    NEEDS_CUDA_BUILD();
    const std::string key = tuning_key(layer, Mode::Default);
    const std::pair<std::string, const char*> bad[] = {
        {"x", "the first word is no problem"},
        {"64x4096,f16 " + std::string(splitk) + measured, "the first word is no problem"},
        {"64xax8,f16 " + std::string(splitk) + measured, "the first word is no problem"},
        {key + '\n', "the second word is no kernel"},
        {line(key, "/split=2"), "the second word is no kernel"},
        {line(key, std::string(200, 'k')), "the second word is no kernel"},
        {line(key, "sm90_splitk_64x64/split=0"), "the kernel has an unknown setting"},
        {line(key, "sm90_splitk_64x64/slices=2"), "the kernel has an unknown setting"},
        {line(key, "sm90_splitk_64x64/"), "the kernel has an unknown setting"},
        {key + ' ' + splitk + '\n', "us, built_in_us, spread and date must follow the kernel"},
        {key + ' ' + splitk + " us=1 built_in_us=2 spread=x date=2026-01-31\n", "us, built_in_us"},
        {key + ' ' + splitk + " us=1 built_in_us=2 spread=0.1 date=2026-1-31\n", "us, built_in_us"},
        {line(key, splitk).substr(0, line(key, splitk).size() - 3) + '\n', "us, built_in_us"},
        {line(key, splitk).insert(8, 1, '\0'), "it has control characters"},
        {line(key, splitk).insert(8, 1, '\t'), "it has control characters"},
        {std::string(2000, 'x') + '\n', "it is too long"}};
    const Problem other = linear_layer(1, 4096, 4096);
    for (const auto& [text, why] : bad) {
        write(header() + text + (text.ends_with('\n') ? "" : "\n") + line(other, splitk));
        open();
        EXPECT_FALSE(is_tuned(layer)) << text;
        EXPECT_TRUE(is_tuned(other)) << text;
        EXPECT_TRUE(contains(log(), std::string("line 4 is skipped: ") + why)) << text << log();
    }
    std::string many = header();
    for (int i = 0; i < 100; ++i)
        many += "x\n";
    write(many + line(layer, splitk));
    open();
    EXPECT_TRUE(is_tuned(layer));
    EXPECT_TRUE(contains(log(), ": 92 more lines are skipped")) << log();
}

TEST_F(TuningFile, LinesMayEndInAnyWay)
{
    NEEDS_CUDA_BUILD();
    std::string text = header() + line(layer, splitk);
    text.pop_back();
    write(text);
    open();
    EXPECT_TRUE(is_tuned(layer)) << log();
    for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2)
        text.insert(at, "\r");
    write(text + "\r\n# end");
    open();
    EXPECT_TRUE(is_tuned(layer)) << log();
}

TEST_F(TuningFile, LastLineOfAProblemHolds)
{
    NEEDS_CUDA_BUILD();
    const std::string other = "sm90_splitk_64x64/split=1/swap_ab=1/pdl=late";
    write(header() + line(layer, splitk) + line(linear_layer(1, 8, 8), splitk) + line(layer, other));
    open();
    EXPECT_EQ(plan(layer).split, 1);
}

TEST_F(TuningFile, OfOtherKindsIsNotRead)
{
    const auto unreadable = [&](const fs::path& file) {
        std::string text, doubt;
        bool is_missing = false;
        const char* const why = read_tuning_file(file.c_str(), text, is_missing, doubt);
        EXPECT_EQ(is_missing, !fs::exists(file));
        return std::string(why ? why : "");
    };
    EXPECT_EQ(unreadable(path), "No such file or directory");
    EXPECT_EQ(unreadable(folder), "not a regular file");
    EXPECT_EQ(unreadable("/dev/zero"), "not a regular file");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(unreadable(path), "not a regular file");
    fs::remove(path);
    write("text");
    fs::create_symlink("file", folder / "link");
    EXPECT_EQ(unreadable(folder / "link"), "");
    fs::resize_file(path, max_tuning_bytes);
    EXPECT_EQ(unreadable(path), "");
    fs::resize_file(path, max_tuning_bytes + 1);
    EXPECT_EQ(unreadable(path), "larger than 16 MiB");
    if (geteuid() != 0) {
        fs::permissions(path, fs::perms::none);
        EXPECT_EQ(unreadable(path), "Permission denied");
    }
}

TEST_F(TuningFile, ThatOthersMayWriteIsLogged)
{
    NEEDS_CUDA_BUILD();
    write(header() + line(layer, splitk));
    fs::permissions(path, fs::perms{0644});
    open();
    EXPECT_FALSE(contains(log(), "others may write it")) << log();
    fs::permissions(path, fs::perms{0666});
    open();
    EXPECT_TRUE(is_tuned(layer));
    EXPECT_TRUE(contains(log(), "': others may write it, its mode is 0666")) << log();
}

TEST_F(TuningFile, ThatIsNamedAndMissingIsLogged)
{
    NEEDS_CUDA_BUILD();
    expect_unused("No such file or directory");
    EXPECT_TRUE(contains(log(), path.string())) << log();
}

TEST_F(TuningFile, LiesInTheUsersCache)
{
    NEEDS_CUDA_BUILD();
    const test::Variable home("HOME", "/home/user");
    {
        const test::Variable cache("XDG_CACHE_HOME", "/var/cache/user");
        EXPECT_EQ(default_tuning_path(h200, 132),
                  "/var/cache/user/libhgemm/a_test_device_cc90_132sms.tuning");
    }
    Device odd = h200;
    std::strcpy(odd.name, "../A\xff\n/B");
    const test::Variable relative("XDG_CACHE_HOME", "cache");
    EXPECT_EQ(default_tuning_path(odd, 7), "/home/user/.cache/libhgemm/___A___B_cc90_7sms.tuning");
    {
        const test::Variable no_home("HOME", "home");
        EXPECT_EQ(default_tuning_path(h200, 132), "");
    }
}

TEST_F(TuningFile, IsReadUnlessItIsOff)
{
    NEEDS_CUDA_BUILD();
    const test::Variable cache("XDG_CACHE_HOME", folder);
    Log log{};
    log.level = LogLevel::Plan;
    log.logger = [](void* data, const char* text) {
        static_cast<std::vector<std::string>*>(data)->push_back(text);
    };
    log.data = &lines;
    const test::Variable named("HGEMM_TUNING", "off");
    setenv("HGEMM_TUNING", "", 1);
    EXPECT_FALSE(Tuning::open(h200, 132, log));
    EXPECT_EQ(lines.size(), 0u) << lines[0];
    path = default_tuning_path(h200, 132);
    fs::create_directories(path.parent_path());
    write(header() + line(layer, splitk));
    EXPECT_TRUE(Tuning::open(h200, 132, log));
    const test::Variable off("HGEMM_TUNING", "off");
    EXPECT_FALSE(Tuning::open(h200, 132, log));
}

}  // namespace
}  // namespace hg
