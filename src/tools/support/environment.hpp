// A variable of the environment that is set for as long as this lives, and then is as it was before; an
// empty value leaves it alone.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace hg::test {

class Variable {
public:
    Variable(const char* name, const std::string& value) : name_(value.empty() ? nullptr : name)
    {
        if (!name_)
            return;
        if (const char* const old = std::getenv(name_))
            old_ = old;
        setenv(name_, value.c_str(), 1);
    }
    ~Variable()
    {
        if (name_ && old_)
            setenv(name_, old_->c_str(), 1);
        else if (name_)
            unsetenv(name_);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> old_;
};

}  // namespace hg::test
