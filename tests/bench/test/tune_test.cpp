// The parts of hgemm-tune that need no GPU: its stop rule, the logs it reads, the file it writes, and which
// kernels it measures.
#include "../../host/devices.hpp"
#include "src/tools/bench/statistics.hpp"
#include "src/tools/tune/traces.hpp"
#include "src/tune/choices.hpp"
#include "src/tune/contest.hpp"
#include "src/tune/store.hpp"
#include "src/tuning/tuning.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace hg::bench {
namespace {

namespace fs = std::filesystem;

// Times with noise of so much of them, under a clock that gets slower.
Contest compete(const std::vector<double>& us, double noise, unsigned seed, const ContestRules& rules = {})
{
    std::minstd_rand random(seed);
    std::normal_distribution<double> normal(1, noise);
    Contest contest(us.size(), rules);
    for (double clock = 1; !contest.is_over(); clock += 0.02) {
        std::vector<double> round;
        for (const size_t i : contest.alive())
            round.push_back(us[i] * clock * normal(random));
        contest.add_round(round);
    }
    return contest;
}

TEST(Tune, interval_holds_the_median)
{
    const Interval few = interval_of({3, 1, 2});
    EXPECT_EQ(few.low, 1);
    EXPECT_EQ(few.median, 2);
    EXPECT_EQ(few.high, 3);
    std::minstd_rand random(1);
    std::normal_distribution<double> normal(10, 1);
    int held = 0;
    constexpr int trials = 2000;
    for (int trial = 0; trial < trials; ++trial) {
        std::vector<double> values(15);
        std::ranges::generate(values, [&] { return normal(random); });
        const Interval interval = interval_of(values);
        held += interval.low <= 10 && interval.high >= 10;
    }
    EXPECT_GT(held, trials * 94 / 100);
}

TEST(Tune, contest_finds_the_fastest)
{
    int found = 0;
    for (unsigned seed = 1; seed <= 100; ++seed) {
        const Contest contest = compete({10, 11, 9.6, 14, 9.9, 20}, 0.004, seed);
        found += contest.best() == 2;
        EXPECT_LT(contest.alive().size(), 4u);
        EXPECT_EQ(contest.alive()[0], 0u);
    }
    EXPECT_EQ(found, 100);
}

TEST(Tune, contest_ends)
{
    EXPECT_TRUE(Contest(1, {}).is_over());
    const Contest slower = compete({10, 12, 13, 15}, 0.004, 1);
    EXPECT_EQ(slower.alive(), std::vector<size_t>{0});
    EXPECT_EQ(slower.rounds(), ContestRules().min_rounds);
    EXPECT_EQ(slower.best(), 0u);
    EXPECT_LT(compete({10, 10}, 0.001, 1).rounds(), ContestRules().max_rounds);
    EXPECT_EQ(compete({10, 10.01}, 0.2, 1).rounds(), ContestRules().max_rounds);
}

// The same kernel twice is never faster than itself; a few hundredths are seen through as much noise.
TEST(Tune, luck_is_not_speed)
{
    const ContestRules duel{.min_rounds = 9};
    int lucky = 0, seen = 0;
    for (unsigned seed = 1; seed <= 300; ++seed) {
        lucky += is_clearly_faster(compete({10, 10}, 0.01, seed, duel).ratio(1));
        seen += is_clearly_faster(compete({10, 9.6}, 0.01, seed, duel).ratio(1));
    }
    EXPECT_LE(lucky, 1);
    EXPECT_GE(seen, 297);
    EXPECT_FALSE(is_clearly_faster({0.995, 0.996, 0.997}));
    EXPECT_TRUE(is_clearly_faster({0.990, 0.992, 0.994}));
    EXPECT_FALSE(is_clearly_faster({0.90, 0.97, 1.04}));
    EXPECT_TRUE(is_clearly_faster({0.96, 0.97, 0.98}));
}

TEST(Tune, fastest_is_found_and_held_against_the_first)
{
    const std::vector<double> us = {10, 11, 9.6, 14, 9.9, 20};
    std::minstd_rand random(1);
    std::normal_distribution<double> normal(1, 0.004);
    size_t turns = 0;
    const auto turn = [&](size_t i) {
        ++turns;
        return std::optional(us[i] * normal(random));
    };
    const auto found = find_fastest(us.size(), {}, random, turn);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->candidate, 2u);
    EXPECT_NEAR(found->us, 9.6, 0.1);
    EXPECT_NEAR(found->reference_us, 10, 0.1);
    EXPECT_NEAR(found->ratio.median, 0.96, 0.01);
    EXPECT_GE(found->rounds, ContestRules().min_rounds + duel_rounds);
    EXPECT_GT(turns, 2 * us.size());
    const auto alone = find_fastest(1, {}, random, turn);
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->candidate, 0u);
    EXPECT_EQ(alone->us, alone->reference_us);
    const auto stopping = [&](size_t i) { return --turns > 0 ? std::optional(us[i]) : std::nullopt; };
    for (const size_t after : {1, 8, 30}) {
        turns = after;
        EXPECT_FALSE(find_fastest(us.size(), {}, random, stopping)) << after;
    }
}

