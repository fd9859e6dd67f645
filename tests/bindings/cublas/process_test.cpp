// Whole programs under LD_PRELOAD: how they come to cuBLAS, what they see, and what the log says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

struct Outcome {
    int status;
    std::string text;

    bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

Outcome run(const std::string& program, const std::string& settings = "HGEMM_SHIM_LOG=summary",
            const std::string& preload = "LD_PRELOAD=" SHIM)
{
    const std::string command = "timeout 60 env " + preload + " " + settings + " " + program + " 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    for (std::array<char, 4096> part; const size_t got = fread(part.data(), 1, part.size(), pipe);)
        text.append(part.data(), got);
    return {pclose(pipe), text};
}

const std::string linked = PROGRAM " ", loader = LOADER " ", plugin = " " PLUGIN_PATH;

constexpr const char* one_served = "hgemm-shim: 1 products of cuBLAS served, 0 passed on (HGEMM_SHIM=on)";

TEST(ShimProcess, serves_a_program_linked_with_versioned_symbols)
{
    const Outcome o = run(linked + "product");
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(o.says("right\n")) << o.text;
    EXPECT_TRUE(o.says(one_served)) << o.text;
}

TEST(ShimProcess, serves_a_plugin_however_it_was_loaded)
{
    for (const char* how : {"local", "global"}) {
        const Outcome o = run(loader + how + plugin);
        EXPECT_EQ(o.status, 0);
        EXPECT_TRUE(o.says("right\n")) << o.text;
        EXPECT_TRUE(o.says(one_served)) << o.text;
    }
}

const std::string unseen =
    " is loaded, but none of its products came through the shim: there was none, or the program finds the "
    "functions by dlsym() or binds them deeply (README.md, Limits)\n";

TEST(ShimProcess, does_not_reach_a_plugin_that_binds_deeply)
{
    const Outcome o = run(loader + "deepbind" + plugin);
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(o.says("right\n")) << o.text;
    EXPECT_TRUE(o.says("libcublas.so.13" + unseen)) << o.text;
    EXPECT_EQ(run(loader + "deepbind" + plugin, "").text, "right\n");
}

TEST(ShimProcess, does_not_see_functions_that_are_looked_up)
{
    const Outcome o = run(loader + "look-up" + plugin);
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(o.says("right\n")) << o.text;
    EXPECT_TRUE(o.says("libcublas.so.13" + unseen)) << o.text;
    // Strict mode says so without a log, and nothing else.
    EXPECT_TRUE(run(loader + "look-up" + plugin, "HGEMM_SHIM_STRICT=on").says("libcublas.so.13" + unseen));
    EXPECT_EQ(run(loader + "local" + plugin, "HGEMM_SHIM_STRICT=on").text, "right\n");
}

TEST(ShimProcess, serves_functions_that_are_looked_up_under_the_audit_library)
{
    const Outcome o = run(loader + "look-up" + plugin, "HGEMM_SHIM_LOG=summary LD_AUDIT=" AUDIT);
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(o.says("right\n")) << o.text;
    EXPECT_TRUE(o.says(one_served)) << o.text;
    const Outcome alone = run(loader + "look-up" + plugin, "LD_AUDIT=" AUDIT, "");
    EXPECT_EQ(alone.status, 0);
    EXPECT_EQ(alone.text, "right\n");
}

// Of what was not looked up nothing changes.
TEST(ShimProcess, the_audit_library_leaves_the_rest_alone)
{
    const std::string settings = "HGEMM_SHIM_LOG=summary LD_AUDIT=" AUDIT;
    EXPECT_TRUE(run(linked + "product", settings).says(one_served));
    EXPECT_TRUE(run(loader + "local" + plugin, settings).says(one_served));
    EXPECT_TRUE(run(loader + "deepbind" + plugin, settings).says("libcublas.so.13" + unseen));
    EXPECT_TRUE(run(loader + "again" + plugin, settings).says("3 products of cuBLAS served, 0 passed on"));
    EXPECT_TRUE(run(loader + "unload " SHIM + plugin, settings, "").says("unloaded, child ended with 0\n"));
}

TEST(ShimProcess, survives_a_plugin_that_is_unloaded)
{
    const Outcome o = run(loader + "again" + plugin);
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(o.says("right\nright\nright\n")) << o.text;
    EXPECT_TRUE(o.says("3 products of cuBLAS served, 0 passed on")) << o.text;
}

TEST(ShimProcess, may_be_unloaded)
{
    const auto without_preload = [](const std::string& rest) {
        return run(loader + "unload " SHIM + rest, "HGEMM_SHIM_LOG=summary", "");
    };
    const Outcome alone = without_preload("");
    EXPECT_EQ(alone.status, 0);
    EXPECT_TRUE(alone.says("gemm 1 matmul 1 destroy 1\n")) << alone.text;
    EXPECT_TRUE(alone.says("unloaded, child ended with 0\n")) << alone.text;
    const Outcome used = without_preload(plugin);
    EXPECT_EQ(used.status, 0);
    EXPECT_TRUE(used.says("right\n")) << used.text;
    EXPECT_TRUE(used.says(one_served)) << used.text;
    EXPECT_TRUE(used.says("unloaded, child ended with 0\n")) << used.text;
}

TEST(ShimProcess, answers_without_a_real_library)
{
    const Outcome o = run(loader + "missing");
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(o.says("gemm 1 matmul 1 destroy 1\n")) << o.text;
    EXPECT_TRUE(o.says("1: no real cuBLAS found")) << o.text;
}

TEST(ShimProcess, is_silent_unless_asked)
{
    const Outcome o = run(loader + "missing", "");
    EXPECT_EQ(o.text, "gemm 1 matmul 1 destroy 1\n");
    EXPECT_EQ(run(linked + "product", "").text, "right\n");
    EXPECT_EQ(run("true").text, "");
}

TEST(ShimProcess, passes_everything_on_to_a_version_that_it_does_not_know)
{
    for (const char* major : {"11", "14"}) {
        const Outcome o =
            run(linked + "product", "HGEMM_SHIM_LOG=summary FAKE_CUBLAS_MAJOR=" + std::string(major));
        EXPECT_EQ(o.status, 0);
        EXPECT_TRUE(o.says("right\n")) << o.text;
        EXPECT_TRUE(o.says("0 products of cuBLAS served, 1 passed on")) << o.text;
        EXPECT_TRUE(o.says("1: a cuBLAS version that is not known")) << o.text;
    }
    const Outcome o = run(linked + "product", "HGEMM_SHIM_LOG=summary FAKE_CUBLAS_MAJOR=12");
    EXPECT_TRUE(o.says(one_served)) << o.text;
}

// Before 12.5 cuBLAS has no groups: all else is served.
TEST(ShimProcess, serves_a_cublas_without_groups)
{
    const Outcome o = run(linked + "groups", "LD_LIBRARY_PATH=" OLD_CUBLAS ":$LD_LIBRARY_PATH "
                                             "FAKE_CUBLAS_MAJOR=12 HGEMM_SHIM_LOG=summary");
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(o.says("groups 1\nright\n")) << o.text;
    EXPECT_TRUE(o.says("1 products of cuBLAS served, 1 passed on")) << o.text;
    const Outcome now = run(linked + "groups");
    EXPECT_TRUE(now.says("groups 7\nright\n")) << now.text;
}

TEST(ShimProcess, survives_a_fork)
{
    const Outcome after = run(linked + "fork-after");
    EXPECT_EQ(after.status, 0);
    EXPECT_TRUE(after.says("child: status 1, destroyed 0\n")) << after.text;
    EXPECT_TRUE(after.says("child ended with 0\nright\n")) << after.text;
    EXPECT_TRUE(after.says("hgemm-shim: 0 products of cuBLAS served, 1 passed on")) << after.text;
    EXPECT_TRUE(after.says("hgemm-shim: 2 products of cuBLAS served, 0 passed on")) << after.text;

    const Outcome before = run(linked + "fork-before");
    EXPECT_EQ(before.status, 0);
    EXPECT_TRUE(before.says("child: right\n")) << before.text;
    EXPECT_TRUE(before.says("child ended with 0\nright\n")) << before.text;
}

TEST(ShimProcess, survives_forks_beside_calls)
{
    const Outcome o = run(linked + "fork-beside-threads", "");
    EXPECT_EQ(o.status, 0);
    EXPECT_EQ(o.text, "0 failed\n");
}

TEST(ShimProcess, survives_calls_while_the_process_ends)
{
    const Outcome first = run(linked + "at-exit");
    EXPECT_EQ(first.status, 0);
    EXPECT_TRUE(first.says("at exit: right\ndestroyed 0\n")) << first.text;
    const Outcome late = run(linked + "destroy-at-exit");
    EXPECT_EQ(late.status, 0);
    EXPECT_TRUE(late.says("right\nat exit: destroyed 0\n")) << late.text;
    const Outcome never = run(linked + "leak");
    EXPECT_EQ(never.status, 0);
    EXPECT_TRUE(never.says(one_served)) << never.text;
}

TEST(ShimProcess, reads_its_settings)
{
    EXPECT_TRUE(run(linked + "product", "HGEMM_SHIM=off HGEMM_SHIM_LOG=summary").says("1: HGEMM_SHIM=off"));
    const Outcome calls = run(linked + "product", "HGEMM_SHIM_LOG=calls");
    EXPECT_TRUE(calls.says("hgemm-shim: cublasGemmEx nn 24x17x40 f16 f16 f16 compute 68: served\n"))
        << calls.text;
    const Outcome verify = run(linked + "product", "HGEMM_SHIM=verify HGEMM_SHIM_LOG=summary");
    EXPECT_TRUE(verify.says("cublasGemmEx nn 24x17x40 f16 to f16: 1 compared, largest difference 0.00e+00"))
        << verify.text;
    const Outcome invariant =
        run(linked + "product", "HGEMM_SHIM_MODE=batch-invariant HGEMM_SHIM_LOG=summary");
    EXPECT_TRUE(invariant.says(one_served)) << invariant.text;
    EXPECT_TRUE(
        invariant.says("hgemm-shim:   0 half-precision products came from cuBLAS in batch-invariant mode"))
        << invariant.text;
    const std::string file = testing::TempDir() + "shim_" + std::to_string(getpid()) + ".log";
    std::remove(file.c_str());
    EXPECT_EQ(run(linked + "product", "HGEMM_SHIM_LOG=summary HGEMM_SHIM_LOG_FILE=" + file).text,
              "right\n");
    EXPECT_TRUE(run("cat " + file, "").says(one_served));
    EXPECT_EQ(
        run(linked + "product", "HGEMM_BACKEND=host HGEMM_SHIM_STRICT=on HGEMM_SHIM_LOG_FILE=" + file).text,
        "refused\n");
    EXPECT_TRUE(
        run("cat " + file, "").says("refused (HGEMM_SHIM_STRICT): no device or memory for libhgemm"));
}

TEST(ShimProcess, opens_the_log_file_when_there_is_something_to_log)
{
    const std::string file = testing::TempDir() + "shim_later_" + std::to_string(getpid()) + ".log";
    std::remove(file.c_str());
    EXPECT_EQ(run(linked + "product", "HGEMM_SHIM_LOG_FILE=" + file).text, "right\n");
    EXPECT_NE(access(file.c_str(), F_OK), 0);
    EXPECT_EQ(run(linked + "log-later", "HGEMM_SHIM_LOG_FILE=" + file).text, "set 0\nright\n");
    EXPECT_TRUE(run("cat " + file, "").says(one_served));
    std::remove(file.c_str());
}

TEST(ShimProcess, says_which_settings_it_does_not_know)
{
    const Outcome o =
        run(linked + "product", "HGEMM_SHIM=maybe HGEMM_SHIM_LOG=loud HGEMM_SHIM_MODE=Default "
                                "HGEMM_SHIM_STRICT=yes");
    EXPECT_EQ(o.status, 0);
    EXPECT_EQ(o.text, "hgemm-shim: HGEMM_SHIM is 'maybe', must be off, on or verify\n"
                      "hgemm-shim: HGEMM_SHIM_MODE is 'Default', must be default, batch-invariant or tree\n"
                      "hgemm-shim: HGEMM_SHIM_STRICT is 'yes', must be off, on, 0 or 1\n"
                      "hgemm-shim: HGEMM_SHIM_LOG is 'loud', must be off, summary or calls\nright\n");
}

// A pipe that nobody reads would be waited for.
TEST(ShimProcess, logs_to_regular_files_alone)
{
    const std::string pipe = testing::TempDir() + "shim_" + std::to_string(getpid()) + ".pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& path : {pipe, std::string("/dev/full"), testing::TempDir()}) {
        const Outcome o = run(linked + "product", "HGEMM_SHIM_LOG=summary HGEMM_SHIM_LOG_FILE=" + path);
        EXPECT_EQ(o.status, 0) << path;
        EXPECT_TRUE(o.says("'" + path + "' (HGEMM_SHIM_LOG_FILE) cannot be written to: ")) << o.text;
        EXPECT_TRUE(o.says(one_served)) << o.text;
    }
    std::remove(pipe.c_str());
}

