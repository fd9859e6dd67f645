// Warps and operations that access the shared memory of a CTA by hand.
#pragma once

#include "check/checker.hpp"
#include "core/state.hpp"

#include <gtest/gtest.h>

namespace emu {

constexpr uint32_t lane_0 = 1;

class CheckerTest : public ::testing::Test {
protected:
    CheckerTest()
    {
        checker.configure(2);
        checker.begin_launch();
        for (int& warp : warps)
            warp = checker.new_warp();
        checker.set_initialised(cta, 0, 4096);
    }

    Actor warp(int index, int line, int lane = -1)
    {
        return {warps[index], Proxy::Generic, line, index, lane};
    }
    Actor operation(int agent, int line, Proxy proxy = Proxy::Async)
    {
        return {agent, proxy, line, -1, -1};
    }
    void read(const Actor& actor, uint32_t offset = 0, uint32_t bytes = 16)
    {
        checker.access(nullptr, cta, offset, bytes, Access::Read, actor);
    }
    void write(const Actor& actor, uint32_t offset = 0, uint32_t bytes = 16)
    {
        checker.access(nullptr, cta, offset, bytes, Access::Write, actor);
    }
    void atomic(const Actor& actor, uint32_t offset = 0, uint32_t bytes = 8)
    {
        checker.access(nullptr, cta, offset, bytes, Access::Atomic, actor);
    }
    void barrier(int from, int to, uint32_t lanes = ~0u)
    {
        SyncClock clock;
        checker.release(warps[from], clock, lanes);
        checker.acquire(warps[to], clock);
    }
    // tcgen05.commit by warp 0 of these operations to a barrier that another warp waits for.
    void commit(std::initializer_list<int> operations, int to)
    {
        const int agent = checker.start_async(warps[0]);
        for (const int operation : operations)
            checker.join_tensor(agent, checker.tensor_clock(operation));
        checker.fence_tensor_before(agent);
        SyncClock done;
        checker.release(agent, done);
        checker.acquire(warps[to], done);
    }
    // All reports so far, as "kind:line"; forgets them.
    std::string reported()
    {
        std::string text;
        for (const Report& report : reports.all())
            text += (text.empty() ? "" : " ") + report.kind + ":" + std::to_string(report.line);
        reports.clear();
        return text;
    }

    Reports reports;
    Checker checker{&reports};
    Cta cta;
    int warps[4];
};

}  // namespace emu