TEST(Tune, products_are_read_from_logs)
{
    std::istringstream log(
        "hgemm: handle on a GPU, backend sm90\n"
        "hgemm: trace hgemm-bench compare --shapes 64x4096x7168 --dtype bf16 --layout tn\n"
        "hgemm: plan row-major D\n"
        "hgemm: trace hgemm-bench compare --shapes 64x4096x7168 --dtype bf16 --layout tn\r\n"
        "hgemm: trace hgemm-bench compare --shapes 8x8x8x4 --dtype f16 --layout nt --output "
        "bias+gelu\n"
        "hgemm: trace hgemm-bench compare --shapes 8x8 --dtype f16 --layout nt\n"
        "hgemm: trace hgemm-bench compare --shapes 8x8x8 --dtype f16 --layout xy\n"
        "hgemm: trace hgemm-bench compare --shapes 8x8x8 --dtype f8 --layout tn\n"
        "hgemm: trace hgemm-bench compare --shapes 8x8x8 --set llm\n"
        "hgemm: trace hgemm-bench compare --dtype f16\n"
        "hgemm: trace hgemm-bench compare --shapes 8x8x8 --dtype f16 --layout tn --output gelu_erf\n"
        "hgemm: trace hgemm-bench compare --shapes 8x8x8x4 --dtype f16 --layout tn --output shared+bias\n"
        "hgemm: trace grouped row-major D[8][8]\n");
    const Traced traced = read_traces(log);
    EXPECT_EQ(traced.not_understood, 7u);
    ASSERT_EQ(traced.products.size(), 2u);
    EXPECT_EQ(traced.products[0].shape(), "64x4096x7168");
    EXPECT_EQ(traced.products[0].type, HGEMM_BF16);
    EXPECT_EQ(traced.products[1].shape(), "8x8x8x4 bias+gelu");
    EXPECT_EQ(traced.products[1].layout, "nt");
    std::istringstream again("trace hgemm-bench compare --shapes 8x8x8 --dtype f16 --layout tn\n");
    EXPECT_EQ(read_traces(again, 1, 4).products.at(0).shape(), "8x8x8@1+4");
}

class TuneStore : public testing::Test {
protected:
    TuneStore()
    {
        std::string name = testing::TempDir() + "hgemm_store_XXXXXX";
        folder = mkdtemp(name.data());
        path = folder / "new" / "cache" / "file";
    }
    ~TuneStore() override { fs::remove_all(folder); }

