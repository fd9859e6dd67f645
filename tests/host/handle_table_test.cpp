// White-box tests of the table of handles, with few places and few generations.
#include "src/run/handle_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace hg {
namespace {

using Table = HandleTable<int, 2, 3>;  // 4 places, 7 objects each
constexpr int places = 4, generations = 7;

TEST(HandleTable, FindsWhatIsOpen)
{
    Table table;
    int objects[places];
    std::vector<uintptr_t> handles;
    for (int& object : objects)
        handles.push_back(table.open(table.take(), &object));
    for (int i = 0; i < places; ++i)
        EXPECT_EQ(table.find(handles[static_cast<size_t>(i)]), &objects[i]);
    EXPECT_EQ(table.take(), 0u) << "every place is taken";
    EXPECT_EQ(table.close(handles[2]), &objects[2]);
    EXPECT_EQ(table.find(handles[2]), nullptr);
    EXPECT_EQ(table.close(handles[2]), nullptr) << "closed twice";
    EXPECT_EQ(table.take(), 0u) << "closed, not given back";
    table.give_back(handles[2]);
    EXPECT_NE(table.take(), 0u);
}

TEST(HandleTable, ATakenPlaceIsNoHandle)
{
    Table table;
    const uintptr_t taken = table.take();
    EXPECT_EQ(table.find(taken), nullptr);
    EXPECT_EQ(table.close(taken), nullptr);
    table.give_back(taken);
    EXPECT_EQ(table.find(taken), nullptr);
}

TEST(HandleTable, NoHandleComesTwiceAndAPlaceEndsWithItsGenerations)
{
    Table table;
    int object = 0;
    std::set<uintptr_t> handles;
    while (const uintptr_t taken = table.take()) {
        const uintptr_t handle = table.open(taken, &object);
        EXPECT_TRUE(handles.insert(handle).second) << handle;
        EXPECT_NE(handle % 8, 0u) << "could be a pointer to an object";
        for (const uintptr_t older : handles)
            EXPECT_EQ(table.find(older), older == handle ? &object : nullptr);
        EXPECT_EQ(table.close(handle), &object);
        table.give_back(handle);
    }
    EXPECT_EQ(handles.size(), static_cast<size_t>(places * generations));
}

TEST(HandleTable, WhatIsNoHandleIsNotFound)
{
    Table table;
    int object = 0;
    const uintptr_t handle = table.open(table.take(), &object);
    for (uintptr_t other = 0; other < 1 << 12; ++other)
        EXPECT_EQ(table.find(other), other == handle ? &object : nullptr) << other;
    EXPECT_EQ(table.find(handle ^ UINTPTR_MAX << 32), nullptr);
}

}  // namespace
}  // namespace hg
