// Compiled without OpenMP, the host runs everything in its serial order, on one thread.
#include <cstdio>
#include <thread>
#include <vector>

#include <ciel_ordered.hpp>

namespace ordered = ciel::ordered;

int main() {
    std::vector<int> seen;
    std::thread::id here = std::this_thread::get_id();
    ordered::File log = ordered::File::create("log", ordered::Mode::serial_append);
    auto see = [&](int number) {
        if (std::this_thread::get_id() == here) seen.push_back(number);
        log.write(std::to_string(number));
    };
    ordered::run(4, [&] {
        ordered::join([&] { see(1); }, [&] { see(2); });
        ordered::scope([&](ordered::Scope &scope) {
            scope.spawn([&] { see(3); });
            see(4);
        });
        ordered::parallel_for(5, 9, 1, see);
    });
    log.close();
    return seen == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8} ? 0 : 1;
}