    static std::string line(const std::string& key)
    {
        return entry_line(key, "host_blocked", 1.5, 2, 0.01);
    }
    std::string text() const
    {
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    std::vector<std::string> keys() const
    {
        const std::string written = text();
        const TuningText read = parse_tuning(written, origin);
        EXPECT_EQ(read.refusal, "");
        EXPECT_TRUE(read.bad_lines.empty());
        std::vector<std::string> names;
        for (const TuningEntry& entry : read.entries)
            names.emplace_back(entry.key);
        return names;
    }

    fs::path folder, path;
    const TuningOrigin origin{h200, 132};
    const std::string a = "1x1x1,f16,tn", b = "2x2x2,f16,tn", c = "3x3x3,f16,tn";
};

TEST_F(TuneStore, keeps_what_others_wrote)
{
    const Store store(path, origin);
    EXPECT_EQ(fs::status(path.parent_path()).permissions(), fs::perms::owner_all);
    EXPECT_FALSE(fs::exists(path));
    store.write({{b, line(b)}});
    Store(path, origin).write({{c, line(c)}, {a, line(a)}});
    EXPECT_EQ(keys(), (std::vector<std::string>{a, b, c}));
    // The library's own choice has become the fastest.
    store.write({{b, std::nullopt}});
    EXPECT_EQ(keys(), (std::vector<std::string>{a, c}));
}

TEST_F(TuneStore, begins_anew_for_another_build)
{
    TuningOrigin other = origin;
    other.library = "another";
    const Store first(path, other);
    EXPECT_TRUE(first.remarks().empty());
    first.write({{a, line(a)}});
    const Store second(path, origin);
    ASSERT_EQ(second.remarks().size(), 1u);
    EXPECT_EQ(second.remarks()[0].find(path.string() +
                                       " will be begun anew: it is of another library 'another', not '"),
              0u);
    second.write({{b, line(b)}});
    EXPECT_EQ(keys(), (std::vector<std::string>{b}));
}

TEST_F(TuneStore, loses_nothing_when_many_write)
{
    std::vector<std::thread> writers;
    std::set<std::string> wanted;
    for (int i = 0; i < 16; ++i) {
        const std::string key = std::to_string(i + 1) + "x8x8,f16,tn";
        wanted.insert(key);
        writers.emplace_back([this, key] { Store(path, origin).write({{key, line(key)}}); });
    }
    for (std::thread& writer : writers)
        writer.join();
    const std::vector<std::string> found = keys();
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), wanted);
}

TEST_F(TuneStore, leaves_the_old_file_where_there_is_no_room)
{
    const Store store(path, origin);
    store.write({{a, line(a)}});
    const std::string before = text();
    rlimit usual;
    getrlimit(RLIMIT_FSIZE, &usual);
    const rlimit little{100, usual.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    std::string reason;
    try {
        store.write({{b, line(b)}});
    } catch (const std::runtime_error& error) {
        reason = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &usual);
    EXPECT_EQ(reason, "cannot write " + path.string() + ": File too large");
    EXPECT_EQ(text(), before);
    const auto files = std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator());
    EXPECT_EQ(files, 2) << "the file and its lock";
}

