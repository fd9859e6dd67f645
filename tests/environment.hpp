// A variable of the environment that is set for as long as this lives; an empty value leaves it alone.
#pragma once

#include <cstdlib>
#include <string>

namespace hg::test {

class Variable {
public:
    Variable(const char* name, const std::string& value) : name_(value.empty() ? nullptr : name)
    {
        if (name_)
            setenv(name_, value.c_str(), 1);
    }
    ~Variable()
    {
        if (name_)
            unsetenv(name_);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
};

}  // namespace hg::test