TEST(ShimProcess, logs_values_of_the_environment_in_one_line)
{
    const Outcome o = run(linked + "product", "HGEMM_SHIM_LOG=summary HGEMM_KERNEL='a\nb'");
    EXPECT_TRUE(o.says("a\\x0ab")) << o.text;
    EXPECT_FALSE(o.says("a\nb")) << o.text;
}

TEST(ShimProcess, passes_on_where_libhgemm_has_no_device)
{
    for (const char* backend : {"sm70", "host"}) {
        const Outcome o =
            run(linked + "product", "HGEMM_SHIM_LOG=summary HGEMM_BACKEND=" + std::string(backend));
        EXPECT_EQ(o.status, 0);
        EXPECT_TRUE(o.says("right\n")) << o.text;
        EXPECT_TRUE(o.says("no handle of libhgemm: ")) << o.text;
        EXPECT_TRUE(o.says("1: no device or memory for libhgemm")) << o.text;
    }
}

TEST(ShimProcess, strict_mode_says_what_it_refuses_and_why)
{
    const std::string settings =
        "HGEMM_SHIM_LOG=summary HGEMM_SHIM_MODE=batch-invariant HGEMM_SHIM_STRICT=1 ";
    const Outcome device = run(linked + "product", settings + "HGEMM_BACKEND=host");
    EXPECT_TRUE(device.says("refused\n")) << device.text;
    EXPECT_TRUE(device.says("compute 68: refused (HGEMM_SHIM_STRICT): no device or memory for libhgemm\n"))
        << device.text;
    EXPECT_TRUE(device.says("hgemm-shim: 0 products of cuBLAS served, 0 passed on (HGEMM_SHIM=on)\n"))
        << device.text;
    EXPECT_TRUE(device.says("hgemm-shim:   1 half-precision products refused (HGEMM_SHIM_STRICT)\n"
                            "hgemm-shim:          1: no device or memory for libhgemm\n"))
        << device.text;
    const Outcome launch =
        run(linked + "product", settings + "EMU_FAULTS=cuLaunchKernelEx:1=INVALID_VALUE");
    EXPECT_TRUE(launch.says("refused (HGEMM_SHIM_STRICT): libhgemm declined: hgemm_gemm_ex: "))
        << launch.text;
    const Outcome version = run(linked + "product", settings + "FAKE_CUBLAS_MAJOR=14");
    EXPECT_TRUE(version.says("refused (HGEMM_SHIM_STRICT): a cuBLAS version that is not known"))
        << version.text;
}