TEST_F(TuneStore, names_a_wrong_path)
{
    const auto reason = [&](const fs::path& wrong) {
        try {
            Store(wrong, origin).write({{a, line(a)}});
        } catch (const std::exception& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    std::ofstream(folder / "file") << "text";
    EXPECT_EQ(reason(folder / "file"),
              "cannot replace " + (folder / "file").string() + ": it is no tuning file");
    EXPECT_FALSE(fs::exists(folder / "file.lock"));
    EXPECT_EQ(reason(folder / "file" / "below" / "it"),
              "cannot make " + (folder / "file" / "below").string() + ": Not a directory");
    EXPECT_EQ(reason(folder), "cannot replace " + folder.string() + ": not a regular file");
    fs::create_symlink("loop", folder / "loop");
    EXPECT_EQ(reason(folder / "loop"),
              "cannot write " + (folder / "loop").string() + ": Too many levels of symbolic links");
    fs::create_directory(folder / "taken.lock");
    EXPECT_EQ(reason(folder / "taken"),
              "cannot write " + (folder / "taken.lock").string() + ": not a regular file");
    EXPECT_FALSE(fs::exists(folder / "taken"));
}

TEST_F(TuneStore, follows_links)
{
    fs::create_symlink("below/file", folder / "link");
    fs::create_symlink(folder / "link", folder / "other");
    path = folder / "below" / "file";
    Store(path, origin).write({});
    for (const std::string& key : {a, b}) {
        Store(folder / "other", origin).write({{key, line(key)}});
        EXPECT_TRUE(fs::is_symlink(folder / "link"));
        EXPECT_TRUE(fs::is_symlink(folder / "other"));
    }
    EXPECT_EQ(keys(), (std::vector<std::string>{a, b}));
}

TEST_F(TuneStore, makes_files_as_the_umask_says_and_keeps_their_modes)
{
    const auto mode = [](const fs::path& file) { return fs::status(file).permissions(); };
    const mode_t mask = umask(026);
    Store(path, origin).write({{a, line(a)}});
    umask(mask);
    EXPECT_EQ(mode(path), fs::perms{0640});
    EXPECT_EQ(mode(path.string() + ".lock"), fs::perms{0640});
    fs::permissions(path, fs::perms{0604});
    Store(path, origin).write({{b, line(b)}});
    EXPECT_EQ(mode(path), fs::perms{0604});
}

// A handle on a device of which nothing runs.
void open(Handle& handle, const Device& device)
{
    handle.device = device;
    handle.all_sm_count = device.sm_count;
    ASSERT_EQ(find_backends(device, handle.options, handle.backends, handle.backend_count), ok);
    handle.own.bytes = size_t{192} << 20;
    handle.own.counter_words = counter_words(device, handle.served_by(), handle.own.bytes);
}

TEST(TuneChoices, are_legal_different_and_the_best_come_first)
{
    NEEDS_CUDA_BUILD();
    for (const Device& device : {h200, b200, a100, rtx5090})
        for (const Problem& problem : {linear_layer(64, 4096, 4096), linear_layer(4096, 4096, 4096),
                                       linear_layer(1, 4096, 14336), linear_layer(17, 1001, 999)}) {
            Handle handle{};
            open(handle, device);
            const std::vector<KernelChoice> choices =
                promising_choices(handle, problem, 12, TriedPdl::Each);
            EXPECT_GE(choices.size(), 5u);
            EXPECT_LE(choices.size(), 12u);
            std::set<std::string> texts;
            for (const KernelChoice& choice : choices) {
                texts.insert(choice.text);
                EXPECT_GE(choice.plan.predicted_us, choices[0].plan.predicted_us);
                Plan plan{};
                EXPECT_EQ(make_tuned_plan(choice.text, problem, device, handle.planning_options(),
                                          handle.served_by(), plan),
                          nullptr);
                EXPECT_EQ(text_of(plan), choice.text);
            }
            EXPECT_EQ(texts.size(), choices.size());
        }
}

TEST(TuneChoices, in_batch_invariant_mode_do_not_split_k)
{
    NEEDS_CUDA_BUILD();
    Handle handle{};
    open(handle, h200);
    handle.options.mode = Mode::BatchInvariant;
    for (const KernelChoice& choice :
         promising_choices(handle, linear_layer(64, 4096, 4096), 12, TriedPdl::Each)) {
        EXPECT_EQ(choice.plan.split, 1);
        EXPECT_FALSE(choice.plan.sm90.stream_k);
        EXPECT_STREQ(choice.plan.backend->name, "sm90");
    }
}

// hgemm_tune() times each launch by itself, which shows nothing of how launches overlap.
TEST(TuneChoices, may_leave_pdl_to_the_library)
{
    NEEDS_CUDA_BUILD();
    Handle handle{};
    open(handle, h200);
    const std::vector<KernelChoice> choices =
        promising_choices(handle, linear_layer(64, 4096, 4096), 12, TriedPdl::Own);
    EXPECT_EQ(choices.size(), 12u);
    std::set<std::string> without;
    for (const KernelChoice& choice : choices)
        without.insert(choice.text.substr(0, choice.text.rfind('/')));
    EXPECT_EQ(without.size(), choices.size());
}

}  // namespace
}  // namespace hg::bench
