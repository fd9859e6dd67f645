# Sourced by tests/demo, tests/check and tests/configurations: installs what is missing, configures and builds.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build

# Debian's names of the packages that are not there yet.
missing_packages() {
    command -v g++ >/dev/null || echo g++
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    command -v pkg-config >/dev/null || echo pkg-config
    pkg-config --exists openblas 2>/dev/null || echo libopenblas-dev
    pkg-config --exists gtest 2>/dev/null || echo libgtest-dev
    pkg-config --exists fmt 2>/dev/null || echo libfmt-dev
    [ -e /usr/include/nlohmann/json.hpp ] || pkg-config --exists nlohmann_json 2>/dev/null || echo nlohmann-json3-dev
    [ -e /usr/include/CLI/CLI.hpp ] || pkg-config --exists CLI11 2>/dev/null || echo libcli11-dev
}

# The same for what only tests of bindings, packages and the binary interface need.
missing_test_packages() {
    command -v gfortran >/dev/null || echo gfortran
    command -v cargo >/dev/null || echo cargo
    command -v abidiff >/dev/null || echo abigail-tools
    command -v dpkg-shlibdeps >/dev/null || echo dpkg-dev
    command -v file >/dev/null || echo file
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}

# list_missing <function that lists packages>...
list_missing() {
    local list
    for list in "$@"; do
        "$list"
    done
}

# install_missing <function that lists packages>...
install_missing() {
    local packages as_root=()
    mapfile -t packages < <(list_missing "$@")
    if [ ${#packages[@]} -eq 0 ]; then
        return
    fi
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo)
    fi
    if ! command -v apt-get >/dev/null || ! command -v "${as_root[@]:-true}" >/dev/null; then
        echo "Please install: ${packages[*]} (Debian's names), for which this needs apt-get and root or sudo." >&2
        echo "The library alone needs a C++ compiler, make and CMake: cmake -S . -B build -DHGEMM_TESTS=OFF" >&2
        exit 1
    fi
    echo "Installing: ${packages[*]}"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
}

# What the scripts are about to do: say_missing <function that lists packages>...
say_missing() {
    local packages
    mapfile -t packages < <(list_missing "$@")
    if [ ${#packages[@]} -eq 0 ]; then
        echo "Nothing has to be installed."
    else
        echo "Would be installed with apt-get: ${packages[*]}"
    fi
}

# Is there a GPU that the library serves?
has_gpu() {
    [[ $'\n'$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) =~ $'\n'([89]|[1-9][0-9]+)\. ]]
}

# build_in <folder> <target> <option of cmake>...
build_in() {
    local generator=()
    if [ ! -e "$1/CMakeCache.txt" ]; then
        generator=(-G Ninja)
    fi
    cmake -S "$root" -B "$1" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DHGEMM_TESTS=ON "${@:3}"
    cmake --build "$1" --parallel "$(nproc)" --target "$2"
}