TEST(ShimProcess, batch_invariant_mode_says_what_came_from_cublas)
{
    const std::string mode = "HGEMM_SHIM_LOG=summary HGEMM_SHIM_MODE=batch-invariant ";
    for (const auto& [setting, reason] :
         {std::pair{"FAKE_CUBLAS_MAJOR=14", "a cuBLAS version that is not known"},
          {"HGEMM_SHIM=off", "HGEMM_SHIM=off"},
          {"HGEMM_SHIM=verify", "HGEMM_SHIM=verify"}}) {
        const Outcome o = run(linked + "product", mode + setting);
        EXPECT_TRUE(o.says("right\n")) << o.text;
        EXPECT_TRUE(
            o.says("hgemm-shim:   1 half-precision products came from cuBLAS in batch-invariant mode: "
                   "their bits may depend on the batch\nhgemm-shim:          1: " +
                   std::string(reason)))
            << o.text;
    }
}

TEST(ShimProcess, a_failure_of_ours_is_no_failure_of_the_program)
{
    const Outcome launch =
        run(linked + "product", "HGEMM_SHIM_LOG=calls EMU_FAULTS=cuLaunchKernelEx:1=INVALID_VALUE");
    EXPECT_EQ(launch.status, 0);
    EXPECT_TRUE(launch.says("right\n")) << launch.text;
    EXPECT_TRUE(launch.says("declined: hgemm_gemm_ex: ")) << launch.text;
    EXPECT_TRUE(launch.says("1: libhgemm declined")) << launch.text;
    const Outcome load =
        run(linked + "product", "HGEMM_SHIM_LOG=summary EMU_FAULTS=cuLibraryLoadData:1=OUT_OF_MEMORY");
    EXPECT_EQ(load.status, 0);
    EXPECT_TRUE(load.says("right\n")) << load.text;
    EXPECT_TRUE(load.says("1: no device or memory for libhgemm")) << load.text;
    // After the three operands: this product needs no memory.
    const Outcome memory =
        run(linked + "product", "HGEMM_SHIM_LOG=summary EMU_FAULTS=cuMemAlloc:4=OUT_OF_MEMORY");
    EXPECT_EQ(memory.status, 0);
    EXPECT_TRUE(memory.says("right\n")) << memory.text;
    EXPECT_TRUE(memory.says(one_served)) << memory.text;
}

}  // namespace
