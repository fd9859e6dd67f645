// An instruction's modifiers as a set: decoders take those they know, and what is left over is refused.
#pragma once

#include "core/state.hpp"

namespace emu {

class Modifiers {
public:
    Modifiers(const ptx::Instruction& instruction, const Program& program)
        : instruction_(instruction), program_(program), left_(instruction.modifiers)
    {
    }

    // Is it there? Then it is known.
    bool take(std::string_view name)
    {
        for (auto& word : left_)
            if (word == name) {
                word.clear();
                return true;
            }
        return false;
    }

    // The first of the names that is there: its place in the list, or -1.
    int take_one(std::initializer_list<std::string_view> names)
    {
        int place = 0;
        for (const std::string_view name : names) {
            if (take(name))
                return place;
            ++place;
        }
        return -1;
    }

    // The next type from the left; refused if there is none.
    ptx::Type type()
    {
        ptx::Type type;
        if (!take_type(type))
            refuse(instruction_, program_, "no type");
        return type;
    }

    bool take_type(ptx::Type& type)
    {
        for (auto& word : left_)
            if (!word.empty() && ptx::parse_type(word, type)) {
                word.clear();
                ++types_taken_;
                return true;
            }
        return false;
    }
    int types_taken() const { return types_taken_; }

    // Cache hints and the like, which change no value.
    void ignore(std::initializer_list<std::string_view> prefixes)
    {
        for (auto& word : left_)
            for (const std::string_view prefix : prefixes)
                if (std::string_view(word).substr(0, prefix.size()) == prefix)
                    word.clear();
    }

    void done() const
    {
        for (const auto& word : left_)
            if (!word.empty())
                refuse(instruction_, program_, "unknown modifier '." + word + "'");
    }

private:
    const ptx::Instruction& instruction_;
    const Program& program_;
    std::vector<std::string> left_;
    int types_taken_ = 0;
};

// The operand count must be one of a range.
inline void expect_operands(const ptx::Instruction& instruction, const Program& program, size_t least,
                            size_t most)
{
    if (instruction.operands.size() < least || instruction.operands.size() > most)
        refuse(instruction, program, "wrong number of operands");
}

}  // namespace emu
